"""The vocabulary of the when-parser: tables of words, nothing else."""

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NUMBERS: Final[dict[str, int]] = {
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "eleven": 11,
    "twelve": 12,
    "thirteen": 13,
    "fourteen": 14,
    "fifteen": 15,
    "sixteen": 16,
    "seventeen": 17,
    "eighteen": 18,
    "nineteen": 19,
}
TENS: Final[dict[str, int]] = {
    "twenty": 20,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "ninety": 90,
}
# Words that a hyphen may join to a clock time: "nine-thirty", "half-past-five".
CLOCK_PARTS: Final = frozenset({"half", "quarter", "past", "to", *NUMBERS, *TENS})
ORDINALS: Final[dict[str, int]] = {
    "first": 1,
    "second": 2,
    "third": 3,
    "fourth": 4,
    "fifth": 5,
    "sixth": 6,
    "seventh": 7,
    "eighth": 8,
    "ninth": 9,
    "tenth": 10,
    "eleventh": 11,
    "twelfth": 12,
    "thirteenth": 13,
    "fourteenth": 14,
    "fifteenth": 15,
    "sixteenth": 16,
    "seventeenth": 17,
    "eighteenth": 18,
    "nineteenth": 19,
    "twentieth": 20,
    "twenty-first": 21,
    "twenty-second": 22,
    "twenty-third": 23,
    "twenty-fourth": 24,
    "twenty-fifth": 25,
    "twenty-sixth": 26,
    "twenty-seventh": 27,
    "twenty-eighth": 28,
    "twenty-ninth": 29,
    "thirtieth": 30,
    "thirty-first": 31,
}
# Nouns that make an ordinal before them part of the text: "the 2nd dose", "her 30th birthday".
ORDINAL_NOUNS: Final = _words(
    "floor dose pill time birthday anniversary street avenue edition chapter round grade place "
    "draft half one row season episode book lesson attempt class gear"
)
# Nouns that make a number after them part of the text: "read chapter 9".
NUMBERED_NOUNS: Final = _words(
    "chapter page pages room number no gate bus line floor flat apartment version exercise unit "
    "section part step episode season level platform track seat row route tram chapters"
)

MONTHS: Final[dict[str, int]] = {
    name: number
    for number, names in enumerate(
        (
            "january jan",
            "february feb",
            "march mar",
            "april apr",
            "may",
            "june jun",
            "july jul",
            "august aug",
            "september sep sept",
            "october oct",
            "november nov",
            "december dec",
        ),
        start=1,
    )
    for name in names.split()
}
# Month words that are everyday words or names too: alone they say nothing about time.
SHY_MONTHS: Final = frozenset({"may", "march", "mar", "jan"})
MONTH_NAMES: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)

WEEKDAYS: Final[dict[str, int]] = {
    name: number
    for number, names in enumerate(
        (
            "monday mon",
            "tuesday tue tues",
            "wednesday wed weds",
            "thursday thu thur thurs",
            "friday fri",
            "saturday sat",
            "sunday sun",
        )
    )
    for name in names.split()
}
WEEKDAY_NAMES: Final = (
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
)
# Weekday words that are everyday words too, with the words before or after that show it.
SHY_WEEKDAYS: Final = frozenset({"sun", "sat"})
SHY_WEEKDAY_BEFORE: Final = _words("the a in i he she we they it")
SHY_WEEKDAY_AFTER: Final = _words("cream screen lotion hat glasses nav navi dried down still")
# "good friday at 9" is not just any Friday.
FEAST_PREFIXES: Final = _words(
    "good black cyber ash palm shrove easter maundy holy fat whit super pancake giving"
)
# "call Mr Friday", in any of the languages.
TITLES: Final = _words(
    "mr mrs ms miss herr herrn frau monsieur madame mme mlle sr sra señor señora don doña"
)
# A time after one of these describes a thing ("the 17:30 train") more often than the reminder.
DETERMINERS: Final = _words("the a an my our your his her their its")

TODAY_SHIFTS: Final[dict[str, int]] = {
    "today": 0,
    "tomorrow": 1,
    "tmrw": 1,
    "tmr": 1,
    "tmw": 1,
}
TONIGHT: Final = frozenset({"tonight", "tonite"})

SECOND, MINUTE, HOUR, DAY, MONTH = "second", "minute", "hour", "day", "month"
# word -> (what it counts in, how many of them)
UNITS: Final[dict[str, tuple[str, int]]] = {
    name: (kind, factor)
    for names, kind, factor in (
        ("second seconds sec secs", SECOND, 1),
        ("minute minutes min mins mn", MINUTE, 1),
        ("hour hours hr hrs h", HOUR, 1),
        ("day days", DAY, 1),
        ("week weeks wk wks", DAY, 7),
        ("fortnight fortnights", DAY, 14),
        ("month months", MONTH, 1),
        ("year years yr yrs", MONTH, 12),
    )
    for name in names.split()
}
# One letter is a unit only where a delay is expected ("in 5 m"): "swim 50 m" is not a time.
LETTER_UNITS: Final[dict[str, tuple[str, int]]] = {
    "s": (SECOND, 1),
    "m": (MINUTE, 1),
    "d": (DAY, 1),
    "w": (DAY, 7),
}

PARTS: Final = frozenset({"morning", "afternoon", "evening", "night"})
CLOCK_WORDS: Final[dict[str, tuple[int, int]]] = {
    "noon": (12, 0),
    "midday": (12, 0),
    "midnight": (0, 0),
}
MERIDIEM: Final[dict[str, str]] = {"am": "am", "a.m": "am", "pm": "pm", "p.m": "pm"}

# In front of a time, and part of it.
CLOCK_PREPOSITIONS: Final = frozenset({"at", "@"})
ROUGHLY: Final = _words("about around approximately roughly circa exactly")
# In front of a time, and saying that it is a limit or a span, not a moment.
LIMITS: Final = _words(
    "by before after until till til since from between within past through during not except "
    "unless than starting beginning ending due"
)
# After a time, these begin the reminder's text: "at 5 about the cake".
CONNECTORS: Final = _words(
    "to that about for and then so because please with from in on at of if when or but by into "
    "via before after until the my our a an i he she we it is are"
)
# Behind a request, and no part of it.
COURTESIES: Final = _words("please pls plz thanks thx ty asap ok okay")
# After a time, these change nothing that matters.
FILLERS: Final = _words("sharp precisely exactly")
VAGUE_BEFORE: Final = _words("early late mid sometime later")
VAGUE_NOUNS: Final = _words(
    "lunch lunchtime breakfast dinner dinnertime supper teatime tea bedtime bed dawn sunrise "
    "sunset dusk daybreak nightfall eod cob work school closing opening"
)
# These mean a time of day also without "at" before them.
VAGUE_TIMES: Final = _words(
    "lunchtime dinnertime teatime bedtime dawn sunrise sunset dusk daybreak nightfall eod cob"
)
SEASONS: Final = _words("spring summer autumn fall winter")
VAGUE_DELAYS: Final = _words("bit while moment jiffy sec tick")

EVERY: Final = frozenset({"every", "each"})
# Adverbs that repeat, also as cron spells them: "@daily".
ADVERBS: Final = _words(
    "daily everyday nightly hourly weekly fortnightly biweekly bi-weekly monthly bimonthly "
    "bi-monthly quarterly yearly annually"
)
DAY_GROUPS: Final[dict[str, frozenset[int]]] = {
    "weekday": frozenset(range(5)),
    "workday": frozenset(range(5)),
    "weekend": frozenset({5, 6}),
}
PART_PLURALS: Final[dict[str, str]] = {
    "mornings": "morning",
    "afternoons": "afternoon",
    "evenings": "evening",
    "nights": "night",
}
COUNTS: Final[dict[str, int]] = {"once": 1, "twice": 2, "thrice": 3}
UNTIL: Final = _words("until till til through thru ending ends")
STARTING: Final = _words("starting beginning commencing starts from")

# Feasts that have the same day everywhere; any other is asked about.
FIXED_FEASTS: Final[dict[str, tuple[int, int]]] = {
    "christmas": (25, 12),
    "christmas day": (25, 12),
    "christmas eve": (24, 12),
    "new year's day": (1, 1),
    "new year's eve": (31, 12),
}
HOLIDAYS: Final = _words(
    "christmas xmas easter thanksgiving halloween hallowe'en hogmanay pentecost whitsun lent "
    "hanukkah chanukah ramadan eid diwali passover valentine valentines valentine's "
    "new-year's"
)
# Words that speak of time and that no rule above can turn into a moment.
OTHER_TIME_WORDS: Final = _words(
    "yesterday fortnight fortnights weekend weekday overmorrow noonish payday am pm a.m p.m "
    "o'clock oclock"
)
ZONE_ABBREVIATIONS: Final = _words(
    "est edt cst cdt mst mdt pst pdt cet cest eet eest wet west bst ist jst kst hkt sgt aest aedt "
    "acst awst nzst nzdt msk et pt"
)
UTC_NAMES: Final = frozenset({"utc", "gmt"})
ZONE_REGIONS: Final = _words(
    "africa america antarctica arctic asia atlantic australia europe indian pacific etc us"
)

# What a misspelt word is compared with.
SPELLABLE: Final = _words(
    "today tomorrow tonight yesterday monday tuesday wednesday thursday friday saturday sunday "
    "january february april august september october november december morning afternoon evening "
    "midnight midday minute minutes hours seconds weeks months fortnight christmas daily weekly "
    "weekday weekend every o'clock monthly hourly yearly annually quarterly fortnightly"
)
# Everyday words that are as near to one of those as a slip of the finger.
ORDINARY: Final = _words(
    "sundae sundry sundown mourning moaning mornings warning minuet minus mouths mouth moths "
    "meekly weakly dairy daisy gaily very ever even evenings events everly weekdays house toddy "
    "toady mooring boring never remember member section sections mounts christian horse hurts "
    "insight ours yours seeks saturate second secondly nightly early nearly dearly pearly sourly "
    "annual manually quarter quarters"
)
