"""The worker that runs turns: per chat one at a time, in order, on a session of the pool."""

import asyncio
import logging
import weakref
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, aclosing
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never

from gateway.domain.delivery import DeliveryKind
from gateway.domain.message import ChannelName, ChatKey
from gateway.domain.turn import RunId, Trigger
from gateway.engine import texts
from gateway.engine.clock import Clock
from gateway.engine.lanes import Lanes, Patience
from gateway.engine.owner import OwnerNotices
from gateway.engine.prompts import build_prompt
from gateway.engine.run_ends import RunEnds
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
from gateway.store.chats import Admits
from gateway.store.database import Change, Database, Topic, Transaction
from gateway.store.deliveries import Cut, store_text
from gateway.store.turns import Claim, Head, claim_turn, next_turn, queued_chats

log = logging.getLogger(__name__)

PATIENCE = 10.0
"""Seconds that a chat waits for a session before it is told so."""

_GIVE_BACK = 5.0
"""Seconds that aborted runs have to be written back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterRules:
    """What the router needs besides its partners; `patience` in seconds, `silence` is what a
    check-in comes after.
    """

    owner_id: str
    timezone: str
    cuts: Mapping[ChannelName, Cut]
    admits: Admits
    silence: timedelta
    patience: float = PATIENCE


class Router:
    """Drives the pool from the queue, a chat's turns one at a time.

    Only who wrote sees that something is prepared, or is told that it takes long.
    """

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
        self._typing, owner = notices
        self._rules = rules
        self._ends = RunEnds(database, clock, owner, rules.cuts)
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
                if head.trigger is Trigger.MESSAGE:
                    shown.enter_context(self._typing.hold(chat))
                if not head.is_due:
                    self._held[chat] = shown.pop_all()
                    return head.not_before
                await self._run_head(head)
                shown.close()
        return None

    async def _run_head(self, head: Head) -> None:
        chat = head.chat.key
        try:
            session = await self._ready_session(head)
        except HostNotReadyError as error:
            self._told_to_wait.discard(chat)
            owner_id = self._rules.owner_id
            await self._ends.refuse(chat, head.trigger, str(error), owner_id=owner_id)
            return
        if session is None:
            return
        is_kept = False
        try:
            if head.trigger is Trigger.MESSAGE:
                await self._tell_of_loss(chat, session)
            claim = await self._claim(chat, head.trigger)
            is_kept = (claim is None or await self._run(claim, session)) and session.is_alive
        finally:
            if is_kept:
                self._pool.release(session)
            else:
                await self._pool.discard(session)

    async def _ready_session(self, head: Head) -> HostSession | None:
        """A session for the chat's head turn, lent to us; None = the router stopped while we
        waited.

        Who wrote and waits for long is told so, once for the turn at the head of the queue.
        """
        chat = head.chat.key
        if not self._lanes.is_open:
            return None
        acquiring = asyncio.create_task(
            self._pool.acquire(
                chat, generation=head.chat.session_ref, is_ephemeral=head.trigger.is_isolated
            ),
            name=f"acquire:{chat}",
        )
        self._acquiring.add(acquiring)
        try:
            done, _ = await asyncio.wait({acquiring}, timeout=self._rules.patience)
            if not done and head.trigger is Trigger.MESSAGE and chat not in self._told_to_wait:
                self._told_to_wait.add(chat)
                await self._say(chat, texts.SLOW_START)
            await asyncio.wait({acquiring})
        except BaseException:
            acquiring.cancel()
            raise
        finally:
            self._acquiring.discard(acquiring)
        return None if acquiring.cancelled() else acquiring.result()

    async def _tell_of_loss(self, chat: ChatKey, session: HostSession) -> None:
        if session.lost_context and session not in self._told_of_loss:
            await self._say(chat, texts.LOST_CONTEXT)
            self._told_of_loss.add(session)

    async def _claim(self, chat: ChatKey, trigger: Trigger) -> Claim | None:
        """Claim the chat's next turn; None = there is none that the session which was readied
        for such a trigger can run, or its run was aborted already.
        """
        aborted = self._claiming[chat] = set()
        try:
            claim = await self._database.insist(
                claim_turn,
                chat,
                trigger=trigger,
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
                await self._ends.fail(claim, Failed(kind=FailureKind.ERROR, detail=detail))
                return False
            finally:
                del self._sessions[claim.run]
        return True

    async def _run_to_end(self, claim: Claim, session: HostSession) -> None:
        if not self._lanes.is_open:
            await self._ends.give_back(claim)
            return
        log.info("run_started")
        timezone = claim.chat.timezone or self._rules.timezone
        prompt = build_prompt(
            claim, timezone=timezone, now=self._clock.now(), silence=self._rules.silence
        )
        async with self._tools.running(claim, timezone):
            end = await _run_prompt(session, prompt)
        await self._ends.finish(claim, end, is_stopping=self._is_stopping)

    async def _say(self, chat: ChatKey, text: str) -> None:
        await self._database.insist(self._store_notice, chat, text)

    def _store_notice(self, tx: Transaction, chat: ChatKey, text: str) -> None:
        cut = self._rules.cuts[chat.channel]
        store_text(tx, chat, DeliveryKind.NOTICE, text, cut, now=self._clock.now())


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
