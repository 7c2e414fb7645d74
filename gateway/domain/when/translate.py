"""German, French and Spanish times, put into English words before the English scan.

Only words that speak of time are translated; each English word keeps the place of what it stands
for, so that the text of a reminder stays in the person's own words. A sentence that may be
English is left as it is. Words of time that no rule translates become one that is asked about.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gateway.domain.when.french import FRENCH
from gateway.domain.when.german import GERMAN
from gateway.domain.when.language import ASKED, Grammar, Reading, fold, listed
from gateway.domain.when.spanish import SPANISH
from gateway.domain.when.tokens import Token, Words
from gateway.domain.when.words import (
    CLOCK_WORDS,
    MONTHS,
    OTHER_TIME_WORDS,
    SPELLABLE,
    TODAY_SHIFTS,
    TONIGHT,
    UNITS,
    UTC_NAMES,
    WEEKDAYS,
    ZONE_ABBREVIATIONS,
)

_GRAMMARS: Final = (Grammar(GERMAN), Grammar(FRENCH), Grammar(SPANISH))
_ENGLISH_TIME: Final = frozenset(
    {*WEEKDAYS, *MONTHS, *TODAY_SHIFTS, *TONIGHT, *UNITS, *CLOCK_WORDS, *SPELLABLE}
    | {*OTHER_TIME_WORDS, *UTC_NAMES, *ZONE_ABBREVIATIONS}
)
_ENGLISH: Final = _ENGLISH_TIME | listed(
    "a i the to at of for with my me and or but from by on in an is it are was be do not no so "
    "remind reminder every each next this that these last other first you your please he she we "
    "they his her our their who what when where how if then about after before until till past "
    "half quarter two three four five seven eight nine ten eleven twelve twenty call buy take "
    "get go see pay make read write send ask tell say book watch there will have has can"
)
_ORDINAL: Final = re.compile(r"[0-9]{1,2}(?:[.][0-9]{1,2})?")
# Digits have a meaning of their own, and so have addresses and names of zones.
_LEGIBLE: Final = re.compile(r".*[0-9/@].*|\W+")
_MERIDIEM: Final = re.compile(r"[0-9:.]+(?:[ap]m|[ap][.]m)")
_UNREAD: Final = "~"
"""In front of a word: English has no reading for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """The folded words of a sentence as one text, with the place where each begins.

    `indices` has the number of words up to each place where one ends.
    """

    text: str
    starts: tuple[int, ...]
    indices: dict[int, int]


def translate(words: Words) -> Words:
    """The words with the times of another language in English; the same words for English."""
    grammar = _grammar_of(words)
    return words if grammar is None else Words(tuple(_translated(words, grammar)))


def _grammar_of(words: Words) -> Grammar | None:
    """The language that most words speak for, if they are more than those for English."""
    best, most = None, 0
    for grammar in _GRAMMARS:
        score = sum(_vote(words, index, grammar) for index in range(len(words)))
        if score > most:
            best, most = grammar, score
    return best


def _vote(words: Words, index: int, grammar: Grammar) -> int:
    """How much the word speaks for the language: less than nothing if for English."""
    word = words.at(index)
    if _MERIDIEM.fullmatch(word) or (word in ("am", "pm") and words.at(index - 1)[-1:].isdigit()):
        return -1
    if grammar.names_day(fold(word)) and word not in _ENGLISH_TIME:
        return 2
    if word in grammar.language.shown_by:
        return 1
    if word in grammar.language.own:
        return 0
    if word in _ENGLISH:
        return -1
    return 1 if word.strip("@0123456789") and fold(word) in grammar.vocabulary else 0


def _line(words: Words, grammar: Grammar) -> _Line:
    """A full stop behind digits may make them an ordinal, so it stays with them."""
    text, starts, indices = "", [], {}
    for index, token in enumerate(words.tokens):
        is_dotted = token.gap.startswith(".") and _ORDINAL.fullmatch(token.word)
        starts.append(len(text))
        # Some marks fold to a space, which only stands between words here.
        word = '"' if token.is_quoted else fold(token.word).replace(" ", "")
        text += grammar.numbers.get(word, word) + ("." if is_dotted else "")
        indices[len(text)] = index + 1
        is_parted = replace(token, gap=token.gap[1:]).ends if is_dotted else token.ends
        text += " ; " if is_parted else " "
    return _Line(text=text, starts=tuple(starts), indices=indices)


def _translated(words: Words, grammar: Grammar) -> Iterator[Token]:
    line = _line(words, grammar)
    rules = grammar.rules_for(line.text)
    index, follows = 0, False
    while index < len(words):
        reading = grammar.read(rules, line.text, line.starts[index], follows=follows)
        if reading is None:
            yield _unread(words.tokens[index], grammar)
            index, follows = index + 1, False
            continue
        end, lead = line.indices[reading.end], line.indices.get(reading.lead_end, index)
        if _may_count(words, end, grammar):
            reading = Reading(english=(ASKED,), lead_end=0, end=reading.end)
        yield from _run(words.tokens[index:end], reading.english, lead=lead - index)
        index, follows = end, not line.text.startswith(" ;", reading.end)


def _unread(token: Token, grammar: Grammar) -> Token:
    """A word of the text: English must not take it for a time, unless it is one in English."""
    is_english = token.word in _ENGLISH_TIME and token.word not in grammar.language.own
    if token.is_quoted or is_english or _LEGIBLE.fullmatch(token.word):
        return token
    if grammar.is_slip(fold(token.word)):
        return replace(token, word=ASKED)
    return replace(token, word=_UNREAD + token.word)


def _may_count(words: Words, end: int, grammar: Grammar) -> bool:
    """Whether the number in front of `end` may count what follows: "um 9 Uhr 20 Eier kaufen"."""
    last, following = words.at(end - 1), words.joined(end)
    if words.at(end - 2) == "uhr" and re.fullmatch("[0-9]", last):
        return True  # "17 Uhr 5" has no minutes, which are two digits
    is_number = (last.isdigit() and len(last) < 4) or fold(last) in grammar.numbers
    if not (is_number and following):
        return False
    return re.fullmatch(grammar.language.counted, words.tokens[end].raw) is not None


def _run(tokens: Sequence[Token], english: Sequence[str], *, lead: int) -> Iterator[Token]:
    """English words in the place of others.

    The first has the place of the `lead` words. Of the rest, each has one word and the first of
    them what is left over; or the first has all and the others none, where there are too few.
    """
    if not lead and english[0] in ("at", "on") and len(english) > 1:
        first = tokens[0]
        yield replace(first, word=english[0], raw="", end=first.start, gap=" ")
        english = english[1:]
    if lead and len(english) > 1:
        yield _joined(tokens[:lead], english[0], gap=" ")
        english, tokens = english[1:], tokens[lead:]
    spare = len(tokens) - len(english) + 1
    head = tokens[:spare] if spare > 0 else tokens
    for number, word in enumerate(english):
        gap = tokens[-1].gap if number == len(english) - 1 else " "
        if number == 0:
            yield _joined(head, word, gap=gap)
        elif spare > 0:
            yield replace(tokens[spare + number - 1], word=word, gap=gap)
        else:
            end = tokens[-1].end
            yield replace(tokens[-1], word=word, raw="", start=end, end=end, gap=gap)


def _joined(tokens: Sequence[Token], word: str, *, gap: str) -> Token:
    raw = " ".join(token.raw for token in tokens)
    return replace(tokens[0], word=word, raw=raw, end=tokens[-1].end, gap=gap)
