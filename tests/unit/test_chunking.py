"""Cutting formatted text into pieces, and storing it."""

import pytest

from gateway.domain.chunking import (
    CONSOLE,
    MARK_RESERVE,
    TELEGRAM,
    Entity,
    EntityKind,
    Limits,
    RichText,
    sanitize,
    split,
    utf16_len,
)

FAMILY = "👨‍👩‍👧‍👦"
FLAG = "🇩🇪"
THUMB = "👍🏽"


def small(units: int, entities: int = 100) -> Limits:
    return Limits(units=units, entities=entities)


def texts(rich: RichText, limits: Limits) -> list[str]:
    return [piece.text for piece in split(rich, limits)]


def covered(piece: RichText, entity: Entity) -> str:
    units = piece.text.encode("utf-16-le")
    return units[2 * entity.offset : 2 * (entity.offset + entity.length)].decode("utf-16-le")


def entity_over(text: str, part: str, kind: EntityKind, **more: str) -> Entity:
    offset = utf16_len(text[: text.index(part)])
    return Entity(kind=kind, offset=offset, length=utf16_len(part), **more)


# --- length and limits


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("", 0),
        ("abc", 3),
        ("é", 1),
        ("😀", 2),
        (FAMILY, 11),
        ("a" * 4095 + "😀", 4097),
        ("\ud800", 1),
    ],
)
def test_length_is_counted_in_utf16_units(text: str, units: int) -> None:
    assert utf16_len(text) == units


def test_a_telegram_piece_leaves_room_for_a_mark() -> None:
    assert TELEGRAM.units + MARK_RESERVE == 4096
    assert TELEGRAM.entities == 100


@pytest.mark.parametrize(("units", "entities"), [(1, 10), (0, 10), (10, 0)])
def test_limits_too_small_for_any_character_are_refused(units: int, entities: int) -> None:
    with pytest.raises(ValueError, match="2 units and 1 entity"):
        Limits(units=units, entities=entities)


# --- blank and short texts


@pytest.mark.parametrize(
    "text", ["", " ", "\n\n\t ", " " * 50_000, "\n" * 50_000, "\u200b\ufeff", "\0", "\u2028\u00a0"]
)
def test_blank_text_gives_no_piece(text: str) -> None:
    assert split(RichText(text=text), TELEGRAM) == ()


def test_a_text_that_fits_is_one_piece_as_it_stands() -> None:
    rich = RichText(
        text="  hello world\n", entities=(Entity(kind=EntityKind.BOLD, offset=2, length=5),)
    )
    assert split(rich, TELEGRAM) == (rich,)


def test_the_console_gets_a_long_text_in_one_piece() -> None:
    rich = RichText(text="line of text\n" * 20_000)
    assert split(rich, CONSOLE) == (rich,)


def test_nul_is_removed_and_entities_stay_on_their_words() -> None:
    rich = RichText(
        text="\0a\0b bold\0er c", entities=(Entity(kind=EntityKind.BOLD, offset=5, length=7),)
    )
    (piece,) = split(rich, TELEGRAM)
    assert piece.text == "ab bolder c"
    assert covered(piece, piece.entities[0]) == "bolder"


def test_lone_surrogates_become_replacement_characters() -> None:
    assert texts(RichText(text="a\ud83d b\ude00 \ud83d\ude00"), TELEGRAM) == ["a\ufffd b\ufffd 😀"]


def test_sanitize_keeps_clean_text() -> None:
    assert sanitize("naïve 😀\n\tx") == "naïve 😀\n\tx"


# --- where a cut is made


def test_a_cut_prefers_a_blank_line() -> None:
    text = "one two. three\nfour five\n\nsix seven\neight. nine"
    assert texts(RichText(text=text), small(40)) == [
        "one two. three\nfour five",
        "six seven\neight. nine",
    ]


def test_a_cut_prefers_a_newline_to_a_sentence_end() -> None:
    text = "aaaa bbbb cccc\ndddd. eeee ffff"
    assert texts(RichText(text=text), small(25)) == ["aaaa bbbb cccc", "dddd. eeee ffff"]


def test_a_cut_prefers_a_sentence_end_to_a_space() -> None:
    text = "First one here. Second two there again"
    assert texts(RichText(text=text), small(28)) == ["First one here.", "Second two there again"]


def test_a_sentence_end_without_space_after_it_counts_in_chinese() -> None:
    assert texts(RichText(text="你好世界你好。再见世界再见"), small(10)) == [
        "你好世界你好。",
        "再见世界再见",
    ]


def test_a_cut_prefers_a_space_to_the_middle_of_a_word() -> None:
    assert texts(RichText(text="alpha beta gamma"), small(13)) == ["alpha beta", "gamma"]


def test_a_short_heading_does_not_become_a_piece_of_its_own() -> None:
    pieces = texts(RichText(text="Title\n\n" + "word " * 2000), TELEGRAM)
    assert [len(piece) for piece in pieces[:-1]] == [3966, 3964]


def test_a_word_that_fits_in_one_piece_is_moved_whole() -> None:
    long_word = "x" * 95
    assert texts(RichText(text=f"see here {long_word} end"), small(100)) == [
        "see here",
        f"{long_word} end",
    ]


def test_a_word_longer_than_a_piece_fills_the_piece() -> None:
    pieces = texts(RichText(text="see " + "x" * 250), small(100))
    assert pieces == ["see " + "x" * 96, "x" * 100, "x" * 54]


def test_fifty_thousand_characters_without_a_space_fill_their_pieces() -> None:
    pieces = texts(RichText(text="x" * 50_000), TELEGRAM)
    assert "".join(pieces) == "x" * 50_000
    assert [len(piece) for piece in pieces] == [3968] * 12 + [2384]


def test_white_space_at_a_cut_is_dropped_on_both_sides() -> None:
    assert texts(RichText(text="aaaaaaaa  \n\n \n   bbbbbbbb"), small(12)) == [
        "aaaaaaaa",
        "bbbbbbbb",
    ]


def test_windows_line_ends_are_not_cut_apart() -> None:
    assert texts(RichText(text="aaaaaa\r\nbbbbbb\r\ncccccc"), small(9)) == [
        "aaaaaa",
        "bbbbbb",
        "cccccc",
    ]


# --- characters


def test_d14_emoji_is_never_cut_in_half() -> None:
    pieces = texts(RichText(text="a" * 3967 + "😀"), TELEGRAM)
    assert pieces == ["a" * 3967, "😀"]
    assert texts(RichText(text="a" * 4095 + "😀"), small(4096)) == ["a" * 4095, "😀"]


def test_d14_three_thousand_family_emoji_stay_whole() -> None:
    pieces = texts(RichText(text=FAMILY * 3000), TELEGRAM)
    assert "".join(pieces) == FAMILY * 3000
    assert all(piece == FAMILY * (len(piece) // len(FAMILY)) for piece in pieces)
    assert [utf16_len(piece) for piece in pieces[:-1]] == [3960] * (len(pieces) - 1)


@pytest.mark.parametrize(
    "cluster",
    [
        FLAG,
        THUMB,
        "e\u0301",
        "☺\ufe0f",
        "1\ufe0f\u20e3",
        "\u1112\u1161\u11ab",
        "\uac00\u11a8",
        "क्ष",
        "กำ",
        "🏴\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f",
        "\u0600\u0661",
    ],
    ids=ascii,
)
def test_d14_a_cluster_at_the_limit_moves_whole(cluster: str) -> None:
    units = utf16_len(cluster)
    for room in range(1, units):
        text = "a" * 30 + cluster + "b"
        assert texts(RichText(text=text), small(30 + room))[0] == "a" * 30


def test_d14_flags_are_paired_from_the_start_of_their_run() -> None:
    assert texts(RichText(text=FLAG * 5), small(10)) == [FLAG * 2, FLAG * 2, FLAG]


def test_d14_a_cluster_longer_than_a_piece_is_cut_between_code_points() -> None:
    pieces = texts(RichText(text="a" + "\u0301" * 25 + FAMILY), small(10))
    assert "".join(pieces) == "a" + "\u0301" * 25 + FAMILY
    assert max(utf16_len(piece) for piece in pieces) == 10


def test_a_space_that_carries_an_accent_stays_with_it() -> None:
    assert texts(RichText(text="aaaaaa \u0301bbbb"), small(9)) == ["aaaaaa", " \u0301bbbb"]


# --- code blocks


def test_d12_a_code_block_is_closed_and_reopened_with_its_language() -> None:
    code = "\n".join(f"    line_{n:03} = {n}" for n in range(60))
    text = f"Before it.\n{code}\nAfter it."
    rich = RichText(
        text=text, entities=(entity_over(text, code, EntityKind.PRE, language="python"),)
    )
    pieces = split(rich, small(400))
    blocks = [(covered(p, e), e) for p in pieces for e in p.entities]
    assert len(blocks) > 2
    assert all((e.kind, e.language) == (EntityKind.PRE, "python") for _, e in blocks)
    assert "\n".join(block for block, _ in blocks) == code
    assert pieces[0].text.startswith("Before it.\n    line_000")
    assert pieces[-1].text.endswith("\nAfter it.")


def test_d12_nine_thousand_characters_of_prose_code_and_a_link_lose_nothing() -> None:
    prose = ("Some words of prose. " * 150)[:2999] + "\n"
    code = ("    value = compute(value)\n" * 140)[:3500].rstrip()
    link = "the manual"
    text = f"{prose}{code}\n" + "More prose. " * 40 + link + " and so on. " * 200
    rich = RichText(
        text=text,
        entities=(
            entity_over(text, code, EntityKind.PRE, language="python"),
            entity_over(text, link, EntityKind.TEXT_LINK, url="https://example.com/a"),
        ),
    )
    pieces = split(rich, TELEGRAM)
    assert all(utf16_len(piece.text) <= TELEGRAM.units for piece in pieces)
    assert "".join("".join(p.text.split()) for p in pieces) == "".join(text.split())
    shown = [(e.kind, covered(p, e)) for p in pieces for e in p.entities]
    assert [part for kind, part in shown if kind is EntityKind.TEXT_LINK] == [link]
    assert "\n".join(part for kind, part in shown if kind is EntityKind.PRE) == code


def test_d12_a_cut_falls_before_a_code_block_rather_than_in_it() -> None:
    code = "a = 1\n\nb = 2\n\nc = 3"
    text = "Words before the code, enough.\n\n" + code
    rich = RichText(text=text, entities=(entity_over(text, code, EntityKind.PRE),))
    assert texts(rich, small(45)) == ["Words before the code, enough.", code]


def test_d12_the_first_line_of_a_moved_block_keeps_its_indent() -> None:
    code = "    if x:\n        y()"
    text = "Words before the code.\n" + code
    rich = RichText(text=text, entities=(entity_over(text, code, EntityKind.PRE),))
    assert texts(rich, small(32)) == ["Words before the code.", code]


def test_d12_blank_lines_and_spaces_in_a_block_survive_a_cut() -> None:
    code = "def f():\n    pass\n\n\n    # end of it   \n    return"
    rich = RichText(text=code, entities=(entity_over(code, code, EntityKind.PRE),))
    pieces = texts(rich, small(22))
    assert "\n".join(pieces) == code


def test_d12_a_ten_thousand_character_code_line_loses_nothing() -> None:
    line = "value, " * 1429
    code = "first = 1\n" + line + "\nlast = 2"
    rich = RichText(text=code, entities=(entity_over(code, code, EntityKind.PRE),))
    pieces = split(rich, TELEGRAM)
    assert "".join(piece.text for piece in pieces).replace("\n", "") == code.replace("\n", "")
    assert all([e.kind for e in piece.entities] == [EntityKind.PRE] for piece in pieces)
    assert all(piece.text.endswith(" ") for piece in pieces[:-1])


# --- links and other entities


def test_d12_a_link_is_moved_whole_to_the_next_piece() -> None:
    text = "some words and then the linked words here"
    link = "the linked words"
    rich = RichText(
        text=text, entities=(entity_over(text, link, EntityKind.TEXT_LINK, url="https://a.b"),)
    )
    first, second = split(rich, small(28))
    assert (first.text, first.entities) == ("some words and then", ())
    assert second.text == "the linked words here"
    assert covered(second, second.entities[0]) == link


def test_a_link_longer_than_a_piece_goes_on_in_the_next() -> None:
    rich = RichText(
        text="word " * 10,
        entities=(Entity(kind=EntityKind.TEXT_LINK, offset=0, length=49, url="https://a.b"),),
    )
    pieces = split(rich, small(20))
    assert [piece.entities[0].url for piece in pieces] == ["https://a.b"] * 3
    assert [covered(p, p.entities[0]) for p in pieces] == [
        "word word word word",
        "word word word word",
        "word word",
    ]


def test_bold_that_crosses_a_cut_goes_on_in_the_next_piece() -> None:
    rich = RichText(
        text="😀 aaaa bbbb cccc dddd", entities=(Entity(kind=EntityKind.BOLD, offset=3, length=14),)
    )
    first, second = split(rich, small(14))
    assert (covered(first, first.entities[0]), covered(second, second.entities[0])) == (
        "aaaa bbbb",
        "cccc",
    )


def test_no_piece_has_more_entities_than_allowed() -> None:
    text = "b " * 450
    bold = [Entity(kind=EntityKind.BOLD, offset=2 * n, length=1) for n in range(450)]
    pieces = split(RichText(text=text, entities=tuple(bold)), TELEGRAM)
    assert [len(piece.entities) for piece in pieces] == [100, 100, 100, 100, 50]
    assert all(covered(p, e) == "b" for p in pieces for e in p.entities)


def test_entities_nested_too_deeply_lose_the_inner_ones() -> None:
    nested = tuple(Entity(kind=EntityKind.BOLD, offset=n, length=1000 - 2 * n) for n in range(300))
    pieces = split(RichText(text="x" * 1000, entities=nested), TELEGRAM)
    assert [len(piece.text) for piece in pieces] == [1000]
    assert pieces[0].entities == nested[:50]


def test_entities_out_of_range_or_inside_a_character_are_clipped() -> None:
    rich = RichText(
        text="😀ab😀",
        entities=(
            Entity(kind=EntityKind.BOLD, offset=1, length=4),
            Entity(kind=EntityKind.ITALIC, offset=-3, length=5),
            Entity(kind=EntityKind.CODE, offset=3, length=99),
            Entity(kind=EntityKind.SPOILER, offset=40, length=2),
            Entity(kind=EntityKind.UNDERLINE, offset=2, length=0),
            Entity(kind=EntityKind.STRIKETHROUGH, offset=1, length=1),
        ),
    )
    (piece,) = split(rich, TELEGRAM)
    assert [(e.kind, covered(piece, e)) for e in piece.entities] == [
        (EntityKind.ITALIC, "😀"),
        (EntityKind.BOLD, "ab"),
        (EntityKind.CODE, "b😀"),
    ]


# --- marks and storage


def test_a_mark_in_front_moves_the_entities_and_is_not_formatted() -> None:
    rich = RichText(text="bold", entities=(Entity(kind=EntityKind.BOLD, offset=0, length=4),))
    marked = rich.prefixed("⚠️😀 ")
    assert marked.text == "⚠️😀 bold"
    assert covered(marked, marked.entities[0]) == "bold"
    assert marked.plain() == RichText(text="⚠️😀 bold")


def test_a_literal_text_has_no_entities_and_no_damage() -> None:
    assert RichText.literal("**a**\0 \ud800") == RichText(text="**a** \ufffd")


@pytest.mark.parametrize(
    "rich",
    [
        RichText(text=""),
        RichText(text='"quoted" \\ 😀 \u2028\n'),
        RichText(text="half \ud800"),
        RichText(
            text="a link and code",
            entities=(
                Entity(kind=EntityKind.TEXT_LINK, offset=2, length=4, url="https://a.b/ü"),
                Entity(kind=EntityKind.PRE, offset=11, length=4, language="c++"),
            ),
        ),
    ],
)
def test_a_stored_text_reads_back_equal(rich: RichText) -> None:
    line = rich.to_json()
    assert RichText.from_json(line) == rich
    assert RichText.from_json(line).to_json() == line
    assert line.encode()
    assert "\n" not in line


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "null",
        "[]",
        "[" * 100_000,
        '{"text":"a"}',
        '{"text":1,"entities":[]}',
        '{"text":"a","entities":{}}',
        '{"text":"a","entities":[],"more":1}',
        '{"text":"a","entities":["bold"]}',
        '{"text":"a","entities":[["loud",0,1,null,null]]}',
        '{"text":"a","entities":[["bold",0,1]]}',
        '{"text":"a","entities":[["bold",-1,1,null,null]]}',
        '{"text":"a","entities":[["bold",0,0,null,null]]}',
        '{"text":"a","entities":[["bold",0,2,null,null]]}',
        '{"text":"a","entities":[["bold",false,true,null,null]]}',
        '{"text":"a","entities":[["bold",0,1.0,null,null]]}',
        '{"text":"a","entities":[["text_link",0,1,7,null]]}',
    ],
)
def test_a_damaged_stored_text_is_refused(line: str) -> None:
    with pytest.raises(ValueError):
        RichText.from_json(line)
