"""The phrases of the offline grammar: tables of patterns, nothing else.

`WHOLE`, `UNFINISHED` and the cancel patterns are matched against small letters, single spaces and
plain apostrophes; the others against the message as typed. Repeats are bounded, so that no text
makes a match slow.
"""

import re
from typing import Final

from gateway.hosts.builtin.intents import (
    ClockQuestion,
    Feature,
    Help,
    Intent,
    ListReminders,
    SmallTalk,
    Talk,
)

# Longer messages are not small talk, and a reminder's head is looked for in their beginning only.
BARE_LENGTH: Final = 300


def _any(*alternatives: str) -> str:
    return "(?:" + "|".join(alternatives) + ")"


def _maybe(*alternatives: str, times: int = 1) -> str:
    return _any(*alternatives) + f"{{0,{times}}}"


def _typed(*alternatives: str) -> "re.Pattern[str]":
    return re.compile("|".join(alternatives), re.IGNORECASE)


_LET = _any("can", "could", "would", "will") + " you "
POLITE_BEFORE: Final = re.compile(
    "^" + _maybe("please ", "pls ", "okay ", "ok ", "so ", "and ", _LET, times=4)
)
POLITE_AFTER: Final = _typed(
    r"[\s,]*\b" + _any("please", "pls", "thanks", "thank you", "thx", "ok") + r"[\s.!?]*$"
)
# Words around "remind me" that say nothing.
POLITE: Final = _typed(
    r"(?<![^\s,])"
    + _any(
        "please|pls|hey|hi|hello|ok|okay|so|and|also|then|but|just|kindly|bot|yes|oh|well|thanks",
        "can|could|would|will|you|u|yo|pls|i|want|need|like|i['’]d|to|that|if",
        r"@\w+",
    )
    + r"(?![^\s,.!:])[.!:]?"
)
_HELLO = _any("hello", "hi", "hey", "good morning", "good afternoon", "good evening")
GREETING: Final = _typed(
    r"^@\w+[\s,:]+",
    "^"
    + _any(_HELLO, "thanks", "thank you", "ok", "okay")
    + _maybe(" there", " bot")
    + r"\s*(?:[,.!]+|\n)",
    "^" + _HELLO + _maybe(" there", " bot") + r"\s+(?=(?:can|could|please|remind|what|set|show)\b)",
)

_REMINDERS = r"(?:reminders?|alarms?|timers?)\b"
_OF_MINE = _maybe("all ") + _maybe("of ") + _maybe("my ", "the ", "your ", "our ")
_OPEN = _maybe("current ", "open ", "active ", "pending ", "next ", "upcoming ", "other ")
_MINE = _OF_MINE + _OPEN + _REMINDERS
_AHEAD = _maybe(
    " planned", " set", " scheduled", " due", " on", " coming up", " to do", " for", " left",
    " today", " tomorrow", " tonight", " this week", " next", " next week", " now",
    " (?:mon|tues|wednes|thurs|fri|satur|sun)day", times=3,
)  # fmt: skip
_WHAT_IS = _any("what", "whats", "what's", "what is")
_LIST: Final = (
    _any("show", "list", "give", "tell", "get", "display", "check", "read", "see")
    + _maybe(" me")
    + f" {_MINE}"
    + _maybe(" list", " please"),
    _any("what", "which")
    + _maybe(" are", "'s", " is")
    + f" {_MINE}"
    + _maybe(
        " do i have", " have i got", " are there", " are set", " are open", " are active",
        " i have", " set", " now", " today", " tomorrow", " i set", times=2,
    ),
    _any("when is", "when's", "when are") + f" {_MINE}" + _maybe(" due", " set for", " coming"),
    _any("do i have", "have i got", "is there", "got", "have you got", "did i set")
    + _any(" anything", " something", " plans", " any plans", " anything else")
    + _AHEAD,
    "(?:is )?anything" + _any(" planned", " scheduled", " due", " set", " coming up", " on")
    + _AHEAD,
    _any("what do i have", "what have i got", "what have i") + _maybe(" to do", " on", " planned")
    + _AHEAD,
    _WHAT_IS + " on (?:my |the )?" + _any("list", "agenda", "schedule", "plate", "calendar")
    + _AHEAD,
    _WHAT_IS + " (?:on|planned|due|scheduled)" + _AHEAD,
    _any("do i have", "have i got", "are there", "is there", "got", "have you got")
    + _maybe(" any", " a", " some")
    + f" {_OPEN}{_REMINDERS}"
    + _maybe(" set", " left", " today", " open", " tomorrow", times=2),
    _any("how many ", "any ", "all ") + _OF_MINE + _OPEN + _REMINDERS
    + _maybe(" do i have", " are there", " are set", " set"),
    "(?:my )?reminders|(?:my )?reminder list|list(?: them| all)?",
    "what" + _maybe(" do i have", " have i got", " is", "'s")
    + _any(" coming up", " planned", " scheduled", " set", " due", " on my list", " next")
    + _maybe(" today", " for today", " now", " tomorrow", " this week"),
    "what " + _any("will you remind me", "did i ask you to remind me", "should i remember")
    + _maybe(" of", " about"),
    "what have i " + _any("set", "asked for", "planned"),
)  # fmt: skip
_IS = _any("'s", " is", " was")
_CLOCK: Final = (
    "(?:do you (?:know|have) )?what(?: time| day| date)"
    + _maybe(" is it", " it is", " is today", " of the week is it", " do we have")
    + _maybe(" now", " today", " right now"),
    f"what{_IS} " + _maybe("the ") + _maybe("current ", "exact ", "local ")
    + _any("time", "date", "day") + _maybe(" and date", " and time", " and day")
    + _maybe(" now", " today", " right now", " please", " here"),
    "(?:current |local )?time(?: now)?|date|day|now|the time|today's date|clock",
    f"what{_IS} today(?:'s date)?|what " + _any("year", "month", "weekday") + " is it",
    "tell me (?:the )?(?:current )?" + _any("time", "date", "day"),
    "(?:do you have|have you got) the time|do you know the time",
    f"(?:what|which){_IS} (?:my|your|the) time ?zone",
    "(?:what|which) time ?zone " + _any("is this", "do you use", "are you in", "am i in"),
)  # fmt: skip
_HELP: Final = (
    "/?help(?: me)?|commands?|usage|menu|options|instructions|info",
    r"\?+|how does (?:this|it) work|how (?:do|can) i use (?:you|this|it)|how do you work",
    "what (?:can|do|could) (?:you|i|this)"
    + _any(" do", " say", " ask", " write", " understand")
    + _maybe(" here", " for me", " to you", " you"),
    "how (?:do|can) i " + _any("set", "make", "create", "add", "cancel", "list", "delete")
    + " (?:a |my )?" + _REMINDERS,
    "what " + _any("is this", "are the commands", "are your (?:features|functions|commands)"),
)  # fmt: skip
_NAMED = _any(
    "chatgpt", "chat gpt", "gpt", "claude", "gemini", "siri", "alexa", "llm", "ai", "a bot", "bot",
    "robot", "human", "human being", "real", "person", "real person", "real human", "machine",
    "computer", "assistant", "language model", "artificial intelligence", "program", "model",
)  # fmt: skip
_TALK: Final = {
    Talk.GREETING: (
        _any("hello", "hi+", "hey+", "hiya", "howdy", "yo", "greetings", "morning", "evening",
             "good (?:morning|afternoon|evening|day)")
        + _maybe(" there", " bot", " you", " again", " everyone", " all"),
        "/?start|test|testing|ping",
        "are you " + _any("there", "here", "online", "awake", "alive", "up", "working"),
    ),
    Talk.WELL_BEING: (
        _maybe("hi,? ", "hello,? ", "hey,? ")
        + _any("how (?:are|r) (?:you|u)(?: doing)?(?: today| now)?", "how's it going", "sup",
               "how is it going", "how do you do", "what's up", "(?:are )?you ok(?:ay)?"),
    ),
    Talk.THANKS: (
        _maybe("many ", "ok,? ", "okay,? ", "great,? ", "perfect,? ", "cool,? ", "nice,? ")
        + _any("thanks", "thank you", "thx", "ty", "cheers", "thank u", "much appreciated")
        + _maybe(" a lot", " so much", " very much", " you", " bot", " mate", " again", times=2),
        "(?:well done|good job|good bot|nice work|great job)",
        "you(?:'re| are) (?:great|the best|awesome)",
    ),
    Talk.AFFECTION: (
        "i " + _maybe("really ", "do ") + _any("love", "like", "adore") + _any(" you", " u", " ya")
        + _maybe(" so much", " too", " bot", " a lot"),
        "(?:love you|ily|❤️|😘|🥰)",
    ),
    Talk.FAREWELL: (
        _any("bye", "goodbye", "good bye", "good night", "see you", "see ya", "ciao", "bye bye")
        + _maybe(" later", " soon", " tomorrow", " bot", " then"),
        "(?:exit|quit|log ?out|close|leave|q|:q|end)(?: now| please)?",
    ),
    Talk.IDENTITY: (
        "(?:and )?(?:who|what) (?:are|r) (?:you|u)(?: exactly| really)?|who is this",
        "who am i (?:talking|speaking|chatting) (?:to|with)",
        "(?:are|r) (?:you|u) " + _maybe("an ", "a ", "the ") + _NAMED + "(?: or .{1,60})?",
        "what(?:'s| is) your name|do you have a name|who (?:made|built|created|wrote) you",
        "(?:which|what) (?:language )?model (?:are you|do you use|is this)",
        "tell me about yourself|introduce yourself",
    ),
    Talk.NOD: (
        "ok(?:ay)?|k|kk|fine|cool|great|nice|good|perfect|super|yes|yep|yeah|yup|no|nope|nah|sure",
        "right|alright|all right|got it|understood|i see|never ?mind|lol|ha(?:ha){1,9}|wow|hm+",
        "(?:👍|🙏|😊|👌|😀|🙂|🎉){1,9}",
    ),
}  # fmt: skip
_FIXED: Final[tuple[tuple[tuple[str, ...], Intent], ...]] = (
    (_LIST, ListReminders()),
    (_CLOCK, ClockQuestion()),
    (_HELP, Help()),
    *((patterns, SmallTalk(kind=kind)) for kind, patterns in _TALK.items()),
)
WHOLE: Final = tuple(
    (re.compile(pattern), intent) for patterns, intent in _FIXED for pattern in patterns
)

_CANCEL_VERBS = _any(
    "cancel", "delete", "remove", "stop", "drop", "erase", "dismiss", "clear", "kill", "forget",
    "get rid of", "turn off",
)  # fmt: skip
_SMALL: Final = (
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve",
)  # fmt: skip
_NUMBER = r"(?:\d{1,9}|\b" + _any(*_SMALL) + r"\b)"
NUMBER: Final = re.compile(_NUMBER, re.ASCII)
CANCEL_NUMBERS: Final = re.compile(
    f"{_CANCEL_VERBS} "
    + _maybe("the ", "my ", "this ", "that ")
    + _maybe(f"{_REMINDERS} ", "jobs? ", "numbers? ", r"nos?\.? ", "with ", "ids? ", times=3)
    + rf"(#? ?{_NUMBER}(?:(?:,? and |, ?| & | )(?:(?:reminder|number|no\.?) )?#?{_NUMBER})*)",
    re.ASCII,
)
ALL_REMINDERS: Final = re.compile(
    f"{_CANCEL_VERBS} "
    + _any(
        "all", "everything", "them all", "all of them", f"all {_OF_MINE}{_REMINDERS}",
        "(?:my |the )?(?:reminders|alarms|timers)", f"every {_REMINDERS}",
    )
)  # fmt: skip
CANCEL: Final = re.compile(
    rf"(?:cancel|undo)\b|{_CANCEL_VERBS} (?:it|that|this|them|the last(?: one)?)$|"
    rf"{_CANCEL_VERBS}\b.{{0,60}}\b{_REMINDERS}|(?:stop|delete|remove) #?\d|stop$"
)
NEGATIVE: Final = re.compile(
    r"\b(?:don't|dont|do not|never|stop|no need to|needn't|quit|not to) remind(?:ing)?\b"
)

_SPAN = r"[\w.]{1,12}[\s-](?:second|minute|hour|min|sec)s?"
_NOT = r"do(?:n['’]?|\s+no)t\s+"
HEAD: Final = _typed(
    r"\bremind\s+(?:me|us|myself)\b",
    r"\b(?:set|create|add|make|schedule|put|start|give|need|want|get|i['’]d\s+like)\s+"
    r"(?:me\s+|us\s+|up\s+)?(?:a\s+|an\s+|another\s+|one\s+|the\s+|my\s+)?(?:new\s+|quick\s+)?"
    rf"(?:{_SPAN}[\s-])?(?:reminder|alarm|timer|alert|notification)\b",
    r"\bto\s+be\s+reminded\b",
    rf"\b{_NOT}(?:let|make)\s+(?:me|us)\s+forget\b",
    r"\bwake\s+me(?:\s+up)?\b",
    r"\b(?:ping|notify|alert|nudge|buzz|poke)\s+(?:me|us)\b",
    rf"^(?:new\s+)?(?:reminder|timer|alarm)\b|^remember\s+to\b|^{_NOT}forget\s+to\b",
)
WAKE: Final = _typed(r"wake\s+me(?:\s+up)?")
TIMER: Final = _typed(rf"(?:({_SPAN})[\s-])?timer$")
AGAIN: Final = _typed(r"\bremind\s+(?:me|us)\b")
# Words on how often or how vaguely, which no text of a reminder needs unless it is in quotes.
OFTEN: Final = _typed(
    r"\b(?:again\s+and\s+again|twice|thrice|repeatedly|(?:two|three|four|five|\d{1,3}|several|many|multiple|a\s+few)"
    r"\s+times)\b"
)
BARE_NUMBER: Final = _typed(r"#?(\d{1,2})[.!]?")
ANEW: Final = _typed(r"^[\s,:]{0,5}(?:once\s+)?again\b(?!\s+and\b)[\s,:]{0,5}")
EARLIER: Final = _typed(
    r"\b(?:\d{1,4}\s?(?:m|h)|min(?:ute)?s?|h(?:ou)?rs?|days?|weeks?)\s+"
    r"(?:earlier|early|before(?:hand)?|prior|in\s+advance|ahead)\b"
)
QUOTED: Final = _typed(r'"[^"\n]+"', "“[^“”\n]+”")
_SOON = _any(
    "soon", r"later(?:\s+on)?", "asap", "sometime", "someday", "eventually", r"at\s+some\s+point"
)
SOON: Final = _typed(
    rf"^{_SOON}(?![\w-])[\s,]{{0,5}}{_SOON}?[\s,]{{0,5}}(?:to\s|that\s|about\s)?",
    rf"(?<=\s){_SOON}[\s.!]{{0,5}}$",
)
# "when I get home (to ...)", at either end of the text.
CIRCUMSTANCE: Final = _typed(
    r"^(?:when|whenever|once|if|after|before|at|around|by)\b.{1,80}?\bto\s+(?=\S)",
    r"(?<=\s)(?:when|whenever|once|as\s+soon\s+as|after|before)\s+"
    r"(?:i|we|he|she|it|they|the|you|my)\b.{0,100}$",
)
_POLITELY = (
    r"^\W{0,3}(?:(?:please|pls|hi|hey|hello|ok|okay|and|can\s+you|could\s+you|will\s+you)\b"
    r"[\s,]{1,3}){0,4}"
)
# What may be a slip for "remind me", "a reminder" or "remind" at the start.
LIKE_REMIND_ME: Final = _typed(rf"({_POLITELY})([a-z]{{4,9}}?)\s{{0,3}}(me|us|myself)\b")
LIKE_REMINDER: Final = _typed(
    rf"({_POLITELY}(?:(?:set|create|add|make)\s+(?:me\s+)?(?:an?\s+)?)?)"
    r"([a-z]{5,10})(?=\s*:|\s+(?:to|for|at|in|on|tomorrow)\b)"
)
BARE_REMIND: Final = _typed(
    rf"({_POLITELY})remind\s+(?=(?:to|about|that|at|in|on|today|tomorrow|tonight)\b|\d)"
)
LINE_LEAD: Final = _typed(r"\bremind|^\W{0,3}(?:set|create|add|wake|ping)\b")
# What is said to a chat bot, or told: not the text of a reminder that was sent alone.
NO_TASK: Final = _typed(
    r"(?:who|what|whats|which|when|where|why|how|do|does|did|is|are|am|was|were|can|could|will|"
    r"would|should|may|shall|has|have|tell|say|sing|show|give|explain|translate|calculate|"
    r"i|he|she|we|it|they|you|there|this|that|my|your|no|yes|not|let|let['’]s|hello|hi|hey)\b|"
    r"\W|\d|(?:i|he|she|we|it|they|you|that|there|what|who)['’]"
)
OTHER_PERSON: Final = _typed(
    r"^\W{0,3}(?:please\s+|can you\s+|could you\s+)?remind\s+"
    r"((?:my\s+|the\s+|our\s+)?[\w'’-]{1,30})\s+(?=(?:to|that|about|at|in|on|tomorrow|tonight|every)\b)"
)
LIST_PREFIX: Final = _typed(
    r"^\W{0,3}(?:what|which|did|have|why|how|whom?|when\s+(?:will|do|did|are|is|should|would))\b"
)
# "and in an hour to call mum": the rest of an earlier request.
ELLIPSIS: Final = _typed(r"^(?:and|also|then|plus)\b[\s,:]{0,5}(?:also\b\s?)?")
# Before the text of a reminder: 'a reminder named "call Bob"'.
NAMED: Final = _typed(
    r"^(?:named|called|titled|saying|which says|that says|with the (?:text|name|title))\b[\s:]*"
)
NO_EXAMPLE: Final = _typed(
    r"(?:at|on|in|when|after|before|around|about|by|asap|if|once|later)\b|\W|\d"
)
# Something told, not something to do.
STATEMENT: Final = _typed(r"(?:i|he|she|we|it|they|you|there|this|that|my|the|is|are)\b|i['’]")

UNFINISHED: Final[tuple[tuple["re.Pattern[str]", Feature], ...]] = (
    (re.compile(r"snooze\b|(?:remind me |again )?later$"), Feature.SNOOZE),
    (
        re.compile(r"(?:change|set|switch|use|update)\b.{0,20}\btime ?zone|my time ?zone is\b"),
        Feature.TIME_ZONE,
    ),
    (
        re.compile(
            r"(?:change|move|reschedule|update|edit|postpone|shift|delay|push|rename)\b.{0,60}"
            rf"(?:\b{_REMINDERS}|#?\d)"
        ),
        Feature.CHANGE,
    ),
    (re.compile(r"(?:pause|resume|unpause)\b"), Feature.PAUSE),
    (
        re.compile(
            r"(?:remember|note|memori[sz]e|save|store|write down|(?:take|make) a note|keep in mind)"
            r"\b(?! to\b)|forget (?:that|about|my|what|everything)\b|"
            r"(?:what|do you|can you|did you)\b.{0,20}\b(?:remember|know about)\b|"
            r"what (?:did|have) i (?:say|said|told?|tell)\b|what do you know\b"
        ),
        Feature.NOTES,
    ),
)


def number_of(word: str) -> int:
    """The number that a match of NUMBER stands for."""
    return _SMALL.index(word) + 1 if word in _SMALL else int(word)
