"""The fake Bot API server keeps the rules that the tests lean on."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fakes import bot_api_updates as updates
from tests.fakes.bot_api import BotApi
from tests.fakes.bot_api_faults import Fault
from tests.fakes.bot_api_process import BotApiProcess


@pytest.fixture
async def api() -> AsyncIterator[BotApi]:
    async with BotApi() as server:
        yield server


async def call(api: BotApi, method: str, **params: Any) -> dict[str, Any]:
    async with httpx.AsyncClient(trust_env=False, timeout=20) as client:
        url = f"{api.base_url}/bot{api.token}/{method}"
        answer: dict[str, Any] = (await client.post(url, json=params)).json()
        return answer


def keys(*buttons: dict[str, str]) -> dict[str, Any]:
    return {"inline_keyboard": [[button] for button in buttons]}


async def ids(api: BotApi, **params: Any) -> list[int]:
    return [update["update_id"] for update in (await call(api, "getUpdates", **params))["result"]]


async def test_updates_come_again_until_an_offset_past_them_is_asked_for(api: BotApi) -> None:
    pushed = api.push(*(updates.text(f"{number}") for number in range(3)))

    assert await ids(api) == pushed
    assert await ids(api, limit=1) == pushed[:1]
    assert await ids(api, offset=pushed[1]) == pushed[1:]
    assert await ids(api) == pushed[1:]
    assert await ids(api, offset=-1) == pushed[-1:]
    assert await ids(api, offset=pushed[-1] + 1) == []


async def test_a_long_poll_answers_when_something_arrives(api: BotApi) -> None:
    poll = asyncio.create_task(ids(api, timeout=20))
    await api.until(lambda: bool(api.calls_of("getUpdates")))

    pushed = api.push(updates.text("hello"))

    assert await asyncio.wait_for(poll, timeout=5) == pushed


async def test_a_new_poller_ends_the_poll_of_the_old_one(api: BotApi) -> None:
    old = asyncio.create_task(call(api, "getUpdates", timeout=20))
    await api.until(lambda: bool(api.calls_of("getUpdates")))

    new = await call(api, "getUpdates")

    assert new["ok"]
    assert (await old)["error_code"] == 409


@pytest.mark.parametrize(
    ("params", "description"),
    [
        ({"text": "x" * 4097}, "message is too long"),
        ({"text": "ä" * 16_385}, "text is too long"),
        ({"text": "  \n"}, "text must be non-empty"),
        ({"text": ""}, "message text is empty"),
        ({"text": "<foo>", "parse_mode": "HTML"}, 'Unsupported start tag "foo"'),
        ({"text": "a.b", "parse_mode": "MarkdownV2"}, "Character '.' is reserved"),
    ],
)
async def test_a_text_that_the_real_server_refuses_is_refused(
    api: BotApi, params: dict[str, str], description: str
) -> None:
    answer = await call(api, "sendMessage", chat_id=7, **params)

    assert answer["error_code"] == 400
    assert description in answer["description"]
    assert api.sent == []


async def test_only_a_hundred_entities_are_kept(api: BotApi) -> None:
    bold = [{"type": "bold", "offset": 2 * number, "length": 1} for number in range(120)]

    answer = await call(api, "sendMessage", chat_id=7, text="a " * 120, entities=bold)

    assert len(answer["result"]["entities"]) == 100


async def test_an_edit_needs_a_message_and_a_change(api: BotApi) -> None:
    sent = (await call(api, "sendMessage", chat_id=7, text="one"))["result"]["message_id"]

    missing = await call(api, "editMessageText", chat_id=7, message_id=1, text="two")
    unchanged = await call(api, "editMessageText", chat_id=7, message_id=sent, text="one")
    changed = await call(api, "editMessageText", chat_id=7, message_id=sent, text="two")

    assert "message to edit not found" in missing["description"]
    assert "message is not modified" in unchanged["description"]
    assert changed["ok"]
    assert api.texts() == ["two"]


async def test_an_edit_without_buttons_takes_them_away_and_is_a_change(api: BotApi) -> None:
    keyboard = keys({"text": "Done", "callback_data": "done:1"})
    sent = (await call(api, "sendMessage", chat_id=7, text="one", reply_markup=keyboard))["result"]
    edit = {"chat_id": 7, "message_id": sent["message_id"], "text": "one"}

    same = await call(api, "editMessageText", **edit, reply_markup=keyboard)
    changed = await call(api, "editMessageText", **edit)
    elsewhere = await call(api, "editMessageText", **{**edit, "chat_id": 8})

    assert "message is not modified" in same["description"]
    assert "reply_markup" not in changed["result"]
    assert "message to edit not found" in elsewhere["description"]
    assert updates.labels_of(sent) == [["Done"]]


async def test_a_message_that_was_deleted_cannot_be_edited(api: BotApi) -> None:
    sent = (await call(api, "sendMessage", chat_id=7, text="one"))["result"]["message_id"]
    api.delete_message(sent)

    missing = await call(api, "editMessageText", chat_id=7, message_id=sent, text="two")

    assert "message to edit not found" in missing["description"]


@pytest.mark.parametrize(
    ("button", "description"),
    [
        ({"text": "Done", "callback_data": "ä" * 33}, "BUTTON_DATA_INVALID"),
        ({"text": "Done", "callback_data": ""}, "BUTTON_DATA_INVALID"),
        ({"text": "Done"}, "Text buttons are unallowed"),
        ({"callback_data": "done:1"}, 'Can\'t find field "text"'),
    ],
)
async def test_a_button_that_the_real_server_refuses_is_refused(
    api: BotApi, button: dict[str, str], description: str
) -> None:
    answer = await call(api, "sendMessage", chat_id=7, text="one", reply_markup=keys(button))

    assert answer["error_code"] == 400
    assert description in answer["description"]
    assert api.sent == []


async def test_a_press_names_its_button_chat_and_message_and_is_answered_once(
    api: BotApi,
) -> None:
    keyboard = keys({"text": "Done", "callback_data": "done:1"})
    await call(api, "sendMessage", chat_id=8, text="one", reply_markup=keyboard)
    api.push(updates.press(api.sent[0], "Done"))

    (update,) = (await call(api, "getUpdates"))["result"]
    query = update["callback_query"]
    first = await call(api, "answerCallbackQuery", callback_query_id=query["id"])
    second = await call(api, "answerCallbackQuery", callback_query_id=query["id"])

    assert (query["data"], query["from"]["id"], query["message"]["chat"]["id"]) == ("done:1", 8, 8)
    assert query["message"]["message_id"] == api.sent[0]["message_id"]
    assert first["ok"]
    assert "query is too old" in second["description"]


async def test_an_edited_message_can_still_be_pressed_where_the_edit_has_not_been_seen(
    api: BotApi,
) -> None:
    keyboard = keys({"text": "Done", "callback_data": "done:1"})
    await call(api, "sendMessage", chat_id=8, text="one", reply_markup=keyboard)
    seen = api.sent[0]
    edit = {"chat_id": 8, "message_id": seen["message_id"], "text": "two"}
    assert (await call(api, "editMessageText", **edit))["ok"]

    with pytest.raises(LookupError):
        updates.press(api.sent[0], "Done")

    assert updates.press(seen, "Done")["callback_query"]["data"] == "done:1"


async def test_a_reply_stands_where_the_message_stands_that_it_answers(api: BotApi) -> None:
    await call(api, "sendMessage", chat_id=-100200, message_thread_id=43, text="one")

    reply = updates.reply("thanks", api.sent[0])["message"]

    assert (reply["chat"]["id"], reply["message_thread_id"]) == (-100200, 43)
    assert reply["reply_to_message"]["message_id"] == api.sent[0]["message_id"]


async def test_a_held_answer_comes_when_it_is_released(api: BotApi) -> None:
    api.fail("sendMessage", Fault.slow())
    sending = asyncio.create_task(call(api, "sendMessage", chat_id=7, text="hello"))
    await api.until(lambda: api.texts() == ["hello"])
    assert api.calls_of("sendMessage")[0].status is None

    api.release()

    assert (await asyncio.wait_for(sending, timeout=5))["ok"]


def test_a_server_of_its_own_keeps_port_and_state_over_a_restart(tmp_path: Path) -> None:
    with BotApiProcess(tmp_path) as server, httpx.Client(trust_env=False) as client:
        update_id = server.push_text("hello", chat_id=8)
        server.fail("sendMessage", Fault.too_many_requests(5), chat_id=8)
        url = f"{server.base_url}/bot{server.token}/sendMessage"
        limited = client.post(url, json={"chat_id": 8, "text": "one"})
        client.post(url, json={"chat_id": 8, "text": "two"})
        assert limited.status_code == 429
        assert limited.headers["Retry-After"] == "5"
        assert limited.json()["parameters"] == {"retry_after": 5}

        server.stop()
        with pytest.raises(httpx.ConnectError):
            client.post(url, json={"chat_id": 8, "text": "three"})
        server.start()

        assert url.startswith(server.base_url)
        assert [update["update_id"] for update in server.pending()] == [update_id]
        assert server.texts(8) == ["two"]
        assert server.push_text("again", chat_id=8) > update_id
