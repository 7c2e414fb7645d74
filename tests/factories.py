"""Things one state further along each: what a test needs to be there before it begins."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Table, select

from gateway.domain.delivery import (
    Chunk,
    ChunkId,
    ChunkState,
    DeliveryId,
    DeliveryKind,
)
from gateway.domain.job import Job, JobAction, JobId, JobState, MissedWindow, NewJob, Tier
from gateway.domain.message import ChannelName, ChatKey, Edit, NewMessage
from gateway.domain.richtext import RichText
from gateway.domain.schedule import At, from_millis, to_millis
from gateway.domain.tool import ToolContext, ToolResult
from gateway.domain.turn import RunState, Trigger, TurnId, TurnState
from gateway.store.chats import ensure_chat
from gateway.store.database import Database, Topic, Transaction
from gateway.store.deliveries import NewDelivery, store_delivery
from gateway.store.ending import Notice, RunEnd, answer_turn
from gateway.store.firing import FireRules, fire_due
from gateway.store.jobs import Created, JobLimit, create_job
from gateway.store.messages import admit_message
from gateway.store.schema import jobs, turns
from gateway.store.sending import SendRules, begin_send
from gateway.store.toolcalls import run_once
from gateway.store.turns import Claim, claim_turn, next_turn
from gateway.store.wire import ToSend
from tests.fakes.clock import START

NOW = START
ACCOUNT = "7000"
CHAT = ChatKey(ChannelName.TELEGRAM, "42")
OTHER_CHAT = ChatKey(ChannelName.TELEGRAM, "43")
SERVED = (ChannelName.TELEGRAM,)
BERLIN = "Europe/Berlin"
SUCCEEDED = RunEnd(state=RunState.SUCCEEDED, provider="fake", model="fake-1")
HOST_FAILED = RunEnd(state=RunState.FAILED, reason="died", error="exit 1")

_numbers = itertools.count(1)


def later(seconds: float) -> datetime:
    """The moment so long after the start of the manual clock."""
    return NOW + timedelta(seconds=seconds)


def cut(text: str, *, is_markdown: bool) -> tuple[RichText, ...]:
    """Cuts at each `|`; `---` is a rule in Markdown, which shows nothing."""
    if is_markdown and text.strip() == "---":
        return ()
    return tuple(RichText(text=piece) for piece in text.split("|") if piece.strip())


NOTICE = Notice(text=lambda turn: f"That went wrong (ref {turn}).", cut=cut)


class Door:
    """Who is allowed: everybody, until somebody is put out."""

    def __init__(self) -> None:
        self.out: set[ChatKey] = set()

    def admits(self, connection: Connection, chat: ChatKey) -> bool:
        return chat not in self.out


def send_rules(door: Door | None = None, *, hours: float = 24) -> SendRules:
    """Rules for one channel on which everybody is allowed, unless a door says otherwise."""
    return SendRules(
        account=ACCOUNT,
        cut=cut,
        admits=(door or Door()).admits,
        expiry=timedelta(hours=hours),
    )


def fire_rules(door: Door | None = None) -> FireRules:
    """Rules under which everything on Telegram fires, unless a door says otherwise."""
    return FireRules(channels=SERVED, cut=lambda chat: cut, admits=(door or Door()).admits)


def make_message(
    text: str = "hello",
    *,
    chat: ChatKey = CHAT,
    external_id: str | None = None,
    address: str | None = None,
    hold: float | None = None,
    is_part: bool = False,
) -> NewMessage:
    """A message of a private chat, as its channel parsed it."""
    return NewMessage(
        chat=chat,
        account=ACCOUNT,
        address=address or chat.address,
        external_id=external_id or f"m{next(_numbers)}",
        sender_id=chat.address,
        sender_name="Ada",
        chat_addresses=(chat.address,),
        sender_addresses=(chat.address,),
        text=text,
        sent_at=NOW,
        hold=None if hold is None else timedelta(seconds=hold),
        is_part=is_part,
    )


def make_edit(text: str, message: NewMessage) -> Edit:
    """The same message with another text."""
    return Edit(
        chat=message.chat,
        account=message.account,
        address=message.address,
        external_id=message.external_id,
        chat_addresses=message.chat_addresses,
        sender_addresses=message.sender_addresses,
        is_group=False,
        text=text,
    )


def make_chunk(body: RichText | None = None, **counters: int) -> Chunk:
    """A chunk on the wire; counters that are not given are 0."""
    counts = {"attempts": 0, "unknowns": 0, "unanswered": 0, "not_sent": 0} | counters
    return Chunk(
        id=ChunkId(1),
        delivery_id=DeliveryId(1),
        number=1,
        state=ChunkState.SENDING,
        body=body or RichText(text="hello"),
        **counts,
    )


def make_job(state: JobState) -> Job:
    """A one-shot due in a minute, in any state."""
    return Job(
        id=JobId(7),
        chat=CHAT,
        state=state,
        action=JobAction.MESSAGE,
        text="call mum",
        schedule=At(at=later(60)),
        timezone=BERLIN,
        next_slot_at=later(60),
        last_slot_at=None,
        created_at=NOW,
        tier=Tier.READ_ONLY,
        asked_tier=Tier.READ_ONLY,
        missed=MissedWindow.CATCH_UP_ONE,
        fired=0,
        failed_slots=0,
        origin=None,
        snoozed_from=None,
    )


async def queued_turn(
    store: Database, text: str = "hello", *, chat: ChatKey = CHAT, now: datetime = NOW
) -> TurnId:
    """A turn that waits for its chat's lane, with one message."""
    turn = await store.write(admit_message, make_message(text, chat=chat), now=now)
    assert turn is not None
    return turn


async def claimed(store: Database, *, chat: ChatKey = CHAT, now: datetime = NOW) -> Claim:
    """The chat's head turn, running."""
    head = await store.read(next_turn, chat, now=now)
    assert head is not None
    claim = await store.write(
        claim_turn, chat, trigger=head.trigger, owner="test", admits=Door().admits, now=now
    )
    assert claim is not None
    return claim


async def running_turn(
    store: Database, text: str = "hello", *, chat: ChatKey = CHAT, now: datetime = NOW
) -> Claim:
    """A turn whose first run is in progress."""
    await queued_turn(store, text, chat=chat, now=now)
    return await claimed(store, chat=chat, now=now)


async def answered_turn(
    store: Database, reply: str = "done", *, chat: ChatKey = CHAT, now: datetime = NOW
) -> TurnId:
    """A turn that ended well, its reply stored and not sent yet."""
    claim = await running_turn(store, chat=chat, now=now)
    assert await store.write(answer_turn, claim, SUCCEEDED, reply, cut, now=now)
    return claim.turn


def _store_text(
    tx: Transaction, chat: ChatKey, kind: DeliveryKind, text: str, now: datetime
) -> DeliveryId:
    stored = ensure_chat(tx, chat, is_group=False, now=now)
    new = NewDelivery(chat=stored, kind=kind, text=text, chunks=cut(text, is_markdown=False))
    return store_delivery(tx, new, now=now)


async def stored_delivery(
    store: Database,
    text: str = "hello",
    *,
    chat: ChatKey = CHAT,
    kind: DeliveryKind = DeliveryKind.REPLY,
    now: datetime = NOW,
) -> DeliveryId:
    """A delivery of which nothing was sent yet; `one|two` has two chunks."""
    return await store.write(_store_text, chat, kind, text, now)


async def next_send(
    store: Database,
    *,
    chat: ChatKey = CHAT,
    rules: SendRules | None = None,
    now: datetime = NOW,
) -> ToSend:
    """The chat's next chunk, on the wire."""
    step = await store.write(begin_send, chat, rules or send_rules(), now=now)
    assert isinstance(step, ToSend), step
    return step


async def sending_chunk(
    store: Database,
    text: str = "hello",
    *,
    chat: ChatKey = CHAT,
    kind: DeliveryKind = DeliveryKind.REPLY,
    now: datetime = NOW,
) -> ToSend:
    """The first chunk of a new delivery, on the wire."""
    await stored_delivery(store, text, chat=chat, kind=kind, now=now)
    return await next_send(store, chat=chat, now=now)


def new_job(text: str = "call mum", *, chat: ChatKey = CHAT, at: datetime | None = None) -> NewJob:
    """A one-shot of a chat, due in a minute unless `at` says otherwise."""
    slot = at or later(60)
    return NewJob(
        chat=chat,
        action=JobAction.MESSAGE,
        text=text,
        schedule=At(at=slot),
        timezone=BERLIN,
        next_slot_at=slot,
        tier=Tier.READ_ONLY,
    )


def _admit_job(tx: Transaction, new: NewJob, now: datetime) -> Created | JobLimit:
    ensure_chat(tx, new.chat, is_group=False, now=now)
    return create_job(tx, new, now=now)


async def created_job(
    store: Database, new: NewJob | None = None, *, now: datetime = NOW
) -> Created | JobLimit:
    """What comes of asking for a job in a chat that is known."""
    return await store.write(_admit_job, new or new_job(), now)


async def active_job(
    store: Database,
    text: str = "call mum",
    *,
    chat: ChatKey = CHAT,
    at: datetime | None = None,
    now: datetime = NOW,
) -> Job:
    """A one-shot that will fire, in a minute unless `at` says otherwise."""
    created = await created_job(store, new_job(text, chat=chat, at=at), now=now)
    assert isinstance(created, Created)
    assert created.is_new
    return created.job


async def fire(store: Database, now: datetime, *, door: Door | None = None) -> int:
    """Let everything that is due fire; returns how many rows were due."""
    return await store.write(fire_due, fire_rules(door), now=now)


async def fired_job(
    store: Database, text: str = "call mum", *, chat: ChatKey = CHAT, at: datetime | None = None
) -> Job:
    """A one-shot whose text is stored and waits to be sent."""
    slot = at or later(60)
    job = await active_job(store, text, chat=chat, at=slot)
    assert await fire(store, slot) == 1
    return job


async def queued_job_turn(
    store: Database,
    text: str = "water the plants",
    *,
    chat: ChatKey = CHAT,
    now: datetime = NOW,
    job: NewJob | None = None,
) -> TurnId:
    """The turn of a slot that is due `now` and is a task for a model; it waits for its lane."""
    new = job or replace(new_job(text, chat=chat, at=now), action=JobAction.PROMPT)
    await created_job(store, new, now=now)
    assert await fire(store, now) == 1
    newest = (await rows_of(store, turns, turns.c.trigger == Trigger.JOB))[-1]
    return TurnId(newest.id)


def _queue_heartbeat(tx: Transaction, chat: ChatKey, now: datetime) -> TurnId:
    ensure_chat(tx, chat, is_group=False, now=now)
    turn = tx.connection.execute(
        turns.insert()
        .values(
            chat_key=str(chat),
            trigger=Trigger.HEARTBEAT,
            source_key=f"heartbeat:{chat}:{next(_numbers)}",
            state=TurnState.QUEUED,
            created_at=to_millis(now),
        )
        .returning(turns.c.id)
    ).scalar_one()
    tx.touch(Topic.TURNS, chat)
    return TurnId(turn)


async def queued_heartbeat(store: Database, *, chat: ChatKey = CHAT, now: datetime = NOW) -> TurnId:
    """A check-in that waits for its chat's lane."""
    return await store.write(_queue_heartbeat, chat, now)


async def tool_call(store: Database, claim: Claim, result: ToolResult, *, key: str) -> ToolResult:
    """A call of the `schedule` tool by a run, answered with `result`."""
    context = ToolContext(
        chat=claim.chat.key,
        turn=claim.turn,
        run=claim.run,
        trigger=claim.trigger,
        tier=claim.tier,
        timezone=BERLIN,
        now=NOW,
        key=key,
    )
    return await store.write(run_once, context, "schedule", lambda tx: result)


# ---- looking at what is stored ---------------------------------------------------------------


async def rows_of(
    store: Database, table: Table, *conditions: ColumnElement[bool]
) -> list[Row[Any]]:
    """The rows of a table, oldest first."""

    def query(connection: Connection) -> Sequence[Row[Any]]:
        order = table.c.id if "id" in table.c else next(iter(table.c))
        return connection.execute(select(table).where(*conditions).order_by(order)).all()

    return list(await store.read(query))


async def row_of(store: Database, table: Table, row_id: int) -> Row[Any]:
    """One row by its id."""
    (row,) = await rows_of(store, table, table.c.id == row_id)
    return row


async def states_of(store: Database, table: Table, *conditions: ColumnElement[bool]) -> list[str]:
    """The states of a table's rows, oldest first."""
    return [row.state for row in await rows_of(store, table, *conditions)]


async def job_state(store: Database, job: JobId) -> JobState:
    """Where a job stands."""
    return JobState((await row_of(store, jobs, job)).state)


def moment_of(millis: int | None) -> datetime | None:
    """The moment of a stored time."""
    return None if millis is None else from_millis(millis).astimezone(UTC)
