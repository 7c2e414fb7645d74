"""What becomes of a run: its reply, its failure, and who hears of it, written down in T3."""

import asyncio
import logging
from collections.abc import Mapping
from typing import assert_never

from gateway.domain.message import ChannelName, ChatKey
from gateway.domain.richtext import RichText
from gateway.domain.turn import RunState, Trigger
from gateway.engine import texts
from gateway.engine.clock import Clock
from gateway.engine.owner import Episode, OwnerNotices
from gateway.hosts.base import Failed, FailureKind, Finished
from gateway.store.database import Database
from gateway.store.deliveries import Cut
from gateway.store.ending import (
    Notice,
    RunEnd,
    answer_turn,
    break_off,
    fail_turn,
    give_back,
    refuse_turn,
)
from gateway.store.turns import Claim

log = logging.getLogger(__name__)

_LONG_REPLY = 8 * 1024
"""Characters of a reply that are cut in a thread of their own, so that nobody waits for it."""

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


class RunEnds:
    """Stores how runs end. A failed run of a person's message is told to them at once; what the
    other turns do then is decided where it is stored.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        owner: OwnerNotices,
        cuts: Mapping[ChannelName, Cut],
    ) -> None:
        self._database = database
        self._clock = clock
        self._owner = owner
        self._cuts = cuts

    async def finish(self, claim: Claim, end: Finished | Failed, *, is_stopping: bool) -> None:
        """Store what a run came to; one that a planned stop aborted goes back into the queue."""
        match end:
            case Finished():
                await self._store_reply(claim, end)
            case Failed(kind=FailureKind.ABORTED) if is_stopping:
                await self.give_back(claim)
            case Failed():
                await self.fail(claim, end)
            case _:
                assert_never(end)

    async def give_back(self, claim: Claim) -> None:
        """Take a turn back into the queue, unharmed."""
        await self._database.insist(give_back, claim, now=self._clock.now())

    async def fail(self, claim: Claim, end: Failed) -> None:
        """Store a failed run; the operator hears of what only they can mend."""
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
            cut=self._cuts[claim.chat.key.channel],
        )
        try:
            await self._database.insist(
                fail_turn,
                claim,
                failed,
                notice,
                now=self._clock.now(),
                begins_session=end.kind is FailureKind.CONTEXT,
            )
        except Exception:
            log.exception("failure_not_stored")
            await self._break_off(claim, failed)
        if end.kind in _FOR_OPERATOR:
            await self._owner.tell(*_FOR_OPERATOR[end.kind])

    async def refuse(self, chat: ChatKey, trigger: Trigger, detail: str, *, owner_id: str) -> None:
        """The session that the chat's head turn needs was not ready."""
        log.warning("host_not_ready", extra={"detail": detail})
        end = RunEnd(state=RunState.FAILED, reason="host_not_ready", error=detail)
        notice = Notice(text=texts.not_ready_text, cut=self._cuts[chat.channel])
        await self._database.insist(
            refuse_turn,
            (chat, trigger),
            end,
            notice,
            owner=owner_id,
            now=self._clock.now(),
        )
        await self._owner.tell(Episode.HOST_BROKEN, texts.HOST_BROKEN)

    async def _store_reply(self, claim: Claim, end: Finished) -> None:
        done = RunEnd(
            state=RunState.SUCCEEDED,
            provider=end.provider,
            model=end.model,
            input_tokens=end.input_tokens,
            output_tokens=end.output_tokens,
        )
        cut = await _cut_ahead(self._cuts[claim.chat.key.channel], end.text)
        stands = await self._database.insist(
            answer_turn, claim, done, end.text, cut, now=self._clock.now()
        )
        log.info("run_succeeded", extra={"is_used": stands})
        await self._owner.over(Episode.MODEL_REFUSED, Episode.MODEL_FAILING, Episode.HOST_BROKEN)

    async def _break_off(self, claim: Claim, end: RunEnd) -> None:
        """A turn whose end cannot be stored would hold up its chat for good."""
        text = texts.failure_text(FailureKind.ERROR, claim.turn)
        if claim.trigger is Trigger.JOB:
            text = claim.text or text
        await self._database.insist(break_off, claim, end, text, now=self._clock.now())


async def _cut_ahead(cut: Cut, reply: str) -> Cut:
    """A cut that has done the reply already: Markdown takes long, and the writer serves all."""
    if len(reply) > _LONG_REPLY:
        pieces = await asyncio.to_thread(cut, reply, is_markdown=True)
    else:
        pieces = cut(reply, is_markdown=True)

    def cut_again(text: str, *, is_markdown: bool) -> tuple[RichText, ...]:
        return pieces if is_markdown and text == reply else cut(text, is_markdown=is_markdown)

    return cut_again
