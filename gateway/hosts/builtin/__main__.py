"""`python -m gateway.hosts.builtin`: one model child, offline or with a model."""

import asyncio
import logging
import os
import sys
from pathlib import Path

_PARENT = os.getppid()  # read before anything slow: see die_with_parent

from gateway.hosts.builtin.answerer import Answerer  # noqa: E402
from gateway.hosts.builtin.dialect import Dialect  # noqa: E402
from gateway.hosts.builtin.guard import die_with_parent, slim_httpx, take_output  # noqa: E402
from gateway.hosts.builtin.loop import Child  # noqa: E402
from gateway.hosts.builtin.options import ModelOptions, Options, read_options  # noqa: E402
from gateway.hosts.builtin.tools import ToolServer  # noqa: E402
from gateway.hosts.builtin.wire import FrameWriter, open_reader  # noqa: E402

log = logging.getLogger(__name__)


def main() -> None:
    """Serve until standard input ends; exits 2 on wrong usage."""
    frames = take_output()
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(name)s: %(message)s")
    options = read_options(sys.argv[1:], os.environ)
    if die_with_parent(_PARENT):
        asyncio.run(_serve(frames, options))


async def _serve(frames: int, options: Options) -> None:
    lines = open_reader(0)
    await Child(FrameWriter(frames), _answerer(options)).serve(lines)


def _answerer(options: Options) -> Answerer:
    """Build the one asked for, importing nothing of the other."""
    tools = ToolServer(path=options.tool_socket, token=options.tool_token)
    if options.model is None:
        from gateway.hosts.builtin.offline_answerer import OfflineAnswerer

        return OfflineAnswerer(tools=tools)
    return _model_answerer(options, options.model, tools)


def _model_answerer(options: Options, model: ModelOptions, tools: ToolServer) -> Answerer:
    from gateway.hosts.builtin.client import ModelClient
    from gateway.hosts.builtin.memory import Memory
    from gateway.hosts.builtin.model_answerer import ModelAnswerer

    slim_httpx()
    return ModelAnswerer(
        provider=model.provider,
        model=model.name,
        client=ModelClient(dialect=_dialect(model), key=model.key, silence=options.silence_seconds),
        tools=tools,
        memory=Memory(options.directory),
        persona=_read_persona(options.persona_file),
        window=model.window_tokens,
    )


def _dialect(model: ModelOptions) -> Dialect:
    if model.provider == "anthropic":
        from gateway.hosts.builtin.anthropic import AnthropicDialect

        return AnthropicDialect(model=model.name, base_url=model.base_url)
    from gateway.hosts.builtin.openai import OpenAIDialect

    return OpenAIDialect(model=model.name, base_url=model.base_url)


def _read_persona(path: Path | None) -> str:
    """Return the operator's addition; one that cannot be read is logged and left out."""
    if path is None:
        return ""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        log.warning("prompt_file_not_read: %s", error.strerror)
        return ""


if __name__ == "__main__":
    main()
