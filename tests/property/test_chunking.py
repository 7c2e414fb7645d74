"""What holds of every split, whatever the text and its entities."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.chunking import (
    Entity,
    EntityKind,
    Limits,
    RichText,
    sanitize,
    split,
    utf16_len,
)

FRAGMENTS = st.one_of(
    st.sampled_from(["a", "word", " ", "  ", "\n", "\n\n", "\r\n", "\t", ". ", "。", "x" * 30]),
    st.sampled_from(["é", "e\u0301", "\u0301", "😀", "👍🏽", "🇩🇪", "👨‍👩‍👧‍👦", "한", "क्ष"]),
    st.sampled_from(["\0", "\ud83d", "\ude00", "\u200b"]),
)
TEXTS = st.one_of(
    st.lists(FRAGMENTS, max_size=60).map("".join),
    st.text(st.characters(codec=None), max_size=80),
)
LIMITS = st.builds(Limits, units=st.integers(min_value=2, max_value=40), entities=st.integers(1, 6))
CLUSTERS = st.sampled_from(
    ["a", "e\u0301", "😀", "👍🏽", "🇩🇪", "👨‍👩‍👧‍👦", "한", "1\ufe0f\u20e3", "❤️‍🔥", "ö", "好"]
)
CODE_LINES = st.builds(
    lambda indent, words: " " * indent + " ".join(words),
    st.integers(min_value=0, max_value=8),
    st.lists(st.sampled_from(["x", "=", "value", "😀", "(a, b)", "y" * 70]), min_size=1),
)
INVISIBLE = frozenset("\u180e\u200b\u200c\u200d\u200e\u200f\u2060\u2800\ufeff")


@st.composite
def rich_texts(draw: st.DrawFn) -> RichText:
    text = draw(TEXTS)
    reach = utf16_len(text) + 2
    entities = st.builds(
        Entity,
        kind=st.sampled_from(EntityKind),
        offset=st.integers(-2, reach),
        length=st.integers(-1, reach),
        url=st.sampled_from([None, "https://a.b"]),
        language=st.sampled_from([None, "python"]),
    )
    return RichText(text=text, entities=tuple(draw(st.lists(entities, max_size=12))))


@given(rich_texts(), LIMITS)
def test_no_piece_is_blank_or_past_its_limits(rich: RichText, limits: Limits) -> None:
    for piece in split(rich, limits):
        assert piece.text.strip()
        assert utf16_len(piece.text) <= limits.units
        assert len(piece.entities) <= limits.entities


@given(rich_texts(), LIMITS)
def test_entities_lie_within_their_piece_and_between_its_characters(
    rich: RichText, limits: Limits
) -> None:
    for piece in split(rich, limits):
        units = piece.text.encode("utf-16-le")
        assert sorted((e.offset, -e.length) for e in piece.entities) == [
            (e.offset, -e.length) for e in piece.entities
        ]
        for entity in piece.entities:
            part = units[2 * entity.offset : 2 * (entity.offset + entity.length)]
            assert entity.offset >= 0
            assert len(part) == 2 * entity.length > 0
            part.decode("utf-16-le")  # raises on half a surrogate pair


@given(rich_texts(), LIMITS)
def test_only_white_space_at_cuts_is_lost(rich: RichText, limits: Limits) -> None:
    text = sanitize(rich.text)
    at = 0
    for piece in split(rich, limits):
        found = text.index(piece.text, at)
        assert all(char.isspace() or char in INVISIBLE for char in text[at:found])
        at = found + len(piece.text)
    assert all(char.isspace() or char in INVISIBLE for char in text[at:])


@given(rich_texts(), LIMITS)
def test_a_piece_is_split_into_itself(rich: RichText, limits: Limits) -> None:
    for piece in split(rich, limits):
        assert split(piece, limits) == (piece,)


@given(st.lists(CLUSTERS, max_size=60), st.integers(min_value=11, max_value=40))
def test_a_cluster_that_fits_is_never_cut(clusters: list[str], units: int) -> None:
    text = "".join(clusters)
    ends = {0}
    for cluster in clusters:
        ends.add(max(ends) + len(cluster))
    at = 0
    for piece in split(RichText(text=text), Limits(units=units, entities=1)):
        at += len(piece.text)
        assert at in ends
    assert at == len(text)


@given(st.lists(CODE_LINES, min_size=1, max_size=20), st.integers(min_value=12, max_value=60))
def test_a_code_block_loses_at_most_the_newline_of_each_cut(lines: list[str], units: int) -> None:
    code = "\n".join(lines)
    block = Entity(kind=EntityKind.PRE, offset=0, length=utf16_len(code), language="python")
    at = 0
    for piece in split(RichText(text=code, entities=(block,)), Limits(units=units, entities=1)):
        found = code.index(piece.text, at)
        assert code[at:found] in ("", "\n")
        assert [(e.kind, e.length, e.language) for e in piece.entities] == [
            (EntityKind.PRE, utf16_len(piece.text), "python")
        ]
        at = found + len(piece.text)
    assert at == len(code)


@given(rich_texts())
def test_a_stored_piece_reads_back_equal(rich: RichText) -> None:
    for piece in split(rich, Limits(units=40, entities=6)):
        assert RichText.from_json(piece.to_json()) == piece
