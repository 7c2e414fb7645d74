"""Finding the tool call in a reply that holds nothing else.

Small models, and servers without a template for tools, write the call as text.
"""

import re
from collections.abc import Iterable, Mapping

from gateway.hosts.builtin.dialect import ToolSpec, new_call_id, read_arguments
from gateway.hosts.builtin.loose_json import JsonObject, as_list, as_text, parse_json
from gateway.hosts.builtin.messages import Call

_TAGGED = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
_FENCED = re.compile(r"\A```[A-Za-z_]*\s*\n(.*?)\n?```\Z", re.DOTALL)


def recover_calls(text: str, tools: Iterable[ToolSpec]) -> tuple[Call, ...]:
    """Return the calls that `text` spells out, or none if it says anything besides.

    A call counts only if it names an offered tool and brings each argument which that
    tool's schema requires; one that does not makes the whole reply plain text.
    """
    known = {tool.name: tool for tool in tools}
    spelled = [_read(item, known) for piece in _pieces(text.strip()) for item in _values(piece)]
    return tuple(call for call in spelled if call is not None) if all(spelled) else ()


def _pieces(text: str) -> list[str]:
    """Return the parts that must each be JSON; none if the text is something else."""
    tagged = [str(piece) for piece in _TAGGED.findall(text)]
    if tagged:
        return [] if _TAGGED.sub("", text).strip() else [_unfence(piece) for piece in tagged]
    body = _unfence(text)
    return [body] if body[:1] in {"{", "["} else []


def _unfence(text: str) -> str:
    fenced = _FENCED.match(text.strip())
    return (fenced.group(1) if fenced else text).strip()


def _values(piece: str) -> list[object]:
    try:
        value = parse_json(piece)
    except ValueError:
        return [None]
    return as_list(value) or [value]


def _read(value: object, known: Mapping[str, ToolSpec]) -> Call | None:
    if not isinstance(value, dict):
        return None
    tool = known.get(as_text(value.get("name")))
    given = value.get("arguments", value.get("parameters"))
    if tool is None or given is None:
        return None
    arguments, problem = read_arguments(given)
    if problem is not None or not _fits(arguments, tool):
        return None
    return Call(id=new_call_id(), name=tool.name, arguments=arguments)


def _fits(arguments: JsonObject, tool: ToolSpec) -> bool:
    return all(as_text(key) in arguments for key in as_list(tool.parameters.get("required")))
