"""Requests for reminders in German, French and Spanish: how they begin, and what is no text.

The text of a reminder keeps the person's language: without the word that links it to the request
(daran, an, dass | de, que, à | de, que, a), and else as it was written, so that "erinnere mich um
9 daran, Mama anzurufen" reminds of "Mama anzurufen".
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gateway.hosts.builtin.patterns import typed as _typed


@dataclass(frozen=True, slots=True, kw_only=True)
class Tongue:
    """How one language asks for reminders; all patterns are for text as typed.

    `head` may hold groups whose names begin with `inner` (what stands before the verb at the end),
    `that` (what was said before), `wake`, `noun` (alarm), `timer` and `rhythm`, which `rhythms`
    spells out by its first letter. `wake_text` is what one is woken to do, `morning` says that it
    is early in the day, `delay` that a length of time follows. `request` is a whole request, made
    of a time and a text, with samples of both.
    """

    head: re.Pattern[str]
    before: re.Pattern[str]
    links: re.Pattern[str]
    trailing: re.Pattern[str]
    rhythms: Mapping[str, str]
    wake_text: str
    morning: str
    delay: str
    request: str
    sample: tuple[str, str]

    def own(self, text: str) -> str:
        """The text of the reminder without the words that link it to the request."""
        linked = self.links.match(text)
        own = text if linked is None else text[linked.end() :]
        return self.trailing.sub("", own).strip(" ,;:")

    def as_delay(self, after: str) -> str:
        """What follows the word for a timer, read as "in 10 minutes"."""
        return _FOR.sub(f"{self.delay} ", after, count=1)

    def example(self, time: str, text: str) -> str:
        """A whole request, with what the person did say."""
        sample_time, sample_text = self.sample
        return self.request.format(time or sample_time, text or sample_text)


_FOR: Final = _typed(r"^\s*(?:(?:f[uü]r|auf|[uü]ber|von|pour|de|para|por)\s+)?(?=\w)")
_GERMAN: Final = Tongue(
    head=_typed(
        r"\b(?:(?:kannst|k[oö]nntest|w[uü]rdest|magst|willst)\s+du|(?:k[oö]nnen|k[oö]nnten)\s+sie)\s+"
        r"(?:mich|uns)\b(?P<inner>.{0,120}?)\s(?:erinnern|(?P<wake>(?:auf)?wecken))\b",
        r"\bich\s+(?:m[oö]chte|will|w[uü]rde\s+gern)\b(?P<inner2>.{0,120}?)\serinnert\s+werden\b",
        r"\berr?inn?[e']?re?\s+(?:mich|uns)\b|\berr?inn?ern\s+sie\s+(?:mich|uns)\b",
        r"\bweck(?:e|t|en\s+sie)?\s+(?P<wake2>mich|uns)\b(?:\s+auf\b(?!\s+\d))?",
        r"\bvergiss\s+(?:bitte\s+)?nicht\b(?:\s*,?\s*mich\s+(?P<inner3>.{0,120}?)\s?zu\s+erinnern\b)?",
        r"\blass\s+mich\s+nicht\s+vergessen\b|^\W{0,3}denke?\s+(?:bitte\s+)?(?:daran|dran)\b",
        r"\b(?:stelle?|setze?|erstelle?|mache?|lege?|neue|brauche)\s+(?:mir\s+)?(?:bitte\s+)?"
        r"(?:einen?\s+|den\s+|die\s+|meinen?\s+)?(?:neuen?\s+)?(?:(?P<rhythm>t[aä]glich|w[oö]chentlich|"
        r"monatlich|st[uü]ndlich|j[aä]hrlich)en?\s+)?"
        r"(?:erinnerung|(?P<noun>wecker|alarm)|(?P<timer>timer))\b(?:\s+an\b)?",
        r"^\W{0,3}(?:(?P<rhythm2>t[aä]glich|w[oö]chentlich|monatlich|st[uü]ndlich|j[aä]hrlich)e\s+)?"
        r"erinnerung\b(?:\s+an\b)?",
        r"^\W{0,3}(?:(?P<noun2>wecker)|(?P<timer2>timer))\b(?=\s+(?:auf|um|f[uü]r|in|morgen|heute|\d))",
    ),
    before=_typed(
        r"(?<![^\s,])(?:bitte|und|auch|dann|hey|hallo|hi|ok|ja|kannst|k[oö]nntest|du|ich|möchte|dass)"
        r"(?![^\s,.!:])[.!:]?"
    ),
    links=_typed(
        r"(?:[\s,;:]*\b(?:bitte|(?:ein)?mal|doch|noch|daran|dran|an|ans|da?ss|daß|f[uü]r|auf|@)\b)*[\s,;:]*"
        r"(?:\bzu\s+(?=\w+n$))?"
    ),
    trailing=_typed(r"[\s,]{1,5}(?:daran|dran|bitte|an|auf)$"),
    rhythms={
        "t": "jeden Tag",
        "w": "jede Woche",
        "m": "jeden Monat",
        "s": "jede Stunde",
        "j": "jedes Jahr",
    },
    wake_text="aufstehen",
    morning="morgens",
    delay="in",
    request="erinnere mich {}: {}",
    sample=("morgen um 9:00", "Mama anrufen"),
)
_FRENCH: Final = Tongue(
    head=_typed(
        r"\brapp?ell?e[sz]?[\s-]+(?:(?P<that>le)[\s-]+)?(?:moi|nous)\b|\bn['’]oublie[sz]?\s+pas\s+de\s+me\s+rappeler\b",
        r"\b(?:peux|pourrais|veux|pouvez|pourriez|voulez)[\s-]+(?:tu|vous)\s+(?:me|nous)\s+"
        r"(?:rappeler|faire\s+penser|(?P<wake>r[eé]veiller))\b",
        r"\b(?:tu\s+peux|tu\s+pourrais|vous\s+pouvez|il\s+faut)\s+(?:me|nous)\s+rappeler\b",
        r"\bn['’]oublie[sz]?\s+pas\b(?=\s+(?:de\b|d['’]|que\b))|\bfais[\s-]+moi\s+penser\b",
        r"\b(?P<wake2>r[eé]veille[zs]?)[\s-]+(?:moi|nous)\b|\b(?:pr[eé]viens|avertis)[\s-]+moi\b",
        r"\b(?:mets|met|mettez|cr[eé]e[zr]?|ajoute[zr]?|programme[zr]?|r[eè]gle[zr]?)(?:[\s-]+moi)?\s+"
        r"(?:une?\s+|le\s+|la\s+|mon\s+)?(?:nouveau\s+|nouvelle\s+)?"
        r"(?:rappel|(?P<noun>alarme|r[eé]veil)|(?P<timer>minuteur|minuterie))\b"
        r"(?:\s+(?P<rhythm>quotidien|hebdomadaire|mensuel|annuel)(?:ne|le)?\b)?",
        r"^\W{0,3}(?:nouveau\s+)?rappel\b(?:\s+(?P<rhythm2>quotidien|hebdomadaire|mensuel|annuel)\b)?",
    ),
    before=_typed(
        r"(?<![^\s,])(?:s['’]il\s+te\s+pla[iî]t|s['’]il\s+vous\s+pla[iî]t|stp|svp|et|aussi|puis|alors|"
        r"bonjour|salut|ok|oui)(?![^\s,.!:])[.!:]?"
    ),
    links=_typed(
        r"(?:[\s,;:]*(?:\b(?:s['’]il\s+te\s+pla[iî]t|stp|svp|une\s+fois|de|du|des|que|pour|au|aux)\b|[àa](?=\s)|"
        r"\b(?:d|qu)['’]))*[\s,;:]*"
    ),
    trailing=_typed(r"[\s,]{1,5}(?:stp|svp|s['’]il\s+te\s+pla[iî]t|de|à|pour)$"),
    rhythms={"q": "chaque jour", "h": "chaque semaine", "m": "chaque mois", "a": "chaque année"},
    wake_text="se lever",
    morning="du matin",
    delay="dans",
    request="rappelle-moi {} : {}",
    sample=("demain à 9:00", "appeler maman"),
)
_SPANISH: Final = Tongue(
    head=_typed(
        r"\b(?:recu[eé]rd[ae]|acu[eé]rda|av[ií]s[ae]|notif[ií]ca|haz)(?:me|nos)(?P<that>lo)?\b(?:\s+acordar\b)?",
        r"\b(?:puedes?|podr[ií]as?|quieres)\s+(?:recordar|avisar|(?P<wake>despertar))(?:me|nos)(?:lo)?\b",
        r"\bme\s+(?:puedes?|podr[ií]as?)\s+(?:recordar|avisar|(?P<wake2>despertar))\b",
        r"\b(?:quiero|necesito)\s+que\s+me\s+(?:recuerdes|avises)\b",
        r"\bno\s+(?:te\s+)?olvides\s+(?:de\s+)?(?:recordarme\b|(?=que\b|\w+r\b))",
        r"\bno\s+(?:me\s+)?dejes\s+(?:que\s+(?:me\s+)?olvide|olvidar)\b",
        r"\b(?P<wake3>despi[eé]rta)(?:me|nos)\b",
        r"\b(?:pon|ponme|p[oó]n|crea|cr[eé]ame|a[ñn]ade|agrega|programa|haz|hazme|necesito|quiero)\s+"
        r"(?:una?\s+|el\s+|la\s+)?(?:nuevo\s+|nueva\s+)?"
        r"(?:recordatorio|(?P<noun>alarma)|(?P<timer>temporizador))\b"
        r"(?:\s+(?P<rhythm>diari[oa]|semanal|mensual|anual)\b)?",
        r"^\W{0,3}(?:nuevo\s+)?recordatorio\b(?:\s+(?P<rhythm2>diario|semanal|mensual|anual)\b)?",
    ),
    before=_typed(
        r"(?<![^\s,])(?:por\s+favor|y|tambi[eé]n|luego|entonces|hola|ok|s[ií]|oye|que)"
        r"(?![^\s,.!:])[.!:]?"
    ),
    links=_typed(
        r"(?:[\s,;:]*\b(?:por\s+favor|una\s+vez|de|del|que|a|al|para|sobre|lo\s+de)\b)*[\s,;:]*"
    ),
    trailing=_typed(r"[\s,]{1,5}(?:por\s+favor|de|a|para|que)$"),
    rhythms={"d": "cada día", "s": "cada semana", "m": "cada mes", "a": "cada año"},
    wake_text="despertarse",
    morning="de la mañana",
    delay="en",
    request="recuérdame {}: {}",
    sample=("mañana a las 9:00", "llamar a mamá"),
)
TONGUES: Final = (_GERMAN, _FRENCH, _SPANISH)
REPEATING: Final = _typed(
    r"\b(?:jede[nrsm]?|t[aä]glich|w[oö]chentlich|monatlich|immer|"
    r"alle\s+(?:\w+\s+)?(?:minuten|stunden|tage|wochen|monate|jahre))\b",
    r"\b(?:chaque|toujours|quotidiennement|tou(?:s|tes)\s+les\s+(?:\w+\s+)?"
    r"(?:minutes|heures|jours|semaines|mois|ans|matins|soirs))\b",
    r"\b(?:cada|siempre|diariamente|tod[oa]s\s+l[oa]s\s+(?:\w+\s+)?"
    r"(?:minutos|horas|d[ií]as|semanas|meses|a[ñn]os|ma[ñn]anas|noches))\b",
)
"""What sounds like a rhythm in any of them."""


def named(match: re.Match[str], name: str) -> str:
    """What the head holds under a name; "" if nothing."""
    groups = match.groupdict()
    return next((value for key, value in groups.items() if key.startswith(name) and value), "")
