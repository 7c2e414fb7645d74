"""What the offline host makes of everyday messages."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from gateway.domain.schedule import At
from gateway.domain.schedule_forms import describe
from gateway.hosts.builtin.grammar import understand, understand_all
from gateway.hosts.builtin.intents import (
    Act,
    AskBack,
    ClockQuestion,
    Deed,
    Feature,
    Fragment,
    Help,
    Intent,
    ListReminders,
    Move,
    NotYet,
    Numbers,
    Remind,
    Rename,
    SmallTalk,
    Snooze,
    Talk,
    Unknown,
    WhichOne,
)

BERLIN = ZoneInfo("Europe/Berlin")
MONDAY = datetime(2026, 11, 30, 10, 0, tzinfo=BERLIN)


def read(text: str, now: datetime = MONDAY) -> Intent:
    return understand(text, now=now, zone=BERLIN)


def cancelled(numbers: tuple[int, ...]) -> Act:
    return Act(deed=Deed.CANCEL, target=Numbers(numbers=numbers))


@pytest.mark.parametrize(
    ("message", "text", "local"),
    [
        ("remind me to call mum tomorrow at 9", "call mum", "12-01 09:00:00"),
        ("remind me tomorrow at 9 to call mum", "call mum", "12-01 09:00:00"),
        ("tomorrow at 9 remind me to call mum", "call mum", "12-01 09:00:00"),
        ("Remind me at 17:30 to leave.", "leave", "11-30 17:30:00"),
        ("remind me at 5 to call Mum", "call Mum", "11-30 17:00:00"),
        ("remind me at 5 call mum", "call mum", "11-30 17:00:00"),
        ("remind me in 20 minutes to check the oven", "check the oven", "11-30 10:20:00"),
        ("remind me in 3 seconds to stretch", "stretch", "11-30 10:00:03"),
        ("remind me on friday at noon to eat", "eat", "12-04 12:00:00"),
        ("remind me on 5 december at 10 to renew it", "renew it", "12-05 10:00:00"),
        ("remind me about the cake at 5", "the cake", "11-30 17:00:00"),
        ("remind me of mum's birthday on 5 december", "mum's birthday", "12-05 09:00:00"),
        ("remind me that the bread is done at 5pm", "the bread is done", "11-30 17:00:00"),
        ('remind me at 17:30 "call bob at 5"', "call bob at 5", "11-30 17:30:00"),
        ("remind me: in an hour: call bob", "call bob", "11-30 11:00:00"),
        ("remind me - tomorrow - call bob", "call bob", "12-01 09:00:00"),
        ("remind us at 5pm to leave", "leave", "11-30 17:00:00"),
        ("remind me to remind bob at 5pm", "remind bob", "11-30 17:00:00"),
        ("remind me at 5 not to eat", "not to eat", "11-30 17:00:00"),
        ("remind me to take 2 pills in 30 minutes", "take 2 pills", "11-30 10:30:00"),
        ("hi, can you remind me at 5 to call mum please?", "call mum", "11-30 17:00:00"),
        ("Hey, remind me at 5pm to go", "go", "11-30 17:00:00"),
        ("could you please remind me to go at 5pm, thanks", "go", "11-30 17:00:00"),
        ("please at 5pm remind me that it is done", "it is done", "11-30 17:00:00"),
        ("@gateway_bot remind me at 5pm to go", "go", "11-30 17:00:00"),
        ("I have a meeting tomorrow at 9, remind me", "I have a meeting", "12-01 09:00:00"),
        ("set a reminder for 5pm: water plants", "water plants", "11-30 17:00:00"),
        ("set reminder 5pm gym", "gym", "11-30 17:00:00"),
        ("add a reminder to buy milk tomorrow", "buy milk", "12-01 09:00:00"),
        ('set a reminder at 3pm named "Call Bob at 4"', "Call Bob at 4", "11-30 15:00:00"),
        ("I need a reminder to pay rent on friday at noon", "pay rent", "12-04 12:00:00"),
        ("I want to be reminded to stretch in 30 minutes", "stretch", "11-30 10:30:00"),
        ("Reminder: dentist, 3 December 2:30 PM", "dentist", "12-03 14:30:00"),
        ("don't let me forget the oven in 10 minutes", "the oven", "11-30 10:10:00"),
        ("don’t forget to feed the cat tonight at 8", "feed the cat", "11-30 20:00:00"),
        ("remember to call mum at 5pm", "call mum", "11-30 17:00:00"),
        ("ping me in 10 minutes to stretch", "stretch", "11-30 10:10:00"),
        ("wake me at 7", "wake up", "12-01 07:00:00"),
        ("wake me up at 7pm", "wake up", "11-30 19:00:00"),
        ("wake me in 20 minutes", "wake up", "11-30 10:20:00"),
        ("can you wake me up tomorrow at 6:30?", "wake up", "12-01 06:30:00"),
        ("set an alarm for 7am", "alarm", "12-01 07:00:00"),
        ("set a timer for 10 minutes", "timer", "11-30 10:10:00"),
        ("set a 10 minute timer", "timer", "11-30 10:10:00"),
        ("timer 5 minutes", "timer", "11-30 10:05:00"),
        ("and in an hour to call mum", "call mum", "11-30 11:00:00"),
        ("remind me at 5 🎂", "🎂", "11-30 17:00:00"),
        ("remindme at 5pm to go", "go", "11-30 17:00:00"),
        ("rmind me to go at 5pm", "go", "11-30 17:00:00"),
        ("please remnd me at 5pm to go", "go", "11-30 17:00:00"),
        ("Remidn me at 5pm to go", "go", "11-30 17:00:00"),
        ("reminder me at 5pm to go", "go", "11-30 17:00:00"),
        ("remind to go at 5pm", "go", "11-30 17:00:00"),
        ("remidner: go at 5pm", "go", "11-30 17:00:00"),
        ("set a remider for 5pm to go", "go", "11-30 17:00:00"),
        ("remind me again at 5pm to go", "go", "11-30 17:00:00"),
        ('remind me at 5pm "knock twice"', "knock twice", "11-30 17:00:00"),
        ("remind me on 24.12. to call mum", "call mum", "12-24 09:00:00"),
        ("remind me on christmas eve at 6pm to call mum", "call mum", "12-24 18:00:00"),
        ("remind me at 5 to call mum again", "call mum again", "11-30 17:00:00"),
        ("remind me at 5pm to say thanks", "say thanks", "11-30 17:00:00"),
        ("reminder at 5pm for my pills", "my pills", "11-30 17:00:00"),
        ("reminder 2 pills at 5pm", "2 pills", "11-30 17:00:00"),
        ("remind me to cancel 2 subscriptions at 5pm", "cancel 2 subscriptions", "11-30 17:00:00"),
        ("remind me to pause the movie at 5pm", "pause the movie", "11-30 17:00:00"),
        ("remind me to move the car at 5pm", "move the car", "11-30 17:00:00"),
        ("Timer 10 minutes", "timer", "11-30 10:10:00"),
        ("will you remind me at 5pm to call mum?", "call mum", "11-30 17:00:00"),
        ("set up a reminder for me tomorrow at 9 to call bob", "call bob", "12-01 09:00:00"),
        ("remind me once at 5pm to drink", "drink", "11-30 17:00:00"),
        ("remind me at 5pm on the dot to drink", "drink", "11-30 17:00:00"),
        ("remind me to call Bob when it's 5pm", "call Bob", "11-30 17:00:00"),
        ("I have a meeting tomorrow at 9 so remind me", "I have a meeting", "12-01 09:00:00"),
        ("remind me to pay rent friday thanks", "pay rent thanks", "12-04 09:00:00"),
        ("remind me at 5pm to tick list [ ]", "tick list [ ]", "11-30 17:00:00"),
        ("can you remind me at 5pm to ask: all in?", "ask: all in?", "11-30 17:00:00"),
        ("remind me exactly at 5pm to drink", "drink", "11-30 17:00:00"),
        ("remind me at 5 please to call mum", "call mum", "11-30 17:00:00"),
        ("remind me at 5 if possible to call mum", "call mum", "11-30 17:00:00"),
        ("remind me tomorrow anytime to drink", "drink", "12-01 09:00:00"),
        ("remind me at 9pm to turn the lights on", "turn the lights on", "11-30 21:00:00"),
        ("set a reminder for tomorrow 3pm: 2 dozen eggs", "2 dozen eggs", "12-01 15:00:00"),
    ],
)
def test_a_reminder_is_understood(message: str, text: str, local: str) -> None:
    intent = read(message)
    assert isinstance(intent, Remind), intent
    assert intent.text == text
    assert f"{intent.when.at.astimezone(BERLIN):%m-%d %H:%M:%S}" == local


@pytest.mark.parametrize(
    ("message", "text", "first", "rhythm"),
    [
        ("remind me every day at 8 to take my pills", "take my pills", "12-01 08:00", "daily"),
        ("every weekday at 18:30 remind me to leave", "leave", "11-30 18:30", "weekdays"),
        ("remind me every weekday at 18:30 to leave", "leave", "11-30 18:30", "weekdays"),
        (
            "remind me to water the plants every other tuesday at 9",
            "water the plants",
            "12-01 09:00",
            "every 2 weeks",
        ),
        ("set a daily reminder at 8 for my pills", "my pills", "12-01 08:00", "daily"),
        ("daily reminder at 8: pills", "pills", "12-01 08:00", "daily"),
        ("set a weekday alarm for 7", "alarm", "12-01 07:00", "weekdays"),
        ("set a reminder every friday at noon to pay", "pay", "12-04 12:00", "weekly"),
        ("weekly reminder on friday at 5pm to report", "report", "12-04 17:00", "weekly"),
        ("and every day at 8 to take my pills", "take my pills", "12-01 08:00", "daily"),
        ("wake me every weekday at 7", "wake up", "12-01 07:00", "weekdays"),
        ("wake us every day at 6:30", "wake up", "12-01 06:30", "daily"),
        ("remind me on mondays to swim", "swim", "12-07 09:00", "weekly"),
        ("remind me every monday and thursday at 7 to swim", "swim", "12-03 07:00", "Mon, Thu"),
        ("remind me every 90 minutes to stand up", "stand up", "11-30 11:30", "every 90 minutes"),
        ("remind me hourly to drink", "drink", "11-30 11:00", "every hour"),
        (
            "remind me of the rent on the first monday of the month at 9",
            "the rent",
            "12-07 09:00",
            "monthly on the first Mon",
        ),
        (
            "remind me every 2 hours until 6pm to drink water",
            "drink water",
            "11-30 12:00",
            "every 2 hours until Mon 30 Nov 18:00",
        ),
        (
            "please remind me each morning at 7 to stretch, thanks",
            "stretch",
            "12-01 07:00",
            "daily",
        ),
    ],
)
def test_a_series_is_understood(message: str, text: str, first: str, rhythm: str) -> None:
    intent = read(message)
    assert isinstance(intent, Remind), intent
    assert intent.text == text
    assert f"{intent.when.at.astimezone(BERLIN):%m-%d %H:%M}" == first
    assert describe(intent.when.schedule, BERLIN, now=MONDAY) == rhythm


@pytest.mark.parametrize(
    ("message", "part"),
    [
        ("set a recurring reminder at 8 for pills", '"recurring"'),
        ("always remind me at 8 to lock up", '"always"'),
        ("remind me always at 8 to lock up", '"always"'),
        ("remind me at 8 always to lock up", '"always"'),
        ("keep remind me at 8 to lock up", '"keep"'),
        ("remind me regularly to drink at 5", '"regularly"'),
        ("remind me at 5 to drink from time to time", '"from time to time"'),
        ("remind me from now on at 8 to lock up", '"from now on"'),
        ("remind me over and over in 10 minutes to go", '"over and over"'),
        ("remind me every full moon at 9 to howl", '"every full"'),
        ("remind me to stretch every now and then at 5", '"every now"'),
        ("remind me at 5 to check each room", '"each room"'),
        ("remind me every 10 seconds to blink", "once a minute at most"),
        ("remind me twice a day to drink", "every day at 8:00 and 20:00"),
        ("remind me tomorrow at 9 and every day after to go", "one rhythm"),
        ("remind me every day at 25:00 to go", "25:00"),
        ("remind me every day", "remind me every day to call mum"),
        ("and tomorrow at 8 to drink regularly", '"regularly"'),
        ("every day at 8 take pills", "remind me every day at 8 take pills"),
        ("remind me every day at 8 to take my pills twice", '"twice"'),
    ],
)
def test_what_sounds_repeating_and_is_not_understood_is_asked_about(
    message: str, part: str
) -> None:
    intent = read(message)
    assert isinstance(intent, AskBack), intent
    assert part in intent.question


@pytest.mark.parametrize(
    "message",
    [
        "I don't want to be reminded at 5",
        "I don't need a reminder at 5",
        "don't wake me at 7",
        "do not set a reminder for 5pm",
        "you didn't remind me at 5pm",
        "you forgot to remind me at 5pm",
        "I told you to remind me tomorrow at 5",
        "I might need a reminder at 5",
        "weck mich nicht um 7",
        "ich will nicht um 5 erinnert werden",
        "erinnere mich heute Abend nicht an Kerzen",
        "no quiero que me recuerdes a las 5",
        "no necesito un recordatorio a las 5",
    ],
)
def test_what_is_told_or_refused_sets_no_reminder(message: str) -> None:
    intent = read(message)
    assert isinstance(intent, AskBack), intent
    assert "whether you want a reminder" in intent.question


def test_a_rhythm_in_quotes_is_text() -> None:
    intent = read('remind me at 5pm "always look every day"')
    assert isinstance(intent, Remind)
    assert isinstance(intent.when.schedule, At)
    assert intent.text == "always look every day"


@pytest.mark.parametrize(
    ("message", "part"),
    [
        ("remind me to call mum", "remind me tomorrow at 9:00 to call mum"),
        ("remind me at sunset to call mum", "When shall I remind you?"),
        ("remind me at 5", "What shall I remind you of?"),
        ("remind me", "When shall I remind you, and of what?"),
        ("remind me soon", "When shall I remind you, and of what?"),
        ("remind me later", "When shall I remind you, and of what?"),
        ("remind me when I get home", "When shall I remind you, and of what?"),
        ("remind me soon to call bob", "remind me tomorrow at 9:00 to call bob"),
        ("remind me to call bob when I get home", "remind me tomorrow at 9:00 to call bob"),
        ("remind me when I get home to feed it", "remind me tomorrow at 9:00 to feed it"),
        ("remind me twice tomorrow", '"twice"'),
        ("remind me to call bob 3 times tomorrow", '"3 times"'),
        ("remind me again and again in 10 minutes to go", '"again and again"'),
        ("dentist tomorrow at 10, remind me 30 minutes earlier", "at 9:30: dentist"),
        ("remind me 2 hours before", "the time of the reminder itself"),
        ("reminds me of school at 5", 'Begin with "remind me"'),
        ("remind me tomorrow at 24:00 to go", "23:59"),
        ("to call mum tomorrow at 9", "write: remind me to call mum tomorrow at 9"),
        ("5pm call mum", "write: remind me 5pm call mum"),
        ("5/12", "5 December or 12 May"),
        ("tomorrow at midnight", "00:00 or 23:59"),
        ("2", "cancel 2"),
        ("remind me tomorrow please", "What shall I remind you of?"),
        ("set a reminder for 5pm", "What shall I remind you of?"),
        ("remind me tomorrow or friday to go", "two days"),
        ("remind me tomorow at 9 to go", '"tomorrow"'),
        ("remind me yesterday to go", "already passed"),
        ("remind me in -5 minutes to go", "already passed"),
        ("remind me today at 09:00 to go", "Mon 30 Nov 2026 10:00"),
        ("remind me at 5 to go and remind me at 6 to stay", "one reminder a message"),
        ("when I get home remind me to go at 5pm", 'Begin with "remind me"'),
        ("remind bob to call me at 5pm", "remind me at 5pm to tell bob to call me"),
        ("remind bob at 5 about it", "remind me at 5 to tell bob about it"),
        ("remind my wife to call", "remind me tomorrow at 9:00 to tell my wife to call"),
        ("remind bob every day to call", "remind me every day to tell bob to call"),
        ("remind bob", 'Begin with "remind me"'),
        ("call mum tomorrow at 9", "remind me to call mum tomorrow at 9"),
        ("remind me tomorrow at 9: " + "x " * 4000, "too long"),
        ("remind me again", "remind me again in 10 minutes"),
        ("remind me to report what happened yesterday at 5pm", "put the text in quotes"),
        ("remind me yesterday to go", "put the text in quotes"),
    ],
)
def test_what_is_not_whole_is_asked_about(message: str, part: str) -> None:
    intent = read(message)
    assert isinstance(intent, AskBack), intent
    assert part in intent.question


@pytest.mark.parametrize(
    ("message", "part"),
    [
        ("don't remind me at 5", "cancel 2"),
        ("cancel", "cancel 2"),
        ("cancel mum", "cancel 2"),
        ("cancel the last one", "cancel 2"),
        ("cancel 2 at 5", "cancel 2"),
        ("cancel the dentist reminder", "cancel 2"),
        ("cancel 1 " + ", 1".join(str(n) for n in range(40)), "cancel 2"),
        ("cancel all", "by number"),
        ("delete all my reminders", "by number"),
    ],
)
def test_what_to_cancel_is_asked_by_number(message: str, part: str) -> None:
    intent = read(message)
    assert isinstance(intent, WhichOne), intent
    assert part in intent.question


@pytest.mark.parametrize(
    ("message", "time"),
    [
        ("the fifth of december", "the fifth of december"),
        ("Tomorrow morning please", "Tomorrow morning"),
        ("ok, at 5pm", "at 5pm"),
        ("and tomorrow", "tomorrow"),
        ("no, at 6pm", "at 6pm"),
        ("pay the rent", ""),
        ("to call mum", ""),
    ],
)
def test_a_piece_of_a_request_is_no_request(message: str, time: str) -> None:
    assert read(message) == Fragment(time=time)


@pytest.mark.parametrize(
    ("message", "intents"),
    [
        ("cancel 2\ncancel 3", (cancelled((2,)), cancelled((3,)))),
        ("cancel 2\n\nmy reminders", (cancelled((2,)), ListReminders())),
        ("cancel 2\nlist", (WhichOne,)),
        ("cancel 2\ntell me a joke", (WhichOne,)),
        ("pause 2\nmove 3 to 5pm\nwhat's next", (Act, Move, ListReminders)),
        ("snooze 2\nrename 3 to go", (Snooze, Rename)),
        ("remind me every day at 8 to go\nremind me at 5 to stay", (Remind, Remind)),
        ("erinnere mich um 17 Uhr zu gehen\nlösche 2", (Remind, Act)),
        ("move 2 to 5pm\nand call mum", (AskBack,)),
        ("remind me at 5 to go\nremind me at 6 to stay", (Remind, Remind)),
        ("remind me at 5 to go\nremind me to stay", (AskBack,)),
        ("remind me at 5 to buy:\ncancel 2", (Remind,)),
        ("remind me at 5 to buy\nlist", (Remind,)),
        ("remind me at 5 to buy\n- milk\n- eggs", (Remind,)),
        ("\n".join(["cancel 2"] * 21), (WhichOne,)),
        ("", (Unknown,)),
    ],
)
def test_lines_are_requests_only_where_each_is_one(
    message: str, intents: tuple[Intent | type[Intent], ...]
) -> None:
    found = understand_all(message, now=MONDAY, zone=BERLIN)
    assert len(found) == len(intents)
    for intent, expected in zip(found, intents, strict=True):
        assert isinstance(intent, expected) if isinstance(expected, type) else intent == expected


@pytest.mark.parametrize(
    ("message", "numbers"),
    [
        ("cancel 2", (2,)),
        ("cancel #2", (2,)),
        ("Cancel 2.", (2,)),
        ("hi\ncancel 2", (2,)),
        ("please cancel 2", (2,)),
        ("delete reminder 2", (2,)),
        ("remove reminder number 2", (2,)),
        ("stop reminder #12", (12,)),
        ("cancel two", (2,)),
        ("cancel the reminder 2 and 3", (2, 3)),
        ("cancel 2, 3 and #4", (2, 3, 4)),
        ("cancel 2 and 2", (2,)),
    ],
)
def test_reminders_are_cancelled_by_number(message: str, numbers: tuple[int, ...]) -> None:
    assert read(message) == cancelled(numbers)


@pytest.mark.parametrize(
    "message",
    [
        "what are my reminders?",
        "What are my reminders",
        "list reminders",
        "list",
        "show my reminders",
        "show me all my reminders please",
        "do I have any reminders?",
        "which reminders do I have",
        "how many reminders do I have?",
        "my reminders",
        "reminders",
        "what's coming up?",
        "what is due today",
        "when will you remind me about mum?",
        "what did you remind me about?",
        "hello, what are my reminders?",
        "do i have anything today",
        "do I have anything planned for tomorrow?",
        "anything due this week?",
        "do i have anything on friday",
        "what do I have tomorrow?",
        "what do I have to do",
        "what's on my list?",
        "whats on my list",
        "when is my next reminder?",
    ],
)
def test_reminders_are_listed(message: str) -> None:
    assert read(message) == ListReminders()


@pytest.mark.parametrize(
    ("message", "intent"),
    [
        ("what time is it?", ClockQuestion()),
        ("what's the time", ClockQuestion()),
        ("what day is it today?", ClockQuestion()),
        ("what’s the date today?", ClockQuestion()),
        ("what is my timezone?", ClockQuestion()),
        ("help", Help()),
        ("/help", Help()),
        ("?", Help()),
        ("what can you do?", Help()),
        ("how do I set a reminder?", Help()),
        ("hello", SmallTalk(kind=Talk.GREETING)),
        ("Hello there!", SmallTalk(kind=Talk.GREETING)),
        ("good morning", SmallTalk(kind=Talk.GREETING)),
        ("how are you?", SmallTalk(kind=Talk.WELL_BEING)),
        ("hi, how are you?", SmallTalk(kind=Talk.WELL_BEING)),
        ("thanks", SmallTalk(kind=Talk.THANKS)),
        ("Thank you so much!", SmallTalk(kind=Talk.THANKS)),
        ("ok thanks", SmallTalk(kind=Talk.THANKS)),
        ("I love you", SmallTalk(kind=Talk.AFFECTION)),
        ("bye", SmallTalk(kind=Talk.FAREWELL)),
        ("exit", SmallTalk(kind=Talk.FAREWELL)),
        ("quit", SmallTalk(kind=Talk.FAREWELL)),
        ("rewind the tape at 5?", Unknown()),
        ("lol what", Unknown()),
        ("haha so funny", Unknown()),
        ("you did what", Unknown()),
        ("what is next?", ListReminders()),
        ("many thanks", SmallTalk(kind=Talk.THANKS)),
        ("good night", SmallTalk(kind=Talk.FAREWELL)),
        ("who are you?", SmallTalk(kind=Talk.IDENTITY)),
        ("are you a robot", SmallTalk(kind=Talk.IDENTITY)),
        ("are you a robot or a human?", SmallTalk(kind=Talk.IDENTITY)),
        ("are you ChatGPT?", SmallTalk(kind=Talk.IDENTITY)),
        ("ok", SmallTalk(kind=Talk.NOD)),
        ("👍", SmallTalk(kind=Talk.NOD)),
        ("remember that my key is under the mat", NotYet(feature=Feature.NOTES)),
        ("what do you know about me?", NotYet(feature=Feature.NOTES)),
        ("set my timezone to Berlin", NotYet(feature=Feature.TIME_ZONE)),
        ("change my time zone to Europe/Paris", NotYet(feature=Feature.TIME_ZONE)),
        ("tell me a joke", Unknown()),
        ("what is 2+2?", Unknown()),
        ("what time is it in new york?", Unknown()),
        ("I was at school at 5", Unknown()),
        ("", Unknown()),
        ("   ", Unknown()),
        ("🎂", Unknown()),
        ("\0\u200f", Unknown()),
        ("lorem ipsum " * 8000, Unknown()),
    ],
)
def test_other_messages_are_told_apart(message: str, intent: Intent) -> None:
    assert read(message) == intent


def test_the_assumption_is_kept_for_the_confirmation() -> None:
    intent = read("remind me at 9 to go")
    assert isinstance(intent, Remind)
    assert intent.when.note == "I read 9 as 21:00 today"


def test_the_suggested_form_is_understood() -> None:
    asked = read("remind me to call mum")
    assert isinstance(asked, AskBack)
    _, _, example = asked.question.partition("For example: ")
    assert isinstance(read(example), Remind)


@pytest.mark.parametrize(
    "message", ["remind me at 5", "remind me", "set a reminder for 5pm", "remind me on christmas"]
)
def test_the_example_without_the_persons_text_is_understood(message: str) -> None:
    asked = read(message)
    assert isinstance(asked, AskBack)
    _, _, example = asked.question.partition("For example: ")
    assert isinstance(read(example), Remind)
