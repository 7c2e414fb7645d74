"""Times in German, French and Spanish mean the same as the English ones, or are asked about."""

import re
import unicodedata
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.cron_words import describe_cron
from gateway.domain.schedule import Cron
from gateway.domain.schedule_forms import describe
from gateway.domain.when import Unclear, UnclearReason, Understood, When, find_when, parse_when
from gateway.domain.when.tokens import read_words
from gateway.domain.when.translate import translate
from tests.unit import when_phrasings as english
from tests.unit.when_languages_phrasings import (
    FRENCH,
    FRENCH_ASKED,
    FRENCH_IN_SENTENCES,
    FRENCH_REFUSED,
    GERMAN,
    GERMAN_ASKED,
    GERMAN_IN_SENTENCES,
    GERMAN_REFUSED,
    SPANISH,
    SPANISH_ASKED,
    SPANISH_IN_SENTENCES,
    SPANISH_REFUSED,
)

BERLIN = ZoneInfo("Europe/Berlin")
MONDAY = datetime(2026, 11, 30, 10, 0, tzinfo=BERLIN)
UNDERSTOOD = GERMAN + FRENCH + SPANISH
REFUSED = GERMAN_REFUSED + FRENCH_REFUSED + SPANISH_REFUSED
IN_SENTENCES = GERMAN_IN_SENTENCES + FRENCH_IN_SENTENCES + SPANISH_IN_SENTENCES
ASKED = GERMAN_ASKED + FRENCH_ASKED + SPANISH_ASKED
ENGLISH = tuple(
    row if isinstance(row, str) else row[0]
    for table in vars(english).values()
    if isinstance(table, tuple)
    for row in table
)


def parse(words: str, now: datetime = MONDAY) -> When:
    return parse_when(words, now=now, zone=BERLIN)


def moment(when: When) -> tuple[str, str]:
    """The local time and the rhythm."""
    assert isinstance(when, Understood), when
    local = when.at.astimezone(BERLIN).strftime("%Y-%m-%d %H:%M:%S")
    shown = describe(when.schedule, BERLIN, now=MONDAY)
    if isinstance(when.schedule, Cron):
        fields = when.schedule.expression
        shown = shown.replace(describe_cron(fields), f"cron {fields}", 1)
        shown = re.sub(r"(cron [^(]+) \([^)]*\)", r"\1", shown)
    return local, shown


def without_accents(text: str) -> str:
    spread = unicodedata.normalize("NFKD", text)
    return "".join(letter for letter in spread if not unicodedata.combining(letter))


def test_the_tables_are_as_large_as_promised() -> None:
    for understood in (GERMAN, FRENCH, SPANISH):
        assert len({row[0] for row in understood}) >= 60
    for refused in (GERMAN_REFUSED, FRENCH_REFUSED, SPANISH_REFUSED):
        assert len({row[0] for row in refused}) >= 10


@pytest.mark.parametrize(("words", "at", "rhythm", "note"), UNDERSTOOD)
def test_a_phrase_means_one_moment(words: str, at: str, rhythm: str, note: str) -> None:
    when = parse(words)
    assert moment(when) == (at, rhythm)
    assert isinstance(when, Understood)
    assert note in (when.note or "")
    assert bool(when.note) == bool(note)


@pytest.mark.parametrize(("words", "expected"), REFUSED)
def test_a_phrase_is_asked_about(words: str, expected: UnclearReason) -> None:
    when = parse(words)
    assert isinstance(when, Unclear), when
    assert when.reason is expected
    assert '""' not in when.question


@pytest.mark.parametrize(("sentence", "text", "at", "rhythm"), IN_SENTENCES)
def test_a_time_is_taken_out_of_a_sentence(sentence: str, text: str, at: str, rhythm: str) -> None:
    found = find_when(sentence, now=MONDAY, zone=BERLIN)
    assert found is not None
    assert (found.rest, *moment(found.when)) == (text, at, rhythm)
    assert all(word in sentence for word in found.said.split())


@pytest.mark.parametrize("sentence", ASKED)
def test_a_sentence_with_other_time_words_is_asked_about(sentence: str) -> None:
    found = find_when(sentence, now=MONDAY, zone=BERLIN)
    assert found is not None
    assert isinstance(found.when, Unclear), found


@pytest.mark.parametrize("phrase", ENGLISH)
def test_an_english_phrase_is_left_as_it_is(phrase: str) -> None:
    words = read_words(phrase)
    assert translate(words) is words


@pytest.mark.parametrize(
    "sentence",
    [
        "I am away on 24.12.",
        "call Sam on Mar 5 at 9",
        "die hard at 9pm",
        "son, come in at a quarter to six",
        "on an in a me am die sam mar",
        "remind me to say guten Morgen to Anna at 9pm",
        "watch Demain tomorrow at 9pm",
        "call mon oncle tomorrow",
        "a trip to las Vegas tomorrow at 9",
        "um, at 9 call bob",
        "once a day at 9",
        "toast at noon",
        "mai tai at 6",
        "in 5 min",
        "call Mr Morgen at 5pm",
        "dinner with Domingo at 9pm",
        "5/12",
        "17h30",
        "24.12.",
    ],
)
def test_foreign_looking_words_leave_a_sentence_english(sentence: str) -> None:
    words = read_words(sentence)
    assert translate(words) is words


@pytest.mark.parametrize("row", [row for row in UNDERSTOOD if "à" not in row[0]], ids=str)
def test_accents_may_be_left_out(row: tuple[str, str, str, str]) -> None:
    plain = without_accents(row[0].replace("ß", "ss"))
    assert moment(parse(plain)) == row[1:3]
    assert moment(parse(row[0].upper().replace("SS", "ß" if "ß" in row[0] else "SS"))) == row[1:3]


@pytest.mark.parametrize("row", GERMAN, ids=str)
def test_an_umlaut_may_be_two_letters(row: tuple[str, str, str, str]) -> None:
    spelt_out = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "Ü": "Ue"})
    assert moment(parse(row[0].translate(spelt_out))) == row[1:3]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("halb neun", "2026-11-30 08:30:00"),
        ("um acht", "2026-11-30 08:00:00"),
        ("à 8 heures", "2026-11-30 08:00:00"),
        ("a las 8", "2026-11-30 08:00:00"),
        ("heute Morgen um 9", "2026-11-30 09:00:00"),
        ("ce matin à 9h", "2026-11-30 09:00:00"),
        ("esta mañana a las 9", "2026-11-30 09:00:00"),
    ],
)
def test_an_hour_is_its_next_reading(words: str, expected: str) -> None:
    early = datetime(2026, 11, 30, 7, 0, tzinfo=BERLIN)
    assert moment(parse(words, early)) == (expected, "")


@pytest.mark.parametrize("ten", range(20, 61, 10))
@pytest.mark.parametrize("one", range(10))
def test_minutes_may_be_words(ten: int, one: int) -> None:
    tens = {
        20: ("zwanzig", "vingt", "veinti"),
        30: ("dreißig", "trente", "treinta"),
        40: ("vierzig", "quarante", "cuarenta"),
        50: ("fünfzig", "cinquante", "cincuenta"),
        60: ("sechzig", "soixante", "sesenta"),
    }[ten]
    ones = (
        ["", "ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun"],
        ["", "une", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf"],
        ["", "un", "dos", "tres", "cuatro", "cinco", "seis", "siete", "ocho", "nueve"],
    )
    german = f"{ones[0][one]}und{tens[0]}" if one else tens[0]
    french = f"{tens[1]}{'-et-' if one == 1 else '-'}{ones[1][one]}" if one else tens[1]
    spanish = f"{tens[2]}{ones[2][one]}" if ten == 20 else f"{tens[2]} y {ones[2][one]}"
    spanish = spanish if one else ("veinte" if ten == 20 else tens[2])
    expected = moment(parse(f"in {ten + one} minutes"))
    assert moment(parse(f"in {german} Minuten")) == expected
    assert moment(parse(f"dans {french} minutes")) == expected
    assert moment(parse(f"en {spanish} minutos")) == expected


@pytest.mark.parametrize("sentence", [row[0] for row in UNDERSTOOD + IN_SENTENCES])
def test_each_english_word_has_a_place_in_the_sentence(sentence: str) -> None:
    tokens = translate(read_words(sentence)).tokens
    places = [place for token in tokens for place in (token.start, token.end)]
    assert places == sorted(places)
    assert places[-1] <= len(sentence)
    assert " ".join(token.raw for token in tokens if token.raw) == " ".join(
        token.raw for token in read_words(sentence).tokens
    )


def test_a_mark_that_folds_to_a_space_does_no_harm() -> None:
    found = find_when("morgen um 9 den ´Müll´ a´b und ¨ rausbringen", now=MONDAY, zone=BERLIN)
    assert found is not None
    assert moment(found.when) == ("2026-12-01 09:00:00", "")


_PIECES = sorted(
    {word for row in UNDERSTOOD + IN_SENTENCES for word in row[0].split()}
    | {"9", "24.12.", "5/12", "2h", ",", ".", '"', "´", "Mama", "\n", "½"}
)


@settings(deadline=None)  # the first sentence of a language compiles its rules
@given(st.lists(st.sampled_from(_PIECES), max_size=12))
def test_any_order_of_words_is_understood_or_asked_about(pieces: list[str]) -> None:
    sentence = " ".join(pieces)
    found = find_when(sentence, now=MONDAY, zone=BERLIN)
    when = parse(sentence)
    assert isinstance(when, Understood | Unclear)
    if found is not None:
        assert len(found.rest) <= len(sentence)
