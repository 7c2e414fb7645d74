"""The phrases that change, stop and show reminders, in four languages: tables, nothing else.

They are matched against small letters without accents, single spaces and plain apostrophes.
"""

import re
from collections.abc import Mapping
from typing import Final

from gateway.hosts.builtin.intents import Deed
from gateway.hosts.builtin.patterns import any_of as _any
from gateway.hosts.builtin.patterns import maybe as _maybe

_SMALL: Final = (
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve",
)  # fmt: skip
# "the one" is no number.
_NUMBER = r"(?:\d{1,9}|\b(?<!\bthe )(?<!\bmy )" + _any(*_SMALL) + r"\b)"
NUMBER: Final = re.compile(_NUMBER, re.ASCII)
_REMINDER = _any(
    "reminders?", "alarms?", "timers?", "wecker", "erinnerung(?:en)?", "rappels?", "alarmes?",
    "recordatorios?", "alarmas?",
)  # fmt: skip
_NOUN = _any(
    _REMINDER, "jobs?", "numbers?", r"nos?\.?", "ids?", "nummer", r"nr\.?", "numeros?"
)  # fmt: skip
_ARTICLE = _maybe(
    "the ", "my ", "die ", "der ", "den ", "das ", "meine[nr]? ", "le ", "les ",
    "mon ", "mes ", "l'", "el ", "la ", "los ", "las ", "mi ", "mis ", "du ", "del ", "of ",
)  # fmt: skip
_NAMED = _ARTICLE + _maybe(f"{_NOUN} ", "with ", times=3)
_AND = _any(",? and ", ",? und ", ",? et ", ",? y ", ", ?", " & ", " ")
_NUMBERS = rf"(?P<numbers>#? ?{_NUMBER}(?:{_AND}{_NAMED}#?{_NUMBER})*)"
_LISTED = rf"(?P<numbers>#?{_NUMBER}(?:(?:,? (?:and|und|et|y) |, ?){_NAMED}#?{_NUMBER})*)"
_MY_REMINDERS = _maybe("all ") + _maybe("of ") + _ARTICLE + _any(
    "reminders", "alarms", "timers", "erinnerungen", "wecker", "rappels", "alarmes",
    "recordatorios", "alarmas", "everything",
)  # fmt: skip
_ALL = _any(
    "all", "everything", "them all", "all of them", "every reminder", _MY_REMINDERS,
    "alles", f"alle {_NOUN}", "alle", "tout", "tous", f"tous {_ARTICLE}{_NOUN}", "todo", "todos",
    f"todos {_ARTICLE}{_NOUN}",
)  # fmt: skip
_THAT = _any(
    "(?:that|this) (?:one|reminder|alarm|series)", "the (?:one|reminder)", "it", "that", "this",
    "das", "es", "sie", "diese erinnerung", "ca", "cela", "ce rappel", "celui-ci",
    "esto", "eso", "(?:este|ese) recordatorio",
)  # fmt: skip

_VERBS: Final[Mapping[Deed, str]] = {
    Deed.CANCEL: _any(
        "cancel", "delete", "remove", "stop", "drop", "erase", "dismiss", "clear", "kill", "forget",
        "get rid of", "loe?sche?n?", "streiche?", "entferne?", "storniere?", "beende?",
        "stoppe?", "annule[rz]?", "supprime[rz]?", "efface[rz]?", "arrete[rz]?", "enleve[rz]?",
        "cancelar?", "borrar?", "eliminar?", "quitar?", "anular?",
    ),
    Deed.PAUSE: _any(
        "pause", "suspend", "disable", "turn off", "deactivate", "mute", "pausieren?",
        "suspends", "pausar?", "suspende", "desactiva", "desactive", "(?:mets|pon) en paus[ea]",
    ),
    Deed.RESUME: _any(
        "resume", "unpause", "continue", "reactivate", "enable", "restart", "turn on", "unmute",
        "reaktiviere?", "reprends", "reprendre", "reactive", "reanudar?", "reactivar?", "continua",
    ),
    Deed.RUN_NOW: _any("run", "fire", "trigger", "execute"),
    Deed.GET: _any(
        "show", "display", "get", "view", "open", "see", "read", "show me", "tell me about",
        "details?", "zeige?", "zeige? mir", "montre[rz]?", "montre[rz]?[- ]moi", "affiche[rz]?",
        "muestra(?:me)?", "ensena(?:me)?",
    ),
    Deed.HISTORY: _any(
        "(?:show |show me )?(?:the )?history(?: of| for)?", "verlauf(?: von)?", "log of",
        "historique(?: de)?", "historial(?: de)?", "what happened (?:to|with)", "did you send",
    ),
}  # fmt: skip
_NOW = _maybe(" now", " right now", " immediately", " at once", " jetzt", " maintenant", " ahora")
_OFF = _any("fire", "go off", "run", "ring", "go out")
_OTHER_FORMS: Final = {
    Deed.CANCEL: "#?N (?:loe?schen|abbrechen|stornieren|streichen)",
    Deed.PAUSE: "#?N pausieren|(?:put|mets|setze?|pon) #?N (?:on hold|en pause|auf pause|en pausa)",
    Deed.RESUME: "setze? #?N fort|#?N fortsetzen",
    Deed.RUN_NOW: "send #?N (?:right )?now",
    Deed.GET: "(?:what|when)(?:'s| is) #N(?: due| set for| next)?|#N|#?N (?:an)?zeigen|"
    r"is #N (?:still )?\w+",
    Deed.HISTORY: f"#?N history|(?:when )?did #?N {_OFF}(?: last)?",
}
_NEVER: Final = "(?!)"
# A sentence with the numbers of reminders, for which N stands in the patterns of this group: N
# alone, or #N where it is plain that a reminder is meant.
NUMBERED: Final = re.compile(
    rf"(?:(?P<before>.{{1,40}}?)(?: |(?=[#\d])))??(?P<named>{_NAMED}){_NUMBERS}(?P<after>(?: .+)?)",
    re.ASCII,
)
NOUN: Final = re.compile(rf"\b{_NOUN}")
DEEDS: Final = {
    deed: re.compile(f"{verbs} #?N{_NOW}|{_OTHER_FORMS.get(deed, _NEVER)}")
    for deed, verbs in _VERBS.items()
}
PAUSE_UNTIL: Final = re.compile(f"{_VERBS[Deed.PAUSE]} #?N (?:until|till|for|by|bis) .+")
NO_WHOLE_CANCEL: Final = re.compile("(?:stop|delete|remove) #?N .+")
# A sentence that names no number: its verb, and what may follow.
VERBS: Final = {deed: re.compile(rf"{verbs}(?:$| )") for deed, verbs in _VERBS.items()}
ALL_OF_THEM: Final = re.compile(_ALL)
ALL_AWAY: Final = re.compile(f"{_ALL} (?:loe?schen|abbrechen|stornieren|streichen)")
THAT_NOW: Final = re.compile(f"{_THAT}{_NOW}")
A_REMINDER: Final = re.compile(rf"$|{_THAT}$|.{{0,60}}\b{_REMINDER}(?!\S)")
CANCEL: Final = re.compile(r"(?:cancel|undo)\b|(?:stop|delete|remove) the last\b")
NEGATIVE: Final = re.compile(
    r"\b(?:don't|dont|do not|never|stop|no need to|needn't|quit|not to) remind(?:ing)?\b|"
    r"\berinnere? mich (?:bitte )?nicht\b|\bne me rappelle[zs]? (?:pas|plus)\b|"
    r"\bno me (?:lo )?recuerdes\b|\barrete de me rappeler\b"
)

SNOOZE: Final = re.compile(
    r"(?:snooze|schlummern|schlummere|aplazar?|posponer?|repousse[rz]?)(?:$| )"
)
_SNOOZED = rf"(?P<that>{_THAT})|(?P<named>{_NAMED}){_LISTED}"
SNOOZED: Final = re.compile(rf"(?:{_SNOOZED})(?:$| )")
_FOR = _any("for", "by", "another", "um", "fur", "de", "pour", "por", "pendant", "again in", "in")
_UNTIL = _any("until", "till", "til", "to", "bis", "auf", "jusqu'a", "hasta")
SNOOZE_LINK: Final = re.compile(rf"(?:{_FOR}|(?P<until>{_UNTIL}))(?:$| )")
AGAIN_SOMETIME: Final = re.compile(
    "(?:once )?again|once more|later|nochmals?|noch (?:ein)?mal|spater|encore|plus tard|otra vez|"
    "de nuevo|mas tarde"
)
AGAIN: Final = re.compile(r"(?:once )?(?:again|more)(?: in)? |nochmal(?:s)? |encore |otra vez ")

_MOVING = _any(
    "move", "change", "reschedule", "shift", "push", "postpone", "delay", "update", "verschiebe?",
    "verlege?", "andere?", "deplace[rz]?", "changez", "reporte[rz]?", "decale[rz]?", "mueve",
    "cambia", "aplaza", "pospon", "pasa", "repousse[rz]?",
)  # fmt: skip
_PUTTING = _any("set", "put", "make", "setze?", "stelle?", "mets", "pon")
_TO = _any(
    "to", "until", "till", "for", "on", "at", "auf", "nach", "zu", "bis", "a", "au", "pour", "al",
    "para", "en",
)  # fmt: skip
_BY = _any("by", "um", "de", "por", "back", "forward", "out", "up")
MOVE: Final = re.compile(
    "(?:(?:no|oh|sorry|actually|and),? )?"
    rf"(?:(?P<moving>{_MOVING})|{_PUTTING}) (?:the (?:time|date|day) (?:of|for) )?"
    rf"(?:(?P<that>{_THAT})|{_NAMED}#? ?(?P<number>{_NUMBER}))"
    rf" (?:(?P<by>{_BY}) )?(?P<linked>(?P<link>{_TO}) |from .{{1,60}} to )?(?P<time>.+)",
    re.ASCII,
)
INSTEAD: Final = re.compile(
    r"[\s,]+(?:instead(?: of .+)?|then|stattdessen|plut[oô]t)$", re.IGNORECASE
)
# "reminder 2 at 5pm": a new one with the text "2", or another time for number 2?
NUMBER_AND_TIME: Final = re.compile(rf"{_REMINDER} #?(?P<number>{_NUMBER}) (?P<time>.+)", re.ASCII)
RENAME: Final = re.compile(
    r"(?:please |can you |could you |bitte )?"
    rf"(?:(?:rename|benenne?|nenne?|renomme[rz]?|renombrar?) {_NAMED}#? ?(?P<first>{_NUMBER})"
    r"(?: um)?(?: (?:to|as|into|in|zu|en|a|como|por))?:? (?=\S)|"
    rf"{_any('change', 'edit', 'update', 'set', 'andere?', 'cambia', 'change[rz]')} "
    rf"{_ARTICLE}(?:text|title|name|wording|texte|titre|texto|titulo) "
    rf"(?:(?:of|for|von|de) )?{_NAMED}#? ?(?P<second>{_NUMBER}) (?:to|as|in|zu|en|a|por):? (?=\S))",
    re.ASCII,
)
_CHANGING = _any(_MOVING, "edit", "rename", "renomme[rz]?", "benenne?")
CHANGE: Final = re.compile(
    rf"{_CHANGING}(?:$| {_THAT}$| {_ALL} {_TO} | .{{0,60}}(?:\b{_REMINDER}(?!\S)|#\d))"
)
CHANGE_NUMBERED: Final = re.compile(f"{_CHANGING} #?N(?: {_TO} .+)?")
RENAME_THAT: Final = re.compile(f"(?:rename|renomme[rz]?|benenne?) {_THAT} .+")


def number_of(word: str) -> int:
    """The number that a match of NUMBER stands for."""
    return _SMALL.index(word) + 1 if word in _SMALL else int(word)
