"""What a short answer to a reminder asks for: nothing but whole phrases, never a word in a text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from gateway.domain.letters import plain_letters
from gateway.domain.schedule import At
from gateway.domain.when import Unclear, UnclearReason, Understood, When, parse_when

SNOOZE: Final = "10m"
"""How long a snooze lasts that does not say it."""

MIN_DELAY: Final = timedelta(minutes=1)
"""The nearest time to which a reminder is put off."""


@dataclass(frozen=True, slots=True)
class Done:
    """The person did it."""


@dataclass(frozen=True, slots=True)
class StopIt:
    """It is not to come again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnoozeUntil:
    """It is to come again once, then (aware UTC). `said` is how the person put the time."""

    at: datetime
    said: str


Quick = Done | StopIt | SnoozeUntil

_MOST_CHARACTERS: Final = 100
_PUNCTUATION: Final = " .,;:!…"
_DONE_SIGNS: Final = frozenset("✅✔☑👍")
_SIGNS: Final = {ord(sign): " " for sign in _DONE_SIGNS}
_VARIATION_SIGNS: Final = re.compile("[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]")
_COURTESIES: Final = frozenset(
    {
        *("ok", "okay", "yes", "yeah", "please", "thanks", "ja", "gut", "bitte", "danke"),
        *("oui", "merci", "stp", "svp", "si", "vale", "gracias"),
    }
)
_TAIL_COURTESIES: Final = _COURTESIES | {
    *("now", "thank", "you", "jetzt", "maintenant", "ahora", "por", "favor"),
}

_DONE: Final = frozenset(
    {
        *("done", "all done", "it's done", "its done", "it is done", "is done", "done it"),
        *("done that", "done this", "already done", "i did", "i did it", "did it", "did that"),
        *("i'm done", "i am done", "finished", "completed"),
        *("fertig", "erledigt", "ist erledigt", "schon erledigt", "gemacht", "schon gemacht"),
        *("habe ich gemacht", "hab ich gemacht", "hab ich", "bin fertig"),
        *("fait", "c'est fait", "deja fait", "termine", "c'est termine", "fini"),
        *("hecho", "ya esta", "ya esta hecho", "esta hecho", "listo", "terminado", "ya lo hice"),
    }
)
_STOP: Final = re.compile(
    r"""
      (?:stop|cancel|delete|remove)
      (?:[ ](?:it|this|that|(?:this|that|the|my)[ ](?:one|reminder|series)
        |reminding[ ]me(?:[ ](?:of|about)[ ](?:this|that|it))?))?
    | (?:do[ ]not|don't|dont)[ ]remind[ ]me(?:[ ](?:of|about)[ ](?:this|that|it))?
      (?:[ ](?:again|anymore|any[ ]more))?
    | (?:(?:das|dies|diese|die|den)[ ])?(?:erinnerung[ ])?
      (?:stopp|stoppe|stoppen|abbrechen|beenden|loschen|absagen|aufhoren|stornieren)
    | (?:stopp|stoppe|losche|losch|beende|storniere)
      [ ](?:das|dies|sie|es|(?:diese|die)(?:[ ]erinnerung)?)
    | hor[ ](?:bitte[ ])?auf(?:[ ]damit)?
    | (?:mich[ ])?nicht[ ]mehr(?:[ ]daran)?[ ]erinnern
    | erinnere?[ ]mich[ ]nicht[ ]mehr(?:[ ]daran)?
    | (?:arrete|annule|supprime|stoppe)[rz]?
      (?:[ -](?:ca|cela|le|la|ce[ ]rappel|celui-ci|celui-la))?
    | ne[ ]me[ ]le[ ]rappelle[ ]plus
    | (?:para|parar|cancela|cancelar|deten|detener|borra|borrar|elimina|eliminar|quita|quitar)
      (?:[ ](?:esto|este|eso|esta|este[ ]recordatorio))?
    | (?:cancela|deten|borra|elimina|quita)lo
    | no[ ]me[ ]lo[ ]recuerdes[ ]mas
    """,
    re.VERBOSE,
)
_THAT: Final = r"(?:[ ](?:it|this|that|(?:this|that|the)[ ](?:one|reminder)|das|es|le|ca|esto))?"
_SNOOZE: Final = re.compile(
    rf"(?:snooze|schlummern|postpone|aplaza|aplazar|pospon|posponer|reporte|reporter){_THAT}"
)
_AGAIN: Final = re.compile(
    rf"""
      (?:snooze|schlummern|postpone|aplaza|aplazar|pospon|posponer|reporte|reporter){_THAT}
    | remind[ ]me(?:[ ](?:of|about))?{_THAT}(?:[ ]again)?(?:[ ]later)?
    | again | later
    | erinnere?[ ]mich(?:[ ]daran)?(?:[ ](?:nochmals|nochmal|noch[ ]mal|wieder))?
    | verschiebe?n?{_THAT} | nochmal | noch[ ]mal | spater
    | rappelle[ -](?:le-)?moi(?:[ ](?:ca|cela))?(?:[ ]encore)? | encore | plus[ ]tard
    | recuerdamelo | recuerdame(?:[ ]esto)?(?:[ ](?:otra[ ]vez|de[ ]nuevo))? | mas[ ]tarde
    """,
    re.VERBOSE,
)
_FOR: Final = frozenset({"for", "by", "um", "fur", "auf", "pour", "de", "por"})
_IN_ELSEWHERE: Final = ("dans", "en")
_LENGTHS_REFUSED: Final = (UnclearReason.TOO_FAR, UnclearReason.IMPOSSIBLE)
_UNTIL: Final = frozenset({"until", "till", "til", "to", "bis", "jusqu'a", "hasta"})


def read_quick(text: str, *, now: datetime, zone: ZoneInfo) -> Quick | None:
    """What a whole short answer asks for, counted from `now`; None = it is an ordinary message."""
    if len(text) > _MOST_CHARACTERS or "?" in text:
        return None
    bare = _VARIATION_SIGNS.sub("", text).replace("’", "'").strip()
    if bare in _DONE_SIGNS:
        return Done()
    words = _without_courtesies(bare.translate(_SIGNS).split())
    plain = _plain(words)
    if plain in _DONE:
        return Done()
    if _STOP.fullmatch(plain):
        return StopIt()
    return _read_snooze(words, plain, now=now, zone=zone)


def read_delay(words: str, *, now: datetime, zone: ZoneInfo) -> Understood | Unclear:
    """Until when something is put off: `10m`, `1h30`, `90 seconds`, `tomorrow at 9`.

    At least a minute and at most five years ahead; the Unclear says so.
    """
    when = _read_time(words, now=now, zone=zone)
    if isinstance(when, Unclear):
        return when
    if not isinstance(when.schedule, At):
        return Unclear(reason=UnclearReason.CONFLICT, question="It is put off to one time.")
    if when.at - now < MIN_DELAY:
        return Unclear(reason=UnclearReason.IMPOSSIBLE, question="Say at least 1 minute.")
    return when


def _read_time(words: str, *, now: datetime, zone: ZoneInfo) -> When:
    # First as a length: "1h30" alone would be half past one.
    length = parse_when(f"in {words}", now=now, zone=zone)
    if isinstance(length, Understood) or length.reason in _LENGTHS_REFUSED:
        return length
    plain = parse_when(words, now=now, zone=zone)
    if isinstance(plain, Understood):
        return plain
    foreign = (parse_when(f"{word} {words}", now=now, zone=zone) for word in _IN_ELSEWHERE)
    return next((when for when in foreign if isinstance(when, Understood)), plain)


def _without_courtesies(words: list[str]) -> list[str]:
    while words and _plain(words[:1]) in _COURTESIES:
        words = words[1:]
    while words and _plain(words[-1:]) in _TAIL_COURTESIES:
        words = words[:-1]
    return words


def _plain(words: Sequence[str]) -> str:
    return " ".join(plain_letters(word).strip(_PUNCTUATION) for word in words).strip()


def _read_snooze(
    words: list[str], plain: str, *, now: datetime, zone: ZoneInfo
) -> SnoozeUntil | None:
    for said in [SNOOZE] if _SNOOZE.fullmatch(plain) else _times(words, plain):
        when = read_delay(said, now=now, zone=zone)
        if isinstance(when, Understood):
            return SnoozeUntil(at=when.at, said=said)
    return None


def _times(words: list[str], plain: str) -> list[str]:
    """What may be the time in it, likeliest first: all of it, or what follows the verb."""
    times = [" ".join(words)]
    verb = _AGAIN.match(plain)
    if verb is None or not plain[verb.end() :].startswith(" "):
        return times
    rest = words[len(verb.group().split()) :]
    times.append(" ".join(rest))
    if len(rest) > 1 and _plain(rest[:1]) in _FOR | _UNTIL:
        after = " ".join(rest[1:])
        times.append(f"at {after}" if _plain(rest[:1]) in _UNTIL else after)
        times.append(after)
    return times
