"""Random days of one chat's deliveries in a real store: whatever happens, the promises hold."""

import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sqlalchemy import Row, Table, select

from gateway.domain.delivery import (
    REPEAT_MARK,
    DeliveryKind,
    Malformed,
    Moved,
    NotSent,
    NotSentReason,
    Rejected,
    SendOutcome,
    Sent,
    Unknown,
)
from gateway.domain.richtext import RichText
from gateway.store.chats import ensure_chat, note_message
from gateway.store.database import Transaction, open_engine
from gateway.store.deliveries import NewDelivery, release_channel, store_delivery
from gateway.store.firing import fire_due
from gateway.store.jobs import Created, cancel_job, create_job
from gateway.store.schema import chunks, deliveries, events, jobs, metadata
from gateway.store.sending import Wait, begin_send, finish_send, recover_sends
from gateway.store.stopping import stop_chat
from gateway.store.wire import ToSend
from tests.factories import CHAT, NOW, SERVED, Door, fire_rules, new_job, send_rules

OUTCOMES: st.SearchStrategy[SendOutcome] = st.one_of(
    st.just(Sent(external_id="1")),
    st.just(Sent(external_id="2")),
    st.sampled_from(NotSentReason).map(lambda reason: NotSent(reason=reason)),
    st.just(Malformed(reason="entities")),
    st.just(Rejected(reason="chat not found")),
    st.just(Moved(to="-1009001")),
    st.booleans().map(lambda answered: Unknown(reason="500", answered=answered)),
)
SETTLED = ("sent", "partial", "failed", "dropped", "suppressed")


class Deliveries(RuleBasedStateMachine):
    """One chat, several senders, every answer a platform gives, crashes, /stop, and time."""

    @initialize()
    def begin(self) -> None:
        self._directory = tempfile.TemporaryDirectory()
        self._engine = open_engine(Path(self._directory.name) / "a.db", is_read_only=False)
        self._connection = self._engine.connect()
        self._connection.begin()  # and never committed: durability is not looked at here
        metadata.create_all(self._connection)
        self.now = NOW
        self.door = Door()
        self.terms = send_rules(self.door)
        self.wire: ToSend | None = None
        self.went_out: dict[int, list[int]] = {}
        self._write(lambda tx: ensure_chat(tx, CHAT, is_group=False, now=NOW))

    def teardown(self) -> None:
        if hasattr(self, "_engine"):
            self._connection.close()
            self._engine.dispose()
            self._directory.cleanup()

    def _write(self, transition: Any) -> Any:
        return transition(Transaction(self._connection))

    def _rows(self, table: Table) -> list[Row[Any]]:
        return self._write(  # type: ignore[no-any-return]
            lambda tx: tx.connection.execute(select(table).order_by(table.c.id)).all()
        )

    @rule(pieces=st.integers(1, 3), kind=st.sampled_from(DeliveryKind), is_edit=st.booleans())
    def store(self, pieces: int, kind: DeliveryKind, is_edit: bool) -> None:
        bodies = tuple(RichText(text=f"piece {number}") for number in range(pieces))
        # A reminder's text is made of the jobs that it carries.
        kind = DeliveryKind.NOTICE if kind is DeliveryKind.REMINDER else kind
        edits = "77" if is_edit and pieces == 1 else None
        new = NewDelivery(chat=CHAT, kind=kind, text="text", chunks=bodies, edits=edits)
        self._write(lambda tx: store_delivery(tx, new, now=self.now))

    @rule(text=st.sampled_from(["tea", "bread", "long|text"]))
    def remind(self, text: str) -> None:
        new = new_job(text, at=self.now)

        def create(tx: Transaction) -> None:
            created = create_job(tx, new, now=self.now)
            assert not isinstance(created, Created) or created.job.text == text
            fire_due(tx, fire_rules(self.door), now=self.now)

        self._write(create)

    @rule(seconds=st.sampled_from([1, 3, 60, 400, 90_000]))
    def wait(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @precondition(lambda self: self.wire is None)
    @rule()
    def send(self) -> None:
        step = self._write(lambda tx: begin_send(tx, CHAT, self.terms, now=self.now))
        if isinstance(step, Wait):
            assert step.until is None or step.until > self.now
            return
        self.wire = step
        marked = step.body.text.startswith(REPEAT_MARK)
        assert marked == (step.chunk.may_have_arrived and step.edits is None)
        assert not step.buttons or step.kind is DeliveryKind.REMINDER
        earlier = self.went_out.setdefault(step.delivery, [])
        assert not earlier or step.chunk.number >= earlier[-1]
        earlier.append(step.chunk.number)

    @precondition(lambda self: self.wire is not None)
    @rule(outcome=OUTCOMES)
    def answer(self, outcome: SendOutcome) -> None:
        step, self.wire = self.wire, None
        assert step is not None
        self._write(lambda tx: finish_send(tx, step, outcome, self.terms, now=self.now))

    @rule()
    def crash(self) -> None:
        count = self._write(lambda tx: recover_sends(tx, SERVED, self.terms, now=self.now))
        assert count == (self.wire is not None)
        self.wire = None

    @rule()
    def stop(self) -> None:
        self._write(lambda tx: stop_chat(tx, CHAT, now=self.now))
        assert not [
            row for row in self._rows(deliveries) if row.kind == "reply" and row.state == "pending"
        ]

    @rule()
    def write_again(self) -> None:
        self._write(lambda tx: note_message(tx, CHAT, now=self.now))
        self._write(lambda tx: release_channel(tx, CHAT.channel))

    @rule(number=st.integers(1, 5))
    def cancel(self, number: int) -> None:
        self._write(lambda tx: cancel_job(tx, CHAT, number, now=self.now))

    @rule(is_out=st.booleans())
    def decide(self, is_out: bool) -> None:
        self.door.out = {CHAT} if is_out else set()

    @invariant()
    def the_rows_agree_with_each_other(self) -> None:
        of_delivery: dict[int, list[Row[Any]]] = {}
        for chunk in self._rows(chunks):
            of_delivery.setdefault(chunk.delivery_id, []).append(chunk)
        on_the_wire = 0
        for row in self._rows(deliveries):
            own = of_delivery.get(row.id, [])
            sending = [chunk for chunk in own if chunk.state == "sending"]
            on_the_wire += len(sending)
            assert (row.state == "sending") == bool(sending)
            assert (row.settled_at is not None) == (row.state in SETTLED)
            still_open = [
                chunk
                for chunk in own
                if chunk.state in ("pending", "sending")
                or (chunk.state == "unknown" and chunk.not_before is not None)
            ]
            assert bool(still_open) == (row.state not in SETTLED)
            if row.state == "sent":
                assert {chunk.state for chunk in own} == {"sent"}
                assert row.reason is None
            if row.state in ("failed", "partial", "dropped"):
                assert row.reason is not None
        assert on_the_wire == (self.wire is not None)

    @invariant()
    def a_one_shot_is_open_only_while_its_text_is(self) -> None:
        is_open = [row for row in self._rows(deliveries) if row.settled_at is None]
        for job in self._rows(jobs):
            if job.state == "active" and job.next_slot_at is None:
                assert is_open
            assert (job.ended_at is None) == (job.state in ("active", "paused"))

    @invariant()
    def the_journal_tells_the_whole_story(self) -> None:
        last = {(event.subject, event.subject_id): event.after for event in self._rows(events)}
        for row in self._rows(deliveries):
            assert last["deliveries", row.id] == row.state
        for row in self._rows(jobs):
            assert last["jobs", row.id] == row.state


TestDeliveries = Deliveries.TestCase
TestDeliveries.settings = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
