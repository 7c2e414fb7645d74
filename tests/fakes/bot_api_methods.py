"""The state of a fake Bot API server and the methods that read and change it."""

import asyncio
import itertools
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tests.fakes.bot_api_rules import RefusedError, bad_request, check_keyboard, check_text
from tests.fakes.bot_api_updates import BOT_ID, BOT_USERNAME, Json, bot

_MAX_BATCH = 100
_MAX_COMMANDS = 100
_CONTENT = ("text", "entities", "reply_markup")
_CONFLICT = (
    "Conflict: terminated by other getUpdates request; "
    "make sure that only one bot instance is running"
)
_WEBHOOK_CONFLICT = (
    "Conflict: can't use getUpdates method while webhook is active; "
    "use deleteWebhook to delete the webhook first"
)


@dataclass(slots=True, kw_only=True)
class Call:
    """One call as it arrived; `status` is what it was answered with, None until then."""

    number: int
    at: float  # time.monotonic()
    method: str
    params: Json
    status: int | None = None

    @property
    def chat_id(self) -> int | None:
        chat_id = self.params.get("chat_id")
        return None if chat_id is None else int(chat_id)


class BotApiState:
    """Updates that wait to be confirmed, messages that were sent, and a record of all calls."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.sent: list[Json] = []
        self.pending: list[Json] = []
        self.webhook = ""
        self.commands: list[Json] = []
        self._update_ids = itertools.count(1001)
        self._message_ids = itertools.count(5001)
        self._deleted_topics: set[tuple[int, int]] = set()
        self._buttons: set[str] = set()
        self._poll = 0
        self._change = asyncio.Event()

    def push(self, *updates: Json) -> list[int]:
        """Queue updates for the bot; one without an id gets the next. Returns the ids."""
        ids = []
        for update in updates:
            numbered: Json = {"update_id": next(self._update_ids)} | update
            if "callback_query" in numbered:
                self._buttons.add(numbered["callback_query"]["id"])
            self.pending.append(numbered)
            ids.append(int(numbered["update_id"]))
        self.touch()
        return ids

    def delete_topic(self, chat_id: int, thread_id: int) -> None:
        self._deleted_topics.add((chat_id, thread_id))

    def delete_message(self, message_id: int) -> None:
        """Somebody takes a message of the bot's away."""
        self.sent = [message for message in self.sent if message["message_id"] != message_id]
        self.touch()

    def calls_of(self, method: str, *, chat_id: int | None = None) -> list[Call]:
        return [
            call for call in self.calls if call.method == method and chat_id in (None, call.chat_id)
        ]

    def texts(self, chat_id: int | None = None) -> list[str]:
        """The texts of the messages that were accepted, in order."""
        return [
            str(message["text"])
            for message in self.sent
            if chat_id in (None, message["chat"]["id"])
        ]

    async def until(self, is_so: Callable[[], bool], *, within: float = 10.0) -> None:
        """Return once `is_so`, which is asked again after each change. Raises TimeoutError."""
        async with asyncio.timeout(within):
            change = self._change
            while not is_so():
                await change.wait()
                change = self._change

    def touch(self) -> None:
        """Tell all who wait that something changed."""
        self._change.set()
        self._change = asyncio.Event()

    async def answer(self, method: str, params: Json) -> Any:
        """Do what a call asks and return its result, or raise RefusedError."""
        match method:
            case "getMe":
                return {**bot(), "can_join_groups": True, "can_read_all_group_messages": False}
            case "getUpdates":
                return await self._get_updates(params)
            case "sendMessage":
                return self._send_message(params)
            case "sendChatAction":
                self._check_place(params)
                return True
            case "editMessageText":
                return self._edit_message(params)
            case "answerCallbackQuery":
                return self._answer_button(params)
            case "getFile":
                file_id = params["file_id"]
                return {
                    "file_id": file_id,
                    "file_unique_id": f"u{file_id}",
                    "file_path": f"files/{file_id}",
                }
            case _:
                return self._set_up(method, params)

    def _set_up(self, method: str, params: Json) -> Any:
        match method:
            case "setWebhook":
                self.webhook = str(params.get("url", ""))
            case "deleteWebhook":
                self.webhook = ""
                if params.get("drop_pending_updates"):
                    self.pending.clear()
            case "setMyCommands":
                if len(params["commands"]) > _MAX_COMMANDS:
                    raise bad_request("too many commands")
                self.commands = params["commands"]
            case "logOut" | "close":
                pass
            case _:
                raise RefusedError(404, "Not Found")
        return True

    async def _get_updates(self, params: Json) -> list[Json]:
        if self.webhook:
            raise RefusedError(409, _WEBHOOK_CONFLICT)
        self._confirm(int(params.get("offset", 0)))
        if "allowed_updates" in params:
            self._keep_only(params["allowed_updates"])
        limit = min(max(int(params.get("limit", _MAX_BATCH)), 1), _MAX_BATCH)
        deadline = asyncio.get_running_loop().time() + int(params.get("timeout", 0))
        self._poll += 1
        mine = self._poll
        self.touch()
        while True:
            change = self._change
            if self._poll != mine:
                raise RefusedError(409, _CONFLICT)
            if self.pending or asyncio.get_running_loop().time() >= deadline:
                return self.pending[:limit]
            try:
                async with asyncio.timeout_at(deadline):
                    await change.wait()
            except TimeoutError:
                continue

    def _confirm(self, offset: int) -> None:
        if offset < 0:
            del self.pending[:offset]
        elif offset > 0:
            self.pending = [update for update in self.pending if update["update_id"] >= offset]

    def _keep_only(self, kinds: Iterable[str]) -> None:
        """An update of another kind is never queued on the real server; here it leaves now."""
        wanted = {*kinds, "update_id"}
        if len(wanted) > 1:
            self.pending = [update for update in self.pending if wanted.issuperset(update)]

    def _check_place(self, params: Json) -> tuple[int, int | None]:
        if "chat_id" not in params:
            raise bad_request("chat_id is empty")
        chat_id = int(params["chat_id"])
        thread_id = params.get("message_thread_id")
        if thread_id is None:
            return chat_id, None
        if (chat_id, int(thread_id)) in self._deleted_topics:
            raise bad_request("message thread not found")
        return chat_id, int(thread_id)

    def _send_message(self, params: Json) -> Json:
        chat_id, thread_id = self._check_place(params)
        message: Json = {
            "message_id": next(self._message_ids),
            "date": int(time.time()),
            "chat": _chat(chat_id),
            "from": bot(BOT_ID, BOT_USERNAME),
            **_content(params),
        }
        if thread_id is not None:
            message |= {"message_thread_id": thread_id, "is_topic_message": True}
        self.sent.append(message)
        self.touch()
        return message

    def _edit_message(self, params: Json) -> Json:
        """The edited message takes the old one's place, and leaves the old one as it was."""
        chat_id, _ = self._check_place(params)
        content = _content(params)
        wanted = (chat_id, int(params["message_id"]))
        places = [(message["chat"]["id"], message["message_id"]) for message in self.sent]
        if wanted not in places:
            raise bad_request("message to edit not found")
        place = places.index(wanted)
        message = self.sent[place]
        if content == {part: message[part] for part in _CONTENT if part in message}:
            raise bad_request(
                "message is not modified: specified new message content and reply markup are "
                "exactly the same as a current content and reply markup of the message"
            )
        kept = {part: value for part, value in message.items() if part not in _CONTENT}
        edited = {**kept, **content, "edit_date": int(time.time())}
        self.sent[place] = edited
        self.touch()
        return edited

    def _answer_button(self, params: Json) -> bool:
        """Each press can be answered once."""
        callback_id = params.get("callback_query_id")
        if callback_id not in self._buttons:
            raise bad_request(
                "query is too old and response timeout expired or query ID is invalid"
            )
        self._buttons.remove(callback_id)
        return True

    def to_json(self) -> Json:
        """What outlives the server's process."""
        return {
            "pending": self.pending,
            "sent": self.sent,
            "buttons": sorted(self._buttons),
            "next_update_id": next(self._update_ids),
            "next_message_id": next(self._message_ids),
        }

    def load_json(self, saved: Json) -> None:
        self.pending = saved["pending"]
        self.sent = saved["sent"]
        self._buttons = set(saved["buttons"])
        self._update_ids = itertools.count(saved["next_update_id"])
        self._message_ids = itertools.count(saved["next_message_id"])


def _content(params: Json) -> Json:
    """What a message says, as the server keeps it."""
    text, entities = check_text(
        str(params.get("text", "")), params.get("entities", ()), params.get("parse_mode")
    )
    content: Json = {"text": text}
    if entities:
        content["entities"] = entities
    keyboard = check_keyboard(params.get("reply_markup"))
    if keyboard:
        content["reply_markup"] = keyboard
    return content


def _chat(chat_id: int) -> Json:
    if chat_id > 0:
        return {"id": chat_id, "type": "private", "first_name": "Ann"}
    kind = "supergroup" if str(chat_id).startswith("-100") else "group"
    return {"id": chat_id, "type": kind, "title": "Club"}
