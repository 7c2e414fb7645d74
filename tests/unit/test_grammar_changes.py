"""What the offline host makes of messages about reminders that exist."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from gateway.domain.schedule_forms import describe
from gateway.hosts.builtin.grammar import understand
from gateway.hosts.builtin.intents import (
    Act,
    AskBack,
    Deed,
    Done,
    Fragment,
    Intent,
    Latest,
    Move,
    Numbers,
    Remind,
    Rename,
    Snooze,
    Target,
    Unknown,
    WhichOne,
)

BERLIN = ZoneInfo("Europe/Berlin")
MONDAY = datetime(2026, 11, 30, 10, 0, tzinfo=BERLIN)
TWO = Numbers(numbers=(2,))


@pytest.mark.parametrize(
    "text", ["make 2 an hour later", "move 2 30 minutes later", "move 2 an hour earlier"]
)
def test_a_shift_from_its_own_time_is_not_counted_from_now(text: str) -> None:
    assert isinstance(understand(text, now=MONDAY, zone=BERLIN), AskBack | Fragment)


@pytest.mark.parametrize(
    ("text", "clock"),
    [("move 2 to 9", "9"), ("move 2 to 17:30", "17:30"), ("change 2 to 9am", "9am"),
     ("move 2 to tomorrow at 9", None)],
)  # fmt: skip
def test_a_bare_clock_time_is_handed_on_as_it_was_said(text: str, clock: str | None) -> None:
    intent = understand(text, now=MONDAY, zone=BERLIN)
    assert isinstance(intent, Move)
    assert intent.clock == clock


THREE = Numbers(numbers=(3,))


def read(text: str) -> Intent:
    return understand(text, now=MONDAY, zone=BERLIN)


def local(moment: datetime) -> str:
    return f"{moment.astimezone(BERLIN):%m-%d %H:%M}"


@pytest.mark.parametrize(
    ("message", "deed", "target"),
    [
        ("pause 2", Deed.PAUSE, TWO),
        ("please pause reminder 2", Deed.PAUSE, TWO),
        ("could you pause #2?", Deed.PAUSE, TWO),
        ("put 2 on hold", Deed.PAUSE, TWO),
        ("pause 2 and 3", Deed.PAUSE, Numbers(numbers=(2, 3))),
        ("pause it", Deed.PAUSE, Latest()),
        ("turn off alarm 2", Deed.PAUSE, TWO),
        ("turn on alarm 2", Deed.RESUME, TWO),
        ("resume 2", Deed.RESUME, TWO),
        ("unpause reminder number 2", Deed.RESUME, TWO),
        ("resume that reminder", Deed.RESUME, Latest()),
        ("run 2 now", Deed.RUN_NOW, TWO),
        ("run reminder 2", Deed.RUN_NOW, TWO),
        ("send 2 now", Deed.RUN_NOW, TWO),
        ("show reminder 2", Deed.GET, TWO),
        ("show 2", Deed.GET, TWO),
        ("show me reminder number 2 please", Deed.GET, TWO),
        ("what is #2?", Deed.GET, TWO),
        ("when is reminder 2 due?", Deed.GET, TWO),
        ("is reminder 2 paused?", Deed.GET, TWO),
        ("reminder 2", Deed.GET, TWO),
        ("history of 2", Deed.HISTORY, TWO),
        ("show the history of reminder 2", Deed.HISTORY, TWO),
        ("what happened to 2?", Deed.HISTORY, TWO),
        ("when did 2 fire last?", Deed.HISTORY, TWO),
        ("stop that", Deed.CANCEL, Latest()),
        ("stop that reminder", Deed.CANCEL, Latest()),
        ("please stop this one", Deed.CANCEL, Latest()),
        ("cancel the one", Deed.CANCEL, Latest()),
        ("cancel one", Deed.CANCEL, Numbers(numbers=(1,))),
        ("Stop it!", Deed.CANCEL, Latest()),
        ("cancel that", Deed.CANCEL, Latest()),
        ("delete it", Deed.CANCEL, Latest()),
        ("don't remind me of that anymore", Deed.CANCEL, Latest()),
    ],
)
def test_a_deed_is_read_with_what_it_is_done_to(message: str, deed: Deed, target: Target) -> None:
    assert read(message) == Act(deed=deed, target=target)


@pytest.mark.parametrize(
    ("message", "target", "until"),
    [
        ("snooze 2 for 10 minutes", TWO, "11-30 10:10"),
        ("snooze reminder #2 10m", TWO, "11-30 10:10"),
        ("snooze 2 10 minutes", TWO, "11-30 10:10"),
        ("snooze 2 by an hour", TWO, "11-30 11:00"),
        ("snooze 2 until 5", TWO, "11-30 17:00"),
        ("snooze #2 until tomorrow at 9", TWO, "12-01 09:00"),
        ("snooze 2, 3 and 4 until tomorrow", Numbers(numbers=(2, 3, 4)), "12-01 09:00"),
        ("snooze #2", TWO, "11-30 10:10"),
        ("snooze that 10 min", Latest(), "11-30 10:10"),
        ("snooze it until 5pm", Latest(), "11-30 17:00"),
        ("snooze", Latest(), "11-30 10:10"),
        ("Snooze!", Latest(), "11-30 10:10"),
        ("snooze 20 minutes", Latest(), "11-30 10:20"),
        ("snooze for another hour please", Latest(), "11-30 11:00"),
        ("again in 10 minutes", Latest(), "11-30 10:10"),
        ("remind me again in 10 minutes", Latest(), "11-30 10:10"),
        ("remind me in 10 minutes again", Latest(), "11-30 10:10"),
        ("in 10 minutes remind me again", Latest(), "11-30 10:10"),
        ("remind me at 5 once again", Latest(), "11-30 17:00"),
        ("remind me one more time at 5", Latest(), "11-30 17:00"),
        ("remind me of that tomorrow at 9", Latest(), "12-01 09:00"),
        ("remind me tomorrow at 9 about this", Latest(), "12-01 09:00"),
        ("snooze this one for 5 minutes", Latest(), "11-30 10:05"),
        ("remind me about it again in an hour", Latest(), "11-30 11:00"),
    ],
)
def test_a_snooze_is_read_with_its_end(message: str, target: Target, until: str) -> None:
    intent = read(message)
    assert isinstance(intent, Snooze), intent
    assert intent.target == target
    assert local(intent.until) == until
    assert not intent.is_doubtful


def test_a_number_that_may_be_minutes_is_marked() -> None:
    intent = read("snooze 10")
    assert isinstance(intent, Snooze)
    assert intent.target == Numbers(numbers=(10,))
    assert intent.is_doubtful


@pytest.mark.parametrize(
    ("message", "target", "first", "rhythm"),
    [
        ("move reminder 2 to 5pm", TWO, "11-30 17:00", ""),
        ("move 2 to 9", TWO, "11-30 21:00", ""),
        ("move reminder #2 from 4pm to 5pm", TWO, "11-30 17:00", ""),
        ("change #2 to tomorrow at 9", TWO, "12-01 09:00", ""),
        ("change the time of 2 to 5pm", TWO, "11-30 17:00", ""),
        ("postpone 2 to tomorrow at 9", TWO, "12-01 09:00", ""),
        ("push 2 back to tomorrow at 9", TWO, "12-01 09:00", ""),
        ("reschedule 2 for tomorrow", TWO, "12-01 09:00", ""),
        ("reschedule 2 tomorrow at 9", TWO, "12-01 09:00", ""),
        ("reschedule 3 to every monday at 8", THREE, "12-07 08:00", "weekly"),
        ("move 2 to every weekday at 7:15", TWO, "12-01 07:15", "weekdays"),
        ("make 2 weekly", TWO, "12-07 09:00", "weekly"),
        ("can you move 2 to 5pm?", TWO, "11-30 17:00", ""),
        ("make it 9:30 instead", Latest(), "11-30 21:30", ""),
        ("no, make it 9:30", Latest(), "11-30 21:30", ""),
        ("make that 5pm instead of 4, please", Latest(), "11-30 17:00", ""),
        ("make it every day at 8", Latest(), "12-01 08:00", "daily"),
        ("change that to tomorrow at 9", Latest(), "12-01 09:00", ""),
    ],
)
def test_a_new_time_is_read(message: str, target: Target, first: str, rhythm: str) -> None:
    intent = read(message)
    assert isinstance(intent, Move), intent
    assert intent.target == target
    assert local(intent.when.at) == first
    assert describe(intent.when.schedule, BERLIN, now=MONDAY) == rhythm


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("rename 2 to call dad", "call dad"),
        ("rename 2 to Call Dad at 5", "Call Dad at 5"),
        ("rename reminder #2 as say thanks", "say thanks"),
        ("please rename 2 to call dad", "call dad"),
        ('change the text of reminder 2 to "Buy Milk"', "Buy Milk"),
        ("rename 2 to buy\n- milk\n- eggs", "buy\n- milk\n- eggs"),
        ("rename 2 to " + "x" * 500, "x" * 500),
    ],
)
def test_a_new_text_is_read_as_it_was_typed(message: str, text: str) -> None:
    assert read(message) == Rename(number=2, text=text)


@pytest.mark.parametrize("message", ["done", "Done!", "ok done", "all done", "I did it", "✅"])
def test_done_is_read(message: str) -> None:
    assert read(message) == Done()


@pytest.mark.parametrize(
    ("message", "part"),
    [
        ("move 2 by 10 minutes", "the new time itself"),
        ("push 2 back an hour", "the new time itself"),
        ("postpone 2 by an hour", "the new time itself"),
        ("move 2 for 10 minutes", "the new time itself"),
        ("move 2 for 2h", "the new time itself"),
        ("move 2 by 5pm", "the new time itself"),
        ("make it 10 minutes", "the new time itself"),
        ("move 2 to the garage", "rename 2 to call dad"),
        ("change 2 to call dad", "rename 2 to call dad"),
        ("change 2 to call dad at 5pm", "rename 2 to call dad"),
        ("move 2", "move 2 to tomorrow at 9:00"),
        ("rename 2", "rename 2 to call dad"),
        ("move 2 and 3 to 5pm", "one thing at a time"),
        ("move 2 to yesterday", "already passed"),
        ("move 2 to tomorrow or friday", "move 2 to tomorrow at 9:00"),
        ("make it friday or saturday", "two days"),
        ("move 2 to every full moon", "move 2 to tomorrow at 9:00"),
        ("pause 2 until monday", "resume 2"),
        ("snooze 2 soon", "snooze 2 for 10 minutes"),
        ("snooze mum", "snooze 2 for 10 minutes"),
        ("snooze 2 for 10 seconds", "at least 1 minute"),
        ("snooze 2 every day at 8", "one time"),
        ("remind me again every day at 8", "one moment"),
        ("later", "remind me again in 10 minutes"),
        ("again", "remind me again in 10 minutes"),
        ("reminder 2 at 5pm", "move 2 to 5pm"),
        ("reminder 2 to tomorrow at 9", "move 2 to tomorrow at 9"),
    ],
)
def test_what_is_no_whole_change_is_asked_about(message: str, part: str) -> None:
    intent = read(message)
    assert isinstance(intent, AskBack), intent
    assert part in intent.question


@pytest.mark.parametrize(
    ("message", "part"),
    [
        ("pause", '"pause 2"'),
        ("resume", '"resume 2"'),
        ("stop", '"cancel 2"'),
        ("cancel", '"cancel 2"'),
        ("pause the dentist reminder", '"pause 2"'),
        ("pause all", "pause 2 and 3"),
        ("pause everything", "pause 2 and 3"),
        ("resume all my reminders", "resume 2 and 3"),
        ("change the dentist reminder to 5pm", '"move 2 to tomorrow at 9:00"'),
        ("forget it", '"cancel 2"'),
        ("undo", '"cancel 2"'),
        ("move all to 5pm", '"move 2 to tomorrow at 9:00"'),
        ("rename it to call dad", '"move 2 to tomorrow at 9:00"'),
        ("stop reminding me about the pills", '"cancel 2"'),
        ("don't remind me tomorrow", '"cancel 2"'),
        ("pause " + " and ".join(str(number) for number in range(1, 30)), '"pause 2"'),
    ],
)
def test_which_reminder_is_meant_is_asked_by_number(message: str, part: str) -> None:
    intent = read(message)
    assert isinstance(intent, WhichOne), intent
    assert part in intent.question


@pytest.mark.parametrize(
    "message",
    [
        "I rescheduled 2 meetings",
        "I'll move 2 to 5pm",
        "she said stop it",
        "more coffee please",
        "again and again",
        "get it",
        "change jobs",
        "change it tomorrow",
        "bring it tomorrow",
        "please don't cancel 2",
        "how do I cancel 2?",
        "don't move 2 to 5pm",
        "what is a pause?",
        "my history teacher",
        "it is 9:30 instead",
        "I am done with it",
        "done deal?",
        "did 2",
        "show me the money",
        "what happened",
        "snoozing is fun",
        "make it so",
        "stop the music",
        "pause the video",
        "run to the store",
        "move the meeting to 5pm",
        "move 10 boxes tomorrow at 9",
        "run 5 km tomorrow at 9",
        "resume my work tomorrow at 9",
        "set 2 alarms for 5pm",
    ],
)
def test_what_only_looks_like_a_change_changes_nothing(message: str) -> None:
    intent = read(message)
    assert isinstance(intent, Unknown | Fragment | AskBack)
    assert not isinstance(intent, AskBack) or "write: remind me" in intent.question


def test_the_forms_in_the_questions_are_understood() -> None:
    asked = read("change 2 to call dad")
    assert isinstance(asked, AskBack)
    assert "move 2 to tomorrow at 9:00" in asked.question
    assert isinstance(read("move 2 to tomorrow at 9:00"), Move)
    assert isinstance(read("rename 2 to call dad"), Rename)
    assert isinstance(read("snooze 2 for 10 minutes"), Snooze)
    assert isinstance(read("snooze 2 until tomorrow at 9:00"), Snooze)
    assert isinstance(read("remind me every day at 8:00 to stretch"), Remind)
