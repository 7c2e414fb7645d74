"""What a model's words become before a chat may see them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.hosts.base import Failed, FailureKind, Finished
from gateway.hosts.reply import Origin, classify_error, finish, strip_reasoning

PLAN = "secret plan"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Here it is.", "Here it is."),
        (f"<think>{PLAN}</think>Here it is.", "Here it is."),
        (f"<thinking>{PLAN}</thinking>\n\nHere it is.", "Here it is."),
        (f"<reasoning>{PLAN}</reasoning>Here it is.", "Here it is."),
        (f"<THINK>{PLAN}</Think>Here it is.", "Here it is."),
        (f'<think lang="en">{PLAN}</think >Here it is.', "Here it is."),
        (f"<think>a<think>{PLAN}</think>b</think>Here it is.", "Here it is."),
        (f"<think>a<reasoning>{PLAN}</reasoning>b</think>Here it is.", "Here it is."),
        (f"<think>{PLAN}</think>Here <think>{PLAN}</think>it is.", "Here it is."),
        (f"Here it is.<think>{PLAN}", "Here it is."),
        (f"<think>{PLAN}", ""),
        (f"{PLAN}</think>Here it is.", "Here it is."),
        ("<think/>Here it is.", "Here it is."),
        ("<think></think>Here it is.", "Here it is."),
        (
            "I think 1 < 2 and <b>that</b> is <thinner>.",
            "I think 1 < 2 and <b>that</b> is <thinner>.",
        ),
    ],
)
def test_d25_reasoning_is_stripped_in_every_shape(text: str, kept: str) -> None:
    assert strip_reasoning(text) == kept


PIECES = st.sampled_from(["<think>", "</think>", "<Reasoning>", "</thinking>", "a", "b < c", "\n"])


@given(st.lists(PIECES))
def test_d25_no_tag_survives_and_a_second_pass_changes_nothing(pieces: list[str]) -> None:
    once = strip_reasoning("".join(pieces))

    assert "think" not in once.lower()
    assert "reasoning" not in once.lower()
    assert strip_reasoning(once) == once


@given(st.text(alphabet="abc <>/\n"))
def test_text_without_tags_is_kept(text: str) -> None:
    assert strip_reasoning(text) == text.strip()


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("401 scripted 401", FailureKind.AUTH),
        ('401: {"message":"scripted 401","type":"x"}', FailureKind.AUTH),
        ("403 Forbidden", FailureKind.AUTH),
        ("Incorrect API key provided: sk-***", FailureKind.AUTH),
        ("No API key found for anthropic. Use /login", FailureKind.AUTH),
        ("402 Payment Required", FailureKind.AUTH),
        ("429 You exceeded your current quota: insufficient_quota", FailureKind.AUTH),
        ("Your credit balance is too low", FailureKind.AUTH),
        ("prompt is too long: 210000 tokens > 200000 maximum", FailureKind.CONTEXT),
        ("This model's maximum context length is 8192 tokens", FailureKind.CONTEXT),
        ("the request exceeds the available context size (4096 tokens)", FailureKind.CONTEXT),
        ("context_length_exceeded", FailureKind.CONTEXT),
        ("Your input exceeds the context window of this model", FailureKind.CONTEXT),
        ("Please reduce the length of the messages", FailureKind.CONTEXT),
        ("429 Rate limit reached: too many tokens per minute", FailureKind.ERROR),
        ("529 overloaded_error req_011", FailureKind.ERROR),
        ("500 Internal Server Error", FailureKind.ERROR),
        ("terminated: other side closed (UND_ERR_SOCKET)", FailureKind.ERROR),
        ("connect ECONNREFUSED 127.0.0.1:4010", FailureKind.ERROR),
        ("", FailureKind.ERROR),
    ],
)
def test_m09_m11_errors_are_told_apart_by_who_can_mend_them(
    message: str, kind: FailureKind
) -> None:
    assert classify_error(message) is kind


def test_a_reply_carries_its_origin() -> None:
    origin = Origin(provider="p", model="m", input_tokens=3, output_tokens=4)

    assert finish(" hi ", origin) == Finished(
        text="hi", provider="p", model="m", input_tokens=3, output_tokens=4
    )


@pytest.mark.parametrize("text", ["", " \n", "<think>x</think>", "\u200b\u200e", "\0"])
def test_nothing_visible_is_empty(text: str) -> None:
    outcome = finish(text, Origin(model="m"))

    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.EMPTY
    assert outcome.model == "m"


@given(st.text())
def test_every_reply_can_be_stored_and_sent(text: str) -> None:
    outcome = finish(text + "\ud800\0x", Origin())

    if isinstance(outcome, Finished):
        assert outcome.text.encode("utf-8").strip()
        assert "\0" not in outcome.text
