"""The worker that runs turns: per chat one at a time, in order, on a session of the pool."""

import asyncio
import logging
import weakref
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from gateway.domain.delivery import DeliveryKind
from gateway.domain.message import ChannelName, ChatKey
from gateway.domain.richtext import RichText
from gateway.domain.turn import RunId, RunState
from gateway.engine import texts
from gateway.engine.clock import Clock
from gateway.engine.lanes import Lanes, Patience
from gateway.engine.owner import Episode, OwnerNotices
from gateway.engine.prompts import build_prompt
from gateway.engine.toolserver import ToolServer
from gateway.engine.typing import Typing
from gateway.errors import HostNotReadyError
from gateway.hosts.base import (
    Failed,
    FailureKind,
    Finished,
    HostSession,
    Prompt,
    TextDelta,
    ToolCall,
    ToolResult,
)
from gateway.hosts.pool import HostPool
from gateway.log_context import bind
from gateway.store.chats import Admits, Chat
from gateway.store.database import Change, Database, Topic, Transaction
from gateway.store.deliveries import Cut, store_text
from gateway.store.turns import (
    Claim,
    Notice,
    RunEnd,
    answer_turn,
    claim_turn,
    fail_turn,
    give_back,
    next_turn,
    queued_chats,
    refuse_turn,
)

log = logging.getLogger(__name__)

PATIENCE = 10.0
"""Seconds that a chat waits for a session before it is told so."""

_LONG_REPLY = 8 * 1024
"""Characters of a reply that are cut in a thread of their own, so that nobody waits for it."""

_GIVE_BACK = 5.0
"""Seconds that aborted runs have to be written back."""

_FOR_OPERATOR: dict[FailureKind, tuple[Episode, str]] = {
    FailureKind.AUTH: (Episode.MODEL_REFUSED, texts.MODEL_REFUSED),
    FailureKind.ERROR: (Episode.MODEL_FAILING, texts.MODEL_FAILING),
}

_RUN_STATES: dict[FailureKind, RunState] = {
    FailureKind.EMPTY: RunState.EMPTY,
    FailureKind.SILENT: RunState.TIMED_OUT,
    FailureKind.TIMED_OUT: RunState.TIMED_OUT,
    FailureKind.ABORTED: RunState.CANCELLED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterRules:
    """What the router needs besides its partners; `patience` in seconds."""

    owner_id: str
    timezone: str
    cuts: Mapping[ChannelName, Cut]
    admits: Admits
    patience: float = PATIENCE


class Router:
    """Drives the pool from the queue. A failed run is told to the person at once."""

    def __init__(
        self,
        database: Database,
        pool: HostPool,
        tools: ToolServer,
        clock: Clock,
        notices: tuple[Typing, OwnerNotices],
        rules: RouterRules,
    ) -> None:
        self._database = database
        self._pool = pool
        self._tools = tools
        self._clock = clock
        self._typing, self._owner = notices
        self._rules = rules
        self._sessions: dict[RunId, HostSession] = {}
        # The chats whose next turn is being claimed, each with the runs aborted meanwhile.
        self._claiming: dict[ChatKey, set[RunId]] = {}
        self._held: dict[ChatKey, ExitStack] = {}
        self._acquiring: set[asyncio.Task[HostSession]] = set()
        self._told_to_wait: set[ChatKey] = set()
        self._told_of_loss: weakref.WeakSet[HostSession] = weakref.WeakSet()
        self._is_stopping = False
        self._is_looking = False
        self._lanes = Lanes("router", self._work, clock)

    def _on_commit(self, changes: frozenset[Change]) -> None:
        self._lanes.hint(c.chat for c in changes if c.topic is Topic.TURNS)

    async def look(self, served: Iterable[ChannelName]) -> None:
        """Look at every chat of these channels that has a queued turn; before, nothing is run."""
        if not self._is_looking:
            self._is_looking = True
            self._database.subscribe(self._on_commit)
        self._lanes.hint(await self._database.read(queued_chats, tuple(served)))

    async def abort(self, runs: Iterable[RunId]) -> None:
        """Abort runs whose end is committed already; one that did not begin yet never will."""
        aborted = set(runs)
        for seen in self._claiming.values():
            seen |= aborted
        sessions = [self._sessions[run] for run in aborted if run in self._sessions]
        await asyncio.gather(*(session.abort() for session in sessions))

    async def close(self, patience: Patience, *, grace: float) -> None:
        """Start no run any more; the running ones have `grace` seconds to end, then they are
        given back to the queue.
        """
        closing = asyncio.create_task(
            self._lanes.close(patience, grace=grace + _GIVE_BACK), name="router-close"
        )
        await asyncio.sleep(0)  # the lanes are closed now: nobody else will ask for a session
        for acquiring in self._acquiring:
            acquiring.cancel()
        if await patience.wait({closing}, grace):
            self._is_stopping = True
            sessions = list(self._sessions.values())
            await asyncio.gather(*(session.abort() for session in sessions))
        await closing
        while self._held:
            self._held.popitem()[1].close()

    async def _work(self, chat: ChatKey) -> datetime | None:
        """Run what is due. A turn that is held for more parts of it shows typing meanwhile."""
        with bind(chat=chat), self._held.pop(chat, ExitStack()) as shown:
            while self._lanes.is_open:
                head = await self._database.read(next_turn, chat, now=self._clock.now())
                if head is None:
                    self._told_to_wait.discard(chat)
                    return None
                shown.enter_context(self._typing.hold(chat))
                if not head.is_due:
                    self._held[chat] = shown.pop_all()
                    return head.not_before
                await self._run_head(head.chat)
                shown.close()
        return None

    async def _run_head(self, known: Chat) -> None:
        chat = known.key
        try:
            session = await self._ready_session(known)
        except HostNotReadyError as error:
            self._told_to_wait.discard(chat)
            await self._refuse(chat, str(error))
            return
        if session is None:
            return
        is_kept = False
        try:
            if session.lost_context and session not in self._told_of_loss:
                await self._say(chat, texts.LOST_CONTEXT)
                self._told_of_loss.add(session)
            claim = await self._claim(chat)
            is_kept = (claim is None or await self._run(claim, session)) and session.is_alive
        finally:
            if is_kept:
                self._pool.release(session)
            else:
                await self._pool.discard(session)

    async def _ready_session(self, chat: Chat) -> HostSession | None:
        """A session of the chat, lent to us; None = the router stopped while we waited.

        Who waits for long is told so, once for the turn at the head of the queue.
        """
        if not self._lanes.is_open:
            return None
        acquiring = asyncio.create_task(
            self._pool.acquire(chat.key, generation=chat.session_ref), name=f"acquire:{chat.key}"
        )
        self._acquiring.add(acquiring)
        try:
            done, _ = await asyncio.wait({acquiring}, timeout=self._rules.patience)
            if not done and chat.key not in self._told_to_wait:
                self._told_to_wait.add(chat.key)
                await self._say(chat.key, texts.SLOW_START)
            await asyncio.wait({acquiring})
        except BaseException:
            acquiring.cancel()
            raise
        finally:
            self._acquiring.discard(acquiring)
        return None if acquiring.cancelled() else acquiring.result()

    async def _claim(self, chat: ChatKey) -> Claim | None:
        """Claim the chat's next turn; None = there is none, or its run was aborted already."""
        aborted = self._claiming[chat] = set()
        try:
            claim = await self._database.insist(
                claim_turn,
                chat,
                owner=self._rules.owner_id,
                admits=self._rules.admits,
                now=self._clock.now(),
            )
        finally:
            del self._claiming[chat]
        if claim is None:
            return None
        self._told_to_wait.discard(chat)
        return None if claim.run in aborted else claim

    async def _run(self, claim: Claim, session: HostSession) -> bool:
        """Run a claimed turn to its end, whatever happens; false = the session is not to be used
        any more.
        """
        self._sessions[claim.run] = session
        with bind(turn=claim.turn, run=claim.run):
            try:
                await self._run_to_end(claim, session)
            except Exception as error:
                log.exception("run_broke")
                detail = f"{type(error).__name__}: {error}"
                await self._store_failure(claim, Failed(kind=FailureKind.ERROR, detail=detail))
                return False
            finally:
                del self._sessions[claim.run]
        return True

    async def _run_to_end(self, claim: Claim, session: HostSession) -> None:
        if not self._lanes.is_open:
            await self._database.insist(give_back, claim, now=self._clock.now())
            return
        log.info("run_started")
        timezone = claim.chat.timezone or self._rules.timezone
        prompt = build_prompt(claim, timezone=timezone, now=self._clock.now())
        async with self._tools.running(claim, timezone):
            end = await _run_prompt(session, prompt)
        await self._finish(claim, end)

    async def _finish(self, claim: Claim, end: Finished | Failed) -> None:
        match end:
            case Finished():
                await self._store_reply(claim, end)
            case Failed(kind=FailureKind.ABORTED) if self._is_stopping:
                await self._database.insist(give_back, claim, now=self._clock.now())
            case Failed():
                await self._store_failure(claim, end)
            case _:
                assert_never(end)

    async def _store_reply(self, claim: Claim, end: Finished) -> None:
        done = RunEnd(
            state=RunState.SUCCEEDED,
            provider=end.provider,
            model=end.model,
            input_tokens=end.input_tokens,
            output_tokens=end.output_tokens,
        )
        cut = await _cut_ahead(self._rules.cuts[claim.chat.key.channel], end.text)
        stands = await self._database.insist(
            answer_turn, claim, done, end.text, cut, now=self._clock.now()
        )
        log.info("run_succeeded", extra={"is_used": stands})
        await self._owner.over(Episode.MODEL_REFUSED, Episode.MODEL_FAILING, Episode.HOST_BROKEN)

    async def _store_failure(self, claim: Claim, end: Failed) -> None:
        log.warning("run_failed", extra={"kind": end.kind, "detail": end.detail})
        failed = RunEnd(
            state=_RUN_STATES.get(end.kind, RunState.FAILED),
            reason=end.kind,
            error=end.detail,
            provider=end.provider,
            model=end.model,
        )
        notice = Notice(
            text=lambda turn: texts.failure_text(end.kind, turn),
            cut=self._rules.cuts[claim.chat.key.channel],
        )
        await self._database.insist(
            fail_turn,
            claim,
            failed,
            notice,
            now=self._clock.now(),
            begins_session=end.kind is FailureKind.CONTEXT,
        )
        if end.kind in _FOR_OPERATOR:
            await self._owner.tell(*_FOR_OPERATOR[end.kind])

    async def _refuse(self, chat: ChatKey, detail: str) -> None:
        log.warning("host_not_ready", extra={"detail": detail})
        end = RunEnd(state=RunState.FAILED, reason="host_not_ready", error=detail)
        notice = Notice(text=texts.not_ready_text, cut=self._rules.cuts[chat.channel])
        await self._database.insist(
            refuse_turn,
            chat,
            end,
            notice,
            owner=self._rules.owner_id,
            now=self._clock.now(),
        )
        await self._owner.tell(Episode.HOST_BROKEN, texts.HOST_BROKEN)

    async def _say(self, chat: ChatKey, text: str) -> None:
        await self._database.insist(self._store_notice, chat, text)

    def _store_notice(self, tx: Transaction, chat: ChatKey, text: str) -> None:
        cut = self._rules.cuts[chat.channel]
        store_text(tx, chat, DeliveryKind.NOTICE, text, cut, now=self._clock.now())


async def _cut_ahead(cut: Cut, reply: str) -> Cut:
    """A cut that has done the reply already: Markdown takes long, and the writer serves all."""
    if len(reply) > _LONG_REPLY:
        pieces = await asyncio.to_thread(cut, reply, is_markdown=True)
    else:
        pieces = cut(reply, is_markdown=True)

    def cut_again(text: str, *, is_markdown: bool) -> tuple[RichText, ...]:
        return pieces if is_markdown and text == reply else cut(text, is_markdown=is_markdown)

    return cut_again


async def _run_prompt(session: HostSession, prompt: Prompt) -> Finished | Failed:
    end: Finished | Failed = Failed(kind=FailureKind.DIED, detail="no end event")
    async with aclosing(session.prompt(prompt)) as events:
        async for event in events:
            match event:
                case Finished() | Failed():
                    end = event
                case TextDelta() | ToolCall() | ToolResult():
                    pass  # notices; the reply comes whole with Finished
                case _:
                    assert_never(event)
    return end
