"""How the time words of another language are written down, and matched against a sentence.

A rule is a pair: a pattern over folded words (lower case, no accents, one space between two) and
the English for it. A pattern is a regular expression with fields in braces, and numbers in it are
digits. A field is a kind of number, a table of words, or a list of rules of its own; the English
names the same fields, or what is reckoned from them (`_reckoned`).
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

Rule = tuple[str, str]
Rules = tuple[Rule, ...]

ASKED: Final = "overmorrow"
"""An English time word that no rule turns into a moment: what becomes it is asked about."""

# "treinta y cinco", "vingt et un", "vingt deux" are two numbers in a line.
_TENS: Final = r"[2-9]0 (?:(?:et|y) )?(?:[1-9](?![0-9.:h])|un[aeo]?\b)"
_NUMBERS: Final = {
    "n": f"{_TENS}|[0-9]{{1,6}}",
    "more": f"{_TENS}|[0-9]{{1,6}}",
    "hour": "[0-9]{1,2}[.]?",
    "minute": f"{_TENS}|[0-9]{{1,2}}[.]?",
    "day": f"{_TENS}|[0-9]{{1,2}}[.]?",
    "zero": "0[0-9]",
    "year": "(?:19|20)[0-9]{2}",
    "dotted": "[0-9]{1,2}[.]",
}
_FIELD: Final = re.compile(r"\{([a-z]+)\}")
_GROUP: Final = re.compile(r"\([^()]*\)|\[[^\]]*\]")
_CHOICE: Final = re.compile(r"\(\?:([^()]*)\)(?![?*])")
_MAYBE: Final = re.compile(r".[?*]|\\.|\{[^}]*\}")
_LETTERS: Final = re.compile("[a-z]+")
_SPELT_OUT: Final = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})
_EITHER_WAY: Final = str.maketrans({"ä": "ae?", "ö": "oe?", "ü": "ue?", "ß": "ss"})
_LEADS: Final = ("at", "on", "until", "the")
_SPELLABLE: Final = ("weekday", "month", "today")
_LEAST_LETTERS: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """The tables of one language.

    `after` holds rules that count only right behind another time, and win there; `shown_by` words
    that show the language besides those of the tables; `own` words that English knows as
    something else; `ordinary` words that are a letter away from a time; `counted` what a number in
    front of it may count, as typed.
    """

    numbers: Mapping[str, int]
    tables: Mapping[str, Mapping[str, str]]
    shapes: Mapping[str, Rules]
    rules: Rules
    after: Rules
    shown_by: frozenset[str]
    own: frozenset[str]
    ordinary: frozenset[str]
    counted: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The English for the text up to `end`; the text up to `lead_end` is its first word."""

    english: tuple[str, ...]
    lead_end: int
    end: int


def listed(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


def numbered(text: str, *, start: int) -> dict[str, int]:
    """The words of a text as numbers that follow each other."""
    return {word: number for number, word in enumerate(text.split(), start=start)}


def fold(word: str) -> str:
    """The word without capitals and accents."""
    spread = unicodedata.normalize("NFKD", word.lower().replace("ß", "ss"))
    return "".join(letter for letter in spread if not unicodedata.combining(letter))


def _without_a_letter(word: str) -> set[str]:
    """The word, and what is left of it without one of its letters; the first letter stays."""
    return {word} | {word[:at] + word[at + 1 :] for at in range(1, len(word))}


def _folded(table: Mapping[str, str]) -> dict[str, str]:
    """A table by the ways to write its words: without accents, and with ae for an umlaut."""
    spelt_out = {word.translate(_SPELT_OUT): english for word, english in table.items()}
    return {fold(word): english for word, english in (dict(table) | spelt_out).items()}


class _Rule:
    """A rule that is compiled when a sentence first has the word that it cannot do without."""

    def __init__(self, rule: Rule, grammar: "Grammar") -> None:
        self._source, self.english = rule
        self._grammar = grammar
        self._needed = _needed(self._source)

    def may_match(self, text: str) -> bool:
        return any(run in text for run in self._needed)

    @cached_property
    def pattern(self) -> "re.Pattern[str]":
        return re.compile(rf"{self._grammar.expanded(self._source)}(?<! )(?!\S)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """The rules that a text may match: `everywhere`, and `behind` another time."""

    everywhere: Sequence[_Rule]
    behind: Sequence[_Rule]


class Grammar:
    """The rules of one language."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self._texts: dict[str, str] = {}

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """All words of the tables, folded."""
        tables = (self.numbers, *self._tables.values())
        return frozenset(word for table in tables for word in table)

    def names_day(self, word: str) -> bool:
        """Whether a word is one like "tomorrow", or a weekday, also with its plural or evening."""
        return word in self._tables["today"] or word.startswith(tuple(self._tables["weekday"]))

    @cached_property
    def numbers(self) -> dict[str, str]:
        """The digits of each number in words, folded."""
        return _folded({word: str(n) for word, n in self.language.numbers.items()})

    def is_slip(self, word: str) -> bool:
        """Whether a word that no rule read is a letter away from the name of a day or month."""
        is_known = word in self.vocabulary or word in self.language.ordinary
        if is_known or len(word) < _LEAST_LETTERS - 1:
            return False
        return any(near in self._near for near in _without_a_letter(word))

    @cached_property
    def _near(self) -> frozenset[str]:
        names = (word for name in _SPELLABLE for word in self._tables[name])
        return frozenset(
            near
            for word in names
            if len(word) >= _LEAST_LETTERS
            for near in _without_a_letter(word)
        )

    def rules_for(self, text: str) -> Candidates:
        """The rules that some place of the text may match."""
        everywhere = [rule for rule in self._rules if rule.may_match(text)]
        after = [rule for rule in self._after if rule.may_match(text)]
        return Candidates(everywhere=everywhere, behind=[*after, *everywhere])

    def read(self, rules: Candidates, text: str, place: int, *, follows: bool) -> Reading | None:
        """The longest reading at `place`; `follows` tells that another time ends right before."""
        best: Reading | None = None
        for rule in rules.behind if follows else rules.everywhere:
            match = rule.pattern.match(text, place)
            if match is None or (best is not None and match.end() <= best.end):
                continue
            filled = self._fill(rule.english, match)
            if filled is not None:
                english_words = tuple(filled.split())
                best = Reading(english=english_words, lead_end=_lead(match), end=match.end())
        return best

    @cached_property
    def _tables(self) -> dict[str, dict[str, str]]:
        return {name: _folded(table) for name, table in self.language.tables.items()}

    @cached_property
    def _shapes(self) -> dict[str, list[_Rule]]:
        shapes = self.language.shapes.items()
        return {name: [_Rule(rule, self) for rule in rules] for name, rules in shapes}

    @cached_property
    def _rules(self) -> list[_Rule]:
        return [_Rule(rule, self) for rule in self.language.rules]

    @cached_property
    def _after(self) -> list[_Rule]:
        return [_Rule(rule, self) for rule in self.language.after]

    def expanded(self, pattern: str, *, is_named: bool = True) -> str:
        """The regular expression of a pattern, its fields as groups (with their names)."""

        def field(found: "re.Match[str]") -> str:
            return f"({f'?P<{found[1]}>' if is_named else '?:'}{self._text(found[1])})"

        return _FIELD.sub(field, _spelt(pattern))

    def _text(self, name: str) -> str:
        """The regular expression of a field, with no names in it."""
        if name in _NUMBERS:
            return _NUMBERS[name]
        if name not in self._texts:
            words = sorted(self._tables.get(name, ()), key=len, reverse=True)
            shape = self.language.shapes.get(name, ())
            plain = (self.expanded(pattern, is_named=False) for pattern, _ in shape)
            self._texts[name] = "|".join((*map(re.escape, words), *plain))
        return self._texts[name]

    def _value(self, name: str, text: str) -> str | None:
        if name in _NUMBERS:
            tens, *ones = text.removesuffix(".").split()
            return tens if not ones else str(int(tens) + int(ones[-1] if ones[-1].isdigit() else 1))
        if name in self._tables:
            return self._tables[name][text]
        for rule in self._shapes[name]:
            match = rule.pattern.fullmatch(text) if rule.may_match(text) else None
            filled = None if match is None else self._fill(rule.english, match)
            if filled is not None:
                return filled
        return None

    def _fill(self, english: str, match: "re.Match[str]") -> str | None:
        values: dict[str, str] = {}
        for name, text in match.groupdict().items():
            value = None if text is None else self._value(name, text)
            if text is not None and value is None:
                return None
            values[name] = value or ""
        return _FIELD.sub(lambda found: _reckoned(found[1], values), english)


def _spelt(pattern: str) -> str:
    """The pattern without accents, an umlaut with or without its "e"."""
    return fold(pattern.translate(_EITHER_WAY))


def _needed(pattern: str) -> tuple[str, ...]:
    """Runs of letters of which each match of a pattern has one; an empty one if none is sure."""
    spelt = _FIELD.sub(" ", _spelt(pattern))
    choice = _CHOICE.match(spelt)
    plain, before = spelt, ""
    while plain != before:
        plain, before = _GROUP.sub(" ", plain), plain
    if _longest_run(plain) or choice is None:
        return (_longest_run(plain),)
    return tuple(_longest_run(alternative) for alternative in choice[1].split("|"))


def _longest_run(pattern: str) -> str:
    return max(_LETTERS.findall(_MAYBE.sub(" ", pattern)), key=len, default="")


def _lead(match: "re.Match[str]") -> int:
    """Where the preposition or article in front ends; the start if there is none."""
    groups = match.groupdict()
    leads = (name for name in _LEADS if groups.get(name) is not None)
    return next(
        (match.end(name) for name in leads if match.start(name) == match.start()), match.start()
    )


def _reckoned(name: str, values: Mapping[str, str]) -> str:
    """The field itself, or what is reckoned from it: the hour before, the minutes left."""
    minute = int(values.get("minute") or 0)
    match name:
        case "before":
            hour = int(values["hour"])
            return str(hour - 1 if hour > 1 else 12 if hour else 23)
        case "left":
            return f"{60 - minute:02}"
        case "tohalf":
            return f"{30 - minute:02}"
        case "pasthalf":
            return f"{30 + minute:02}"
        case "minute":
            return f"{minute:02}"
        case _:
            return values[name]
