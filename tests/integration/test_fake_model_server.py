"""The fake model server as a process of its own, the way acceptance tests use it."""

import asyncio
import json
import os
import sys
from pathlib import Path

import httpx

from tests.fakes.model_script import JsonObject

SCRIPT: JsonObject = {
    "queue": [{"kind": "refuse", "status": 503, "headers": {"retry-after": "0"}}],
    "rules": [
        {
            "contains": "tea",
            "replies": [
                {"kind": "call", "name": "schedule", "arguments": {"text": "tea"}},
                {"kind": "say", "text": "Done: {tool}"},
            ],
        },
        {"contains": "slow", "replies": [{"kind": "say", "text": "ab", "pieces": 2, "gate": "g"}]},
        {"contains": "big", "replies": [{"kind": "limit", "characters": 1}]},
        {
            "contains": "twice",
            "replies": [
                {"kind": "refuse", "status": 500, "times": 2, "then": {"kind": "say", "text": "ok"}}
            ],
        },
    ],
    "default": [{"kind": "say", "text": "You said {last_line}", "usage": [3, 4], "seconds": 0.01}],
}


async def test_a_script_file_drives_a_server_in_another_process(tmp_path: Path) -> None:
    script, port_file = tmp_path / "script.json", tmp_path / "port"
    script.write_text(json.dumps(SCRIPT), encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.fakes.model_server"),
        *("--port-file", str(port_file), "--script", str(script)),
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        async with asyncio.timeout(20):
            while not port_file.exists():  # noqa: ASYNC110 (a file tells nobody)
                await asyncio.sleep(0.01)
        url = f"http://127.0.0.1:{port_file.read_text(encoding='utf-8')}"
        async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
            await talk(client)
    finally:
        process.terminate()
        await process.wait()


async def talk(client: httpx.AsyncClient) -> None:
    user: JsonObject = {"role": "user", "content": "tea"}
    assert (await ask(client, user)).status_code == 503
    assert '"name": "schedule"' in (await ask(client, user)).text
    made: JsonObject = {"role": "assistant", "content": "", "tool_calls": []}
    result: JsonObject = {"role": "tool", "tool_call_id": "1", "content": "#7"}
    assert "Done: #7" in (await ask(client, user, made, result)).text
    assert "You said b" in (await ask(client, {"role": "user", "content": "a\nb"})).text
    assert (await ask(client, {"role": "user", "content": "big"})).status_code == 400
    twice = [await ask(client, {"role": "user", "content": "twice"}) for _ in range(3)]
    assert [response.status_code for response in twice] == [500, 500, 200]
    slow = asyncio.create_task(ask(client, {"role": "user", "content": "slow"}))
    assert (await client.post("/gates/g")).status_code == 200
    assert (await slow).text.endswith("data: [DONE]\n\n")
    seen = (await client.get("/requests")).json()
    assert len(seen) == 9
    assert seen[0]["path"] == "/v1/chat/completions"


async def ask(client: httpx.AsyncClient, *messages: JsonObject) -> httpx.Response:
    return await client.post("/v1/chat/completions", json={"messages": messages})
