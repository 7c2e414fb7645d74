"""The state machine of one prompt, moved by hand: no process, no clock."""

from gateway.hosts.base import Deadlines, Failed, FailureKind, Finished, HostEvent
from gateway.hosts.reply import Origin
from gateway.hosts.rpc_frames import (
    Answer,
    CompactionBegan,
    CompactionEnded,
    Frame,
    HostState,
    OtherFrame,
    Piece,
    Response,
    RetryAnnounced,
    RunEnded,
    RunSettled,
    RunStarted,
)
from gateway.hosts.rpc_run import Inquiry, Phase, RunProgress

DEADLINES = Deadlines(acknowledge=15, silence=120, turn=1800)


class Driven:
    """A RunProgress with a clock that only moves by hand."""

    def __init__(self) -> None:
        self.now = 100.0
        self.run = RunProgress(DEADLINES, now=self.now)

    def take(self, *frames: Frame, after: float = 0.0) -> HostEvent | None:
        """Take frames, `after` seconds later; returns what came of the last."""
        self.now += after
        event: HostEvent | None = None
        for frame in frames:
            event = self.run.take(frame, now=self.now)
        return event

    def wait(self) -> Finished | Failed | Inquiry:
        """Let the time pass until something is due."""
        self.now = self.run.due
        return self.run.expire(now=self.now)

    @property
    def patience(self) -> float:
        return self.run.due - self.now


def taken(disposition: str | None = None, error: str | None = None) -> Response:
    return Response(id="g1", command="prompt", error=error, disposition=disposition, state=None)


def ended(
    text: str = "hi", *, reason: str = "stop", error: str | None = None, retry: bool | None = None
) -> RunEnded:
    answer = Answer(text=text, stop_reason=reason, error=error, origin=Origin())
    return RunEnded(answer=answer, will_retry=retry)


FAILED = ended("", reason="error", error="503 busy")
OVERFLOWN = ended("", reason="error", error="context_length_exceeded")


def kind_of(event: object) -> FailureKind:
    assert isinstance(event, Failed)
    return event.kind


def test_a_settling_host_ends_its_run_when_it_settles() -> None:
    driven = Driven()

    assert driven.take(taken("started"), RunStarted(), ended(retry=False)) is None
    assert driven.take(RunSettled()) == Finished(text="hi")


def test_an_old_host_ends_its_run_at_once() -> None:
    assert Driven().take(taken(), RunStarted(), ended()) == Finished(text="hi")


def test_a_host_is_known_to_settle_by_its_end_as_well() -> None:
    driven = Driven()

    assert driven.take(taken(), RunStarted(), ended(retry=False)) is None
    assert driven.take(RunSettled()) == Finished(text="hi")


def test_what_an_earlier_run_left_in_the_pipe_ends_no_later_one() -> None:
    driven = Driven()

    assert driven.take(ended("stale"), RunSettled()) is None
    assert driven.take(taken("started"), RunStarted(), ended("new", retry=False)) is None
    assert driven.take(RunSettled()) == Finished(text="new")


def test_the_last_try_counts() -> None:
    driven = Driven()
    driven.take(taken("started"), RunStarted(), ended("", reason="error", error="x", retry=True))
    driven.take(RetryAnnounced(), RunStarted(), ended("mended", retry=False))

    assert driven.take(RunSettled()) == Finished(text="mended")


def test_an_old_hosts_error_counts_after_a_short_wait_for_its_repair() -> None:
    driven = Driven()

    assert driven.take(taken(), RunStarted(), FAILED) is None
    assert driven.patience < 1
    assert kind_of(driven.wait()) is FailureKind.ERROR


def test_an_old_host_that_announces_a_repair_is_waited_for() -> None:
    for repair in (RetryAnnounced(), CompactionBegan()):
        driven = Driven()
        driven.take(taken(), RunStarted(), FAILED)

        assert driven.take(repair, after=0.1) is None
        assert driven.patience == DEADLINES.silence
        assert driven.take(RunStarted(), ended("mended")) == Finished(text="mended")


def test_an_old_host_whose_repair_fails_gives_the_error() -> None:
    driven = Driven()
    driven.take(taken(), RunStarted(), OVERFLOWN, CompactionBegan())

    assert driven.take(CompactionEnded(will_retry=False), after=30) is None
    assert kind_of(driven.wait()) is FailureKind.CONTEXT


def test_a_compaction_behind_which_the_run_goes_on_is_no_end() -> None:
    driven = Driven()
    driven.take(taken(), RunStarted(), OVERFLOWN, CompactionBegan())
    driven.take(CompactionEnded(will_retry=True))

    assert driven.patience == DEADLINES.silence


def test_an_acknowledgement_may_wait_for_a_compaction() -> None:
    driven = Driven()

    driven.take(CompactionBegan(), after=1)
    assert driven.patience == DEADLINES.silence
    driven.take(CompactionEnded(will_retry=False), after=60)
    assert driven.patience == DEADLINES.acknowledge


def test_the_certain_outcome_survives_the_end_of_the_output() -> None:
    driven = Driven()
    assert driven.run.conclude_at_eof() is None
    driven.take(taken(), RunStarted())
    assert driven.run.conclude_at_eof() is None
    driven.take(FAILED)

    assert kind_of(driven.run.conclude_at_eof()) is FailureKind.ERROR


def test_m01_no_acknowledgement_is_silence() -> None:
    driven = Driven()

    assert driven.patience == DEADLINES.acknowledge
    assert kind_of(driven.wait()) is FailureKind.SILENT


def test_m01_any_frame_is_a_sign_of_life_but_the_turn_ends_in_time() -> None:
    driven = Driven()
    driven.take(taken("started"), RunStarted())
    for _ in range(17):
        driven.take(OtherFrame(type="message_update"), after=100)
        assert driven.patience > 0

    assert driven.patience == 100
    assert kind_of(driven.wait()) is FailureKind.TIMED_OUT


def test_an_old_host_that_starts_no_run_is_asked_for_one() -> None:
    driven = Driven()
    driven.take(taken())

    assert isinstance(driven.wait(), Inquiry)
    idle = HostState(session_id="s", message_count=0, is_busy=False)
    assert kind_of(driven.run.answer_inquiry(idle, now=driven.now)) is FailureKind.EMPTY


def test_an_old_host_that_is_only_slow_to_start_is_waited_for() -> None:
    driven = Driven()
    driven.take(taken())
    driven.wait()
    busy = HostState(session_id="s", message_count=0, is_busy=True)

    assert driven.run.answer_inquiry(busy, now=driven.now) is None
    assert driven.run.phase is Phase.RUNNING
    assert driven.take(RunStarted(), ended()) == Finished(text="hi")


def test_a_run_that_began_while_the_host_was_asked_goes_on() -> None:
    driven = Driven()
    driven.take(taken())
    driven.wait()
    driven.take(RunStarted(), Piece(text="h"))
    idle = HostState(session_id="s", message_count=0, is_busy=False)

    assert driven.run.answer_inquiry(idle, now=driven.now) is None


def test_a_host_that_does_not_answer_the_question_is_silent() -> None:
    driven = Driven()
    driven.take(taken())
    driven.wait()

    assert kind_of(driven.wait()) is FailureKind.SILENT


def test_a_run_may_begin_before_its_acknowledgement() -> None:
    driven = Driven()

    assert driven.take(RunStarted(), taken("started"), ended(retry=False)) is None
    assert driven.take(RunSettled()) == Finished(text="hi")


def test_a_lost_beginning_does_not_cost_the_end() -> None:
    assert Driven().take(taken(), Piece(text="h"), ended()) == Finished(text="hi")
    assert Driven().take(taken(), ended()) == Finished(text="hi")


def test_an_end_without_a_message_is_empty() -> None:
    driven = Driven()
    driven.take(taken("started"), RunStarted(), RunEnded(answer=None, will_retry=False))

    assert kind_of(driven.take(RunSettled())) is FailureKind.EMPTY


def test_a_reply_cut_at_its_length_is_a_reply() -> None:
    assert Driven().take(taken(), RunStarted(), ended("half", reason="length")) == Finished(
        text="half"
    )


def test_a_run_that_the_host_aborted_is_aborted() -> None:
    event = Driven().take(taken(), RunStarted(), ended("half", reason="aborted"))

    assert kind_of(event) is FailureKind.ABORTED
