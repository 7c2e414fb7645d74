"""A model's Markdown, as a person sees it."""

import logging
import subprocess
import sys

import pytest
import telegramify_markdown
from telegramify_markdown import MessageEntity

from gateway.channels.markup import from_markdown
from gateway.domain.chunking import TELEGRAM, EntityKind, RichText, split, utf16_len

FAMILY = "👨‍👩‍👧‍👦"


def shown(rich: RichText) -> list[tuple[str, ...]]:
    """Each entity as kind, the text under it, and its link or language."""
    units = rich.text.encode("utf-16-le")
    parts = []
    for entity in rich.entities:
        under = units[2 * entity.offset : 2 * (entity.offset + entity.length)]
        more = entity.url or entity.language
        parts.append((entity.kind.value, under.decode("utf-16-le"), *([more] if more else [])))
    return parts


# --- D11: readable text, whatever the marks


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("Think in <CoT> first", "Think in <CoT> first"),
        ("a List<int> and a Map<String, List<int>>", "a List<int> and a Map<String, List<int>>"),
        ("a < b && c > d", "a < b && c > d"),
        ("a<b and c>d", "a<b and c>d"),
        ("Dear <your-name>,", "Dear <your-name>,"),
        ("one<br>two<br/>", "one<br>two<br/>"),
        ("see <!-- a comment --> here", "see <!-- a comment --> here"),
        ("<div>\nin a block\n</div>\n\nafter", "<div>\nin a block\n</div>\n\nafter"),
        ("<tg-spoiler>no</tg-spoiler>", "<tg-spoiler>no</tg-spoiler>"),
        ("a <key:value> and vector<std::string>", "a <key:value> and vector<std::string>"),
        ("**bold unclosed", "**bold unclosed"),
        ("`code unclosed", "`code unclosed"),
        ("snake_case_name", "snake_case_name"),
        ("1. x_y", "1. x_y"),
        ("3) x\n4) y", "3. x\n4. y"),
        ("a \\ backslash and \\", "a \\ backslash and \\"),
        ("C:\\Users\\me", "C:\\Users\\me"),
        ("&lt;b&gt; &amp; &copy;", "<b> & ©"),
        ("2*3*4 = 24", "2*3*4 = 24"),
        ("*args, **kwargs", "*args, **kwargs"),
        ("if (a || b || c) or x||y||z", "if (a || b || c) or x||y||z"),
        (r"a \||b|| c", "a ||b|| c"),
        ("about ~5 and ~6", "about ~5 and ~6"),
        ("$5 to $10, US$5/US$7", "$5 to $10, US$5/US$7"),
        ("echo $HOME/$USER", "echo $HOME/$USER"),
        ("[09:00]: standup", "[09:00]: standup"),
        ("[10:30]: call\n\nAt [10:30] sharp", "[10:30]: call\n\nAt [10:30] sharp"),
        ("a nonchar \ufdd0 here", "a nonchar \ufffd here"),
        ("nul \0 and half \ud83d", "nul  and half \ufffd"),
        ("first\nsecond  \nthird", "first\nsecond\nthird"),
    ],
)
def test_d11_text_is_shown_as_written_without_formatting(markdown: str, text: str) -> None:
    assert from_markdown(markdown) == RichText(text=text)


@pytest.mark.parametrize(
    ("markdown", "text", "parts"),
    [
        ("**b** *i* ~~s~~ `c`", "b i s c",
         [("bold", "b"), ("italic", "i"), ("strikethrough", "s"), ("code", "c")]),
        ("***both***", "both", [("bold", "both"), ("italic", "both")]),
        ("a ||secret|| word", "a secret word", [("spoiler", "secret")]),
        ("`<CoT> &lt; a || b`", "<CoT> &lt; a || b", [("code", "<CoT> &lt; a || b")]),
        ("**a <b> c**", "a <b> c", [("bold", "a <b> c")]),
        ("😀 **😀b** 😀", "😀 😀b 😀", [("bold", "😀b")]),
        ("> one\n> two", "one\ntwo", [("blockquote", "one\ntwo")]),
        ("> a\n>> b", "a\nb", [("blockquote", "a\nb")]),
        ("# One `x`", "One x", [("bold", "One x"), ("underline", "One x"), ("code", "x")]),
        ("## **Two**", "Two", [("bold", "Two"), ("underline", "Two")]),
        ("### Three", "Three", [("bold", "Three")]),
        (r"\(\alpha + \beta\)", "α + β", [("code", "α + β")]),
    ],
)  # fmt: skip
def test_d11_marks_become_entities(markdown: str, text: str, parts: list[tuple[str, ...]]) -> None:
    rich = from_markdown(markdown)
    assert rich.text == text
    assert sorted(shown(rich)) == sorted(parts)


def test_lists_tasks_rules_and_headings_use_plain_symbols() -> None:
    rich = from_markdown("# Plan\n\n- one\n  - two\n- [x] done\n- [ ] open\n\n---\n\nend")
    assert rich.text == "Plan\n\n• one\n  • two\n[x] done\n[ ] open\n\n———\n\nend"


def test_a_long_quote_is_shown_whole() -> None:
    rich = from_markdown("> " + "word " * 100)
    assert [entity.kind for entity in rich.entities] == [EntityKind.BLOCKQUOTE]


# --- links


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://a.b/c?d=e#f", "https://a.b/c?d=e#f"),
        ("http://a.b:8080", "http://a.b:8080"),
        ("HTTPS://A.B", "HTTPS://A.B"),
        ("https://en.wikipedia.org/wiki/A_(b)", "https://en.wikipedia.org/wiki/A_(b)"),
        ("https://bücher.example/ü", "https://bücher.example/ü"),
        ("http://127.0.0.1/x", "http://127.0.0.1/x"),
        ("tg://user?id=1", "tg://user?id=1"),
        ("tg:resolve?domain=x", "tg:resolve?domain=x"),
        ("mailto:a@b.example", "mailto:a@b.example"),
    ],
)
def test_a_good_link_is_kept(url: str, target: str) -> None:
    rich = from_markdown(f"see [here]({url}) now")
    assert rich.text == "see here now"
    assert shown(rich) == [("text_link", "here", target)]


@pytest.mark.parametrize(
    "url",
    [
        "docs/guide.md",
        "/etc/passwd",
        "#part",
        "www.a.b",
        "localhost",
        "http://localhost:3000/x",
        "https://a..b",
        "https://.a",
        "https://a.b:99999",
        "https://a.b:0",
        "https://[::1]/",
        "https://",
        "javascript:alert(1)",
        "file:///a.b",
        "ftp://a.b",
        "mailto:a@localhost",
        "snake_case_*x*",
    ],
)
def test_a_link_that_telegram_would_refuse_becomes_text_with_its_target(url: str) -> None:
    rich = from_markdown(f"see [**the** docs]({url}) now")
    assert rich.text == f"see the docs ({url}) now"
    assert shown(rich) == [("bold", "the")]


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("[foo.py](foo.py)", "foo.py"),
        ("[text]()", "text"),
        ("[]()", "[]()"),
        ("[](docs)", "docs"),
        ("![](img_1.png)", "img_1.png"),
        ("![cat](img_1.png)", "cat (img_1.png)"),
        ("[![alt](bad1)](bad2)", "alt (bad1) (bad2)"),
        ("[a](<has space>)", "a (has space)"),
        ("mail <a@b.example>", "mail a@b.example"),
        ("[x][nowhere]", "[x][nowhere]"),
        ("unused\n\n[u]: https://c.example", "unused\n\n[u]: https://c.example"),
    ],
)
def test_an_odd_link_leaves_visible_text_once(markdown: str, text: str) -> None:
    assert from_markdown(markdown) == RichText(text=text)


@pytest.mark.parametrize(
    ("markdown", "text", "parts"),
    [
        ("<https://a.b>", "https://a.b", [("text_link", "https://a.b", "https://a.b")]),
        ("![cat](https://a.b/c.png)", "cat", [("text_link", "cat", "https://a.b/c.png")]),
        ("![](https://a.b/c.png)", "https://a.b/c.png", []),
        ("[](https://a.b/_x_)", "https://a.b/_x_", []),
        ("[t][r]\n\n[r]: https://a.b 'T'", "t", [("text_link", "t", "https://a.b")]),
        ("[![](https://i.j)](https://k.l)", "https://i.j",
         [("text_link", "https://i.j", "https://k.l")]),
        ("![😀](tg://emoji?id=5368324170671202286)", "😀", []),
    ],
)  # fmt: skip
def test_images_references_and_bare_links(
    markdown: str, text: str, parts: list[tuple[str, ...]]
) -> None:
    rich = from_markdown(markdown)
    assert (rich.text, shown(rich)) == (text, parts)


# --- code and tables


@pytest.mark.parametrize(
    ("markdown", "text", "parts"),
    [
        ("```python\nx = 1\n```", "x = 1", [("pre", "x = 1", "python")]),
        ("```{.sh .x}\nls\n```", "ls", [("pre", "ls", "sh")]),
        ("```\n  a <b> **c**\n```", "  a <b> **c**", [("pre", "  a <b> **c**")]),
        ("```c++\nunclosed\n    x", "unclosed\n    x", [("pre", "unclosed\n    x", "c++")]),
        ("so:\n```js", "so:\n```js", []),
        ("so:\n```", "so:", []),
        ("```", "```", []),
        ("```\n```", "```\n```", []),
        ("```all of this is kept", "```all of this is kept", []),
        ("- item\n  ```\n  code\n  ```", "• item\ncode", [("pre", "code")]),
        ("1. run:\n   ```sh\n   ls\n   ```\n2. look", "1. run:\nls\n2. look",
         [("pre", "ls", "sh")]),
        ("```\nsed 's/\\(\\to\\)/x/'\n```", "sed 's/\\(\\to\\)/x/'",
         [("pre", "sed 's/\\(\\to\\)/x/'")]),
        ("`\\(\\beta\\)`", "\\(\\beta\\)", [("code", "\\(\\beta\\)")]),
    ],
)  # fmt: skip
def test_d12_code_is_shown_as_written(
    markdown: str, text: str, parts: list[tuple[str, ...]]
) -> None:
    rich = from_markdown(markdown)
    assert (rich.text, shown(rich)) == (text, parts)


def test_a_table_is_aligned_and_keeps_its_links_and_formulas() -> None:
    rich = from_markdown("| a | b |\n|---|---|\n| [x](https://a.b) | $y$ <z> |")
    table = "a               | b      \n----------------+--------\nx (https://a.b) | $y$ <z>"
    assert rich.text == table
    assert shown(rich) == [("pre", table)]


def test_a_table_with_an_empty_cell_is_not_a_spoiler() -> None:
    rich = from_markdown("| a || b |\n|--|--|--|\n| 1 || 2 |")
    assert rich == RichText(text="| a || b |\n|--|--|--|\n| 1 || 2 |")


# --- hostile and odd sizes


@pytest.mark.parametrize("text", ["", " ", "\n\n \t"])
def test_blank_markdown_gives_no_piece(text: str) -> None:
    assert split(from_markdown(text), TELEGRAM) == ()


@pytest.mark.parametrize(
    "text",
    ["x" * 50_000, "`" * 50_000, "```\n" * 5_000, FAMILY * 3_000, "~" * 9_000 + "a", "[" * 20_000],
    ids=["no space", "backticks", "fences", "families", "tildes", "brackets"],
)
def test_d14_long_odd_texts_arrive_whole(text: str) -> None:
    pieces = split(from_markdown(text), TELEGRAM)
    joined = "".join(piece.text for piece in pieces)
    assert joined.replace("\n", "") == text.replace("\n", "")
    assert all(utf16_len(piece.text) <= TELEGRAM.units for piece in pieces)


def test_d12_a_ten_thousand_character_code_line_stays_code() -> None:
    pieces = split(from_markdown("```text\n" + "x" * 10_000 + "\n```"), TELEGRAM)
    assert "".join(piece.text for piece in pieces) == "x" * 10_000
    assert [shown(piece) for piece in pieces] == [[("pre", piece.text, "text")] for piece in pieces]


@pytest.mark.parametrize(
    "text",
    ["\\(" * 20_000, "\\[ a" * 12_000, "<a " * 10_000, "||a " * 9000, "![" * 4000 + "](u)" * 4000],
    ids=["inline formulas", "formulas", "tags", "bars", "images"],
)  # fmt: skip
def test_repeated_openers_are_read_to_their_end(text: str) -> None:
    assert split(from_markdown(text), TELEGRAM)


def test_a_text_that_formatting_would_blow_up_stays_as_written() -> None:
    table = "|" + "a|" * 99 + "\n|" + "-|" * 99 + "\n" + "b\n" * 99
    assert from_markdown(table) == RichText(text=table)


@pytest.mark.parametrize("text", ["- " * 2000 + "a", ">" * 20_000 + "a", "1. " * 100 + "a"])
def test_marks_nested_absurdly_deep_stay_as_written(text: str) -> None:
    assert from_markdown(text) == RichText(text=text)


# --- a converter that errs


def converter_returning(*entities: MessageEntity) -> object:
    """Finds `entities` in "ab😀 cd", which follows what the caller put in front."""

    def convert(markdown: str, **_options: object) -> tuple[str, list[MessageEntity]]:
        lead = markdown.removesuffix("any")
        moved = [entity.copy_with(offset=entity.offset + len(lead)) for entity in entities]
        return lead + "ab😀 cd", moved

    return convert


def test_entities_that_telegram_would_refuse_are_mended_or_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = converter_returning(
        MessageEntity("bold", 0, 4),
        MessageEntity("italic", 1, 6),
        MessageEntity("underline", 2, 1),
        MessageEntity("spoiler", 5, 99),
        MessageEntity("strikethrough", 2, 0),
        MessageEntity("strikethrough", -4, 3),
        MessageEntity("strikethrough", 50, 3),
        MessageEntity("code", 5, 2),
        MessageEntity("bold", 5, 1),
        MessageEntity("text_link", 0, 2, url="nowhere"),
        MessageEntity("sparkle", 0, 2),
    )
    monkeypatch.setattr(telegramify_markdown, "convert", found)
    assert shown(from_markdown("any")) == [
        ("bold", "ab😀"),
        ("italic", "b😀"),
        ("spoiler", "cd"),
        ("code", "cd"),
    ]


class PanicException(BaseException):
    """Stands for the one that a panic in Rust arrives as, which is no Exception."""


@pytest.mark.parametrize("error", [ValueError("x"), RecursionError(), PanicException()])
def test_a_failing_converter_leaves_the_text_as_written(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_args: object, **_options: object) -> None:
        raise error

    monkeypatch.setattr(telegramify_markdown, "convert", fail)
    with caplog.at_level(logging.WARNING):
        assert from_markdown("**secret**") == RichText(text="**secret**")
    assert [record.message for record in caplog.records] == ["markdown_not_converted"]
    assert "secret" not in caplog.text


def test_an_interrupt_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_args: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(telegramify_markdown, "convert", interrupt)
    with pytest.raises(KeyboardInterrupt):
        from_markdown("any")


def test_the_converter_is_not_imported_before_it_is_needed() -> None:
    code = (
        "import sys, gateway.channels.markup;"
        "sys.exit(bool({'pyromark', 'telegramify_markdown'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
