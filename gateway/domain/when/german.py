"""German words of time and their English: tables, nothing else."""

from typing import Final

from gateway.domain.when.language import ASKED, Language, listed, numbered

_ONES: Final = numbered("zwei drei vier fünf sechs sieben acht neun", start=2)
_TENS: Final = {"zwanzig": 20, "dreißig": 30, "vierzig": 40, "fünfzig": 50, "sechzig": 60}
_NUMBERS: Final = (
    _ONES
    | _TENS
    | {"eins": 1, "zwo": 2, "siebzig": 70, "achtzig": 80, "neunzig": 90}
    | numbered(
        "zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn", start=10
    )
    | {f"{one}und{ten}": _ONES[one] + _TENS[ten] for one in _ONES for ten in _TENS}
    | {f"einund{ten}": 1 + _TENS[ten] for ten in _TENS}
)
_WEEKDAYS: Final = {
    "montag": "monday",
    "dienstag": "tuesday",
    "mittwoch": "wednesday",
    "donnerstag": "thursday",
    "freitag": "friday",
    "samstag": "saturday",
    "sonnabend": "saturday",
    "sonntag": "sunday",
}
_MONTHS: Final = {
    "januar": "january",
    "jänner": "january",
    "februar": "february",
    "feber": "february",
    "märz": "march",
    "april": "april",
    "mai": "may",
    "juni": "june",
    "juli": "july",
    "august": "august",
    "september": "september",
    "oktober": "october",
    "november": "november",
    "dezember": "december",
}
_ORDINALS: Final = {
    f"{stem}{ending}": english
    for stem, english in {
        "erste": "first",
        "zweite": "second",
        "dritte": "third",
        "vierte": "fourth",
        "fünfte": "fifth",
        "letzte": "last",
    }.items()
    for ending in ("", "n", "r", "m", "s")
}
_PARTS: Final = {
    "morgen": "morning",
    "früh": "morning",
    "vormittag": "morning",
    "nachmittag": "afternoon",
    "abend": "evening",
    "nacht": "night",
}
_MONTH_OF: Final = "(?:im|des|jedes|jeden|eines jeden|in jedem|pro|im jeden) monats?"

GERMAN: Final = Language(
    numbers=_NUMBERS,
    tables={
        "at": {"um": "at", "gegen": "at", "@": "at"},
        "on": {"am": "on", "an": "on", "den": "on", "dem": "on", "zum": "on"},
        "the": dict.fromkeys(
            listed("der die das den dem des ein eine einen einem einer mein meinen"), "the"
        ),
        "until": {"bis": "until", "bis zum": "until", "bis um": "until"},
        "weekday": _WEEKDAYS,
        "other": _WEEKDAYS,
        "short": {
            "mo": "monday",
            "di": "tuesday",
            "mi": "wednesday",
            "do": "thursday",
            "fr": "friday",
            "sa": "saturday",
        },
        "month": _MONTHS,
        "shortmonth": _MONTHS
        | {"jan": "january", "feb": "february", "apr": "april", "jun": "june", "jul": "july"}
        | {"aug": "august", "sep": "september", "sept": "september", "okt": "october"}
        | {"nov": "november", "dez": "december"},
        "monthnumber": {
            text: name
            for number, name in enumerate(dict.fromkeys(_MONTHS.values()), start=1)
            for text in (str(number), f"{number:02}")
        },
        "nth": _ORDINALS
        | {"1.": "first", "2.": "second", "3.": "third", "4.": "fourth", "5.": "fifth"},
        "one": dict.fromkeys(("ein", "eine", "einer", "einem", "einen"), "a"),
        "unit": {
            "sekunde": "seconds",
            "sekunden": "seconds",
            "sek": "seconds",
            "minute": "minutes",
            "minuten": "minutes",
            "min": "minutes",
            "stunde": "hours",
            "stunden": "hours",
            "std": "hours",
            "h": "hours",
            "tag": "days",
            "tage": "days",
            "tagen": "days",
            "woche": "weeks",
            "wochen": "weeks",
            "monat": "months",
            "monate": "months",
            "monaten": "months",
            "jahr": "years",
            "jahre": "years",
            "jahren": "years",
        },
        "each": {
            "sekunde": "second",
            "minute": "minute",
            "stunde": "hour",
            "tag": "day",
            "woche": "week",
            "monat": "month",
            "jahr": "year",
        },
        "part": _PARTS,
        "daypart": {name: part for name, part in _PARTS.items() if name != "morgen"},
        "habit": {
            "morgens": "morning",
            "früh": "morning",
            "frühmorgens": "morning",
            "vormittags": "morning",
            "nachmittags": "afternoon",
            "mittags": "afternoon",
            "abends": "evening",
        },
        "small": {str(hour): str(hour) for hour in range(1, 7)},
        "andhalf": {"anderthalb": "1.5", "eineinhalb": "1.5", "einundeinhalb": "1.5"}
        | {f"{one}einhalb": f"{number}.5" for one, number in _ONES.items()},
        "times": {"einmal": "once", "zweimal": "twice", "dreimal": "3 times", "viermal": "4 times"},
        "today": {"heute": "today", "morgen": "tomorrow", "gestern": "yesterday"},
        "frequent": {
            "täglich": "every day",
            "stündlich": "every hour",
            "wöchentlich": "every week",
            "monatlich": "every month",
            "jährlich": "every year",
            "werktags": "every weekday",
            "wochentags": "every weekday",
            "wochenends": "every weekend",
        },
        "feast": {
            "heiligabend": "christmas eve",
            "silvester": "new year's eve",
            "neujahr": "new year's day",
        },
        # Times that are asked about where no rule has them.
        "odd": dict.fromkeys(listed(
        "uhr uur kl morgens vormittags mittags nachmittags abends nachts weihnachten ostern "
        "pfingsten wochenende wochenenden feiertag feiertags ostersonntag ostermontag "
        "karfreitag pfingstmontag rosenmontag aschermittwoch gründonnerstag himmelfahrt "
        "vorgestern demnächst"
    ),
            ASKED,
        ),
    },
    shapes={
        "clock": (
            ("{zero} uhr", "{zero}:00"),
            ("ein uhr", "1 o'clock"),
            ("{hour} uhr (?:und )?{minute}", "{hour}:{minute}"),
            ("{hour}[.:h]{minute} ?(?:uhr|h)", "{hour}:{minute}"),
            ("{hour}[:h]{minute}", "{hour}:{minute}"),
            ("{minute}(?: minuten)? vor halb {hour}(?: uhr)?", "{before}:{tohalf}"),
            ("{minute}(?: minuten)? nach halb {hour}(?: uhr)?", "{before}:{pasthalf}"),
            ("halb {hour}(?: uhr)?", "{before}:30"),
            ("viertel nach {hour}(?: uhr)?", "{hour}:15"),
            ("(?:viertel vor|dreiviertel) {hour}(?: uhr)?", "{before}:45"),
            ("{minute}(?: minuten)? nach {hour}(?: uhr)?", "{hour}:{minute}"),
            ("{minute}(?: minuten)? vor {hour}(?: uhr)?", "{before}:{left}"),
            ("{hour} uhr", "{hour} o'clock"),
        ),
        "since": (("{clock}", "{clock}"), ("{hour}", "{hour}")),
        "till": (("{clock}", "{clock}"), ("{hour}", "{hour}")),
        "amount": (
            ("{n},{more} {unit}", "{n}.{more} {unit}"),
            ("{andhalf} {unit}", "{andhalf} {unit}"),
            ("{n} (?:und )?(?:einer?|ein) halbe?n? {unit}", "{n}.5 {unit}"),
            ("{n} ?(?:h|std|stunden?) (?:und )?{more} ?(?:m|min|minuten)", "{n} hours {more} min"),
            ("{n} ?{unit}", "{n} {unit}"),
            ("(?:einer |eine |der )?halben? stunde", "half an hour"),
            ("(?:einer |eine )?viertelstunde", "15 minutes"),
            ("(?:einer |eine )?dreiviertelstunde", "45 minutes"),
            ("(?:{one}|ner) stunde", "an hour"),
            ("{one} {unit}", "a {unit}"),
        ),
        "date": (
            ("{day} {shortmonth} {year}", "{day} {shortmonth} {year}"),
            ("{day} {shortmonth}", "{day} {shortmonth}"),
        ),
        "numeric": (
            ("{day}[./]{monthnumber}[./]{year}", "{day} {monthnumber} {year}"),
            ("{day}[./]{monthnumber}[.]?", "{day} {monthnumber}"),
        ),
        "moment": (
            ("(?:{on} )?{weekday}", "{weekday}"),
            ("(?:{on} )?{date}", "{date}"),
            ("(?:{on} )?{numeric}", "{numeric}"),
            ("{clock}", "{clock}"),
            ("übermorgen", "the day after tomorrow"),
            ("{today}", "{today}"),
            ("mittag", "noon"),
            ("mitternacht", "midnight"),
            ("(?:zum )?(?:ende des monats|monatsende)", "the end of the month"),
        ),
    },
    rules=(
        # days
        ("{today}", "{today}"),
        ("übermorgen", "the day after tomorrow"),
        ("heute nacht", "tonight"),
        ("heute {part}", "this {part}"),
        ("heute mittag", "today at noon"),
        ("morgen {daypart}", "tomorrow {daypart}"),
        ("morgen mittag", "tomorrow at noon"),
        ("übermorgen {daypart}", "the day after tomorrow in the {daypart}"),
        ("(?:{on} )?{weekday}", "on {weekday}"),
        ("(?:{on} )?{weekday} ?{part}", "on {weekday} {part}"),
        ("(?:{on} )?{weekday} ?mittag", "on {weekday} at noon"),
        ("(?:diesen|an diesem) {weekday}", "this {weekday}"),
        ("(?:am )?kommenden {weekday}", "this coming {weekday}"),
        ("(?:am )?nächsten? {weekday}", "next {weekday}"),
        ("nächste woche (?:am )?{weekday}", "next week {weekday}"),
        ("(?:am )?{weekday} (?:in der )?nächster? woche", "{weekday} next week"),
        ("(?:am )?(?:über|über-)nächsten? {weekday}", "{weekday} after next"),
        ("(?:am )?{nth} {weekday}", "{nth} {weekday}"),
        ("(?:{on} )?{short}(?= (?:; )?(?:um\\b|{clock}))", "on {short}"),
        ("(?:mo|montags?)-(?:fr|freitags?)", "every weekday"),
        ("(?:{short}|{weekday}s?)[-/][a-z]{2,12}", ASKED),
        ("{short} ; [a-z]{2} (?=um\\b|[0-9])", ASKED),
        ("{short} (?:; [a-z]{2} ){0,4}und [a-z]{2}", ASKED),
        ("(?:vor|der|ein|einen|einem|jenen) {weekday}", ASKED),
        ("(?:{on} )?{date}", "on {date}"),
        ("{on} {numeric}", "on {numeric}"),
        ("{day}/{monthnumber}", "{day} {monthnumber}"),
        ("{day}/{monthnumber}/{year}", "{day} {monthnumber} {year}"),
        ("(?:am|zum) {dotted}", "on the {dotted}th"),
        ("den {dotted}(?! [a-z])", "on the {dotted}th"),
        ("(?:am|zum) ersten(?= um\\b| ;| ?$)", "on the 1st"),
        ("(?:am|zum) {dotted} [a-z]*(?:tag|advent|stock|mal|etage|woche|monat)", ASKED),
        ("(?:an )?{feast}", "on {feast}"),
        ("{month}", "{month}"),
        ("(?:im|ende|anfang|mitte) {month}", "in {month}"),
        ("(?:am |zum )?(?:ende (?:des|dieses) monats|monatsende)", "the end of the month"),
        ("(?:am )?letzten tag (?:des|dieses|im) monats?", "the last day of the month"),
        ("(?:dieses|am) wochenende", "this weekend"),
        ("(?:nächster?|dieser?|kommender?) woche", "next week"),
        ("(?:nächsten|diesen|kommenden) monat", "next month"),
        # clock times
        ("(?:um )?12 uhr mittags", "at noon"),
        ("(?:um )?(?:12|24|0) uhr nachts", "at midnight"),
        ("{at} {clock}", "at {clock}"),
        ("(?:punkt|genau) {clock}", "at {clock}"),
        ("{at} (?:punkt|genau|etwa|ca) {clock}", "at {clock}"),
        ("(?:so|etwa|ungefähr|circa|ca(?: ;)?|genau|punkt) {at} {clock}", "at {clock}"),
        ("(?:so|etwa|ungefähr|circa|ca(?: ;)?|genau|punkt) {at} {hour}", "at {hour} o'clock"),
        ("(?:frühestens|erst ab)", ASKED),
        ("(?:zur|um die) (?:gleichen?|selben?) (?:zeit|uhrzeit)", ASKED),
        ("(?:am|zum|gegen) (?:ende|anfang) (?:des tages|der woche)", ASKED),
        ("{clock}", "at {clock}"),
        ("{hour}[:h]{minute}", "{hour}:{minute}"),
        ("{the} {clock}", "the {clock}"),
        ("(?:vor|nach|ab) {hour}(?! [a-z])", ASKED),
        ("(?:von|zwischen) {since} (?:bis|und) {till}", "from {since} to {till}"),
        ("(?:spätestens|bis spätestens)", "by"),
        ("(?:kurz|gleich|bald) (?:vor|nach)", ASKED),
        ("(?:den|der|ganzen|einen|dieser) morgen", ASKED),
        ("{at} {hour} ?h?", "at {hour} o'clock"),
        ("{at} {hour}[.]{minute}", "at {hour}:{minute}"),
        ("(?:{at} )?{clock} {habit}", "at {clock} in the {habit}"),
        ("{at} {hour} {habit}", "at {hour} o'clock in the {habit}"),
        ("(?:{at} )?{clock} (?:am|in der) {part}", "at {clock} in the {part}"),
        ("(?:{at} )?{small}(?: uhr)? (?:nachts|in der nacht)", "at {small} am"),
        ("(?:{at} )?{clock} (?:nachts|in der nacht)", "at {clock} at night"),
        ("(?:am|gegen|zu) mittag", "at noon"),
        ("(?:um |gegen )?mitternacht", "at midnight"),
        ("(?:{at} )?(?:viertel|halb|dreiviertel) {hour} {odd}", ASKED),
        ("(?:{at} )?viertel {hour}(?: uhr)?", ASKED),
        ("(?:am|in der) {part}", "in the {part}"),
        ("in der nacht", "at night"),
        ("{daypart}", "{daypart}"),
        ("außer (?:am )?{weekday}s?", "except {weekday}"),
        ("außer", "except"),
        # delays
        ("in {amount}", "in {amount}"),
        ("in {amount} und {n} {unit}", "in {amount} and {n} {unit}"),
        ("in (?:ein paar|einigen|wenigen) {unit}", "in a few {unit}"),
        ("in {one} (?:moment|augenblick|weile)", "in a while"),
        ("{amount}", "{amount}"),
        ("{amount} später", "{amount} later"),
        ("{amount} lang", "for {amount}"),
        ("nach {n} ?h", ASKED),
        ("nach {amount}", "after {amount}"),
        ("vor {amount}", "{amount} ago"),
        ("jetzt", "now"),
        ("sofort", "now"),
        # series
        ("{frequent}", "{frequent}"),
        ("(?:jeden tag|alle tage)", "every day"),
        ("jeden {part}", "every {part}"),
        ("jede nacht", "every night"),
        ("jeden mittag", "every day at noon"),
        ("(?:an )?(?:jedem|jeden) (?:werktag|wochentag|arbeitstag)", "every weekday"),
        ("(?:an werktagen|an wochentagen|unter der woche)", "every weekday"),
        ("(?:{on} )?montags? bis freitags?", "every weekday"),
        ("von montags? bis freitags?", "every weekday"),
        ("(?:jedes wochenende|an (?:den )?wochenenden|an jedem wochenende)", "every weekend"),
        ("(?:jeden|an jedem) {weekday}", "every {weekday}"),
        ("(?:jeden|an jedem) {weekday} ?{part}", "every {weekday} {part}"),
        ("(?:jeden|an jedem) {weekday} und (?:jeden )?{other}", "every {weekday} and {other}"),
        ("{weekday}s", "every {weekday}"),
        ("{weekday}s und {other}s", "every {weekday} and {other}"),
        ("jeden? (?:zweiten?|2[.]) {weekday}", "every other {weekday}"),
        ("(?:jeden|jede|jedes|jedem)", "every"),
        ("jeden {nth} {weekday}", "every {nth} {weekday}"),
        ("(?:jeden|am) {nth} {weekday} " + _MONTH_OF, "{nth} {weekday} of every month"),
        ("am {nth} {weekday} (?:im|des) monats?", "{nth} {weekday} of the month"),
        ("alle {n} {unit}", "every {n} {unit}"),
        ("alle (?:paar|einige) {unit}", "every few {unit}"),
        ("alle halbe stunde", "every 30 minutes"),
        ("(?:jede|alle) viertelstunde", "every 15 minutes"),
        ("jede halbe stunde", "every 30 minutes"),
        ("(?:jede|jeden|jedes) {each}", "every {each}"),
        ("(?:jede|jeden|jedes) zweiten? {unit}", "every 2 {unit}"),
        ("(?:jede|jeden|jedes) dritten? {unit}", "every 3 {unit}"),
        ("(?:am|zum) {dotted} (?:jedes|eines jeden|jeden) monats", "the {dotted}th of every month"),
        ("(?:am|zum) ersten (?:jedes|eines jeden|jeden) monats", "the 1st of every month"),
        ("jeden monat (?:am|zum) ersten", "the 1st of every month"),
        ("(?:am|zum) {dotted} und {day} (?:jedes|eines jeden|jeden) monats",
         "the {dotted}th and {day}th of every month"),
        ("jeden monat (?:am|zum) {dotted}", "the {dotted}th of every month"),
        ("monatlich (?:am|zum) {dotted}", "the {dotted}th of every month"),
        ("jeden monat (?:am|zum) (?:monatsende|ende)", "the last day of every month"),
        ("(?:am |zum )?ende (?:jedes|eines jeden|jeden) monats", "the last day of every month"),
        ("am letzten tag (?:jedes|eines jeden|jeden) monats", "the last day of every month"),
        ("{n} ?(?:mal|x) (?:am|pro|in der|im|die) {each}", "{n} times a {each}"),
        ("{times} (?:am|pro|in der|im|die) {each}", "{times} a {each}"),
        ("{n} ?(?:mal|x) täglich", "{n} times a day"),
        ("{times} täglich", "{times} a day"),
        # ends and limits
        ("{until} {moment}", "until {moment}"),
        ("{until} {clock} {habit}", "until {clock} in the {habit}"),
        ("{until} {hour}", "until {hour} o'clock"),
        ("(?:ab|von|vom|seit)(?= {moment})", "from"),
        ("zwischen(?= {moment})", "between"),
        ("vor(?= (?:dem )?{moment})", "before"),
        ("nach(?= (?:dem )?{moment})", "after"),
        ("(?:nach|vor|bei) (?:der|dem) (?:arbeit|schule|essen|frühstück|mittagessen|abendessen)",
         "after work"),
        # what is none
        ("gut(?:en|e) (?:morgen|tag|abend|nacht|mittag)", "~"),
        ("und", "and"),
        ("oder", "or"),
        ("(?:kapitel|seite|zimmer|nummer|linie|gleis|raum|bus|tor|hausnummer)", "chapter"),
        ("für", "for"),
        ("(?:zu|dass|daran|mit|wegen|weil|damit)", "that"),
        ("{odd}", ASKED),
    ),
    after=(
        ("mittags?", "at noon"),
        ("{habit}", "in the {habit}"),
        ("nachts", "at night"),
        ("(?:[a-z]+ zeit|mez|mesz)", ASKED),
        ("und (?:am |jeden )?{weekday}", "and {weekday}"),
        ("(?:nach|vor|ab) {hour}", ASKED),
        ("(?:(?:sehr |ganz )?spät|später|früher|(?:sehr|ganz) früh)", ASKED),
    ),
    shown_by=listed(
        "am um uhr den dem der das und oder nicht mich mir dass daß daran zu zum zur mit für "
        "fuer von vom vor bei beim ist eine einen einer einem ein auf aus nach bis jeden "
        "jede jedes alle ich wir sie er es im ans ab bitte erinnere erinner anrufen kaufen "
        "gehen machen übermorgen uebermorgen ubermorgen mitternacht mittag monats monatsende "
        "ende halb viertel dreiviertel viertelstunde kommenden nächsten naechsten diesen "
        "jetzt sofort jedem nehmen kochen bringen abholen putzen sagen schreiben"
    ),
    own=listed("h min sec am an in die so was war hat man bald art fast also gut rat not tag"),
    ordinary=listed("montage montags sonntage sonntagen freitage"),
    counted=r"[A-ZÄÖÜ]\w*(?:en|ln|rn|ks|ts|ps)|Eier|Äpfel|Brote|Briefe|Pakete|Hefte|Gäste|Euro|Bücher|Kinder|Bilder|Liter|Prozent|Grad"
    r"|Meter|Punkte|[Kk]m|[Kk]g|ml|mg|%|€",
)  # fmt: skip
