"""The facts of a prompt on their way to our own child."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.hosts.base import ContextMessage, PromptContext, RecentSight
from gateway.hosts.context import decode_context, encode_context

MILLISECONDS = st.integers(min_value=0, max_value=4_102_444_800_000)
TIMES = MILLISECONDS.map(lambda ms: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms))
MESSAGES = st.builds(
    ContextMessage,
    text=st.text(),
    sender=st.text(),
    sent_at=TIMES,
    quoted=st.none() | st.text(),
)
SIGHTS = st.builds(
    RecentSight, text=st.text(), job_ids=st.lists(st.integers(min_value=1), max_size=3).map(tuple)
)
CONTEXTS = st.builds(
    PromptContext,
    messages=st.lists(MESSAGES, max_size=3).map(tuple),
    trigger=st.sampled_from(["message", "job", "heartbeat"]),
    timezone=st.just("Europe/Berlin"),
    now=TIMES,
    job=st.none() | st.text(),
    recent=st.lists(SIGHTS, max_size=3).map(tuple),
)
PLAIN = PromptContext(
    messages=(), trigger="job", timezone="UTC", now=datetime(2026, 3, 1, tzinfo=UTC), job="tea"
)


@given(CONTEXTS)
def test_facts_survive_the_way(context: PromptContext) -> None:
    assert decode_context(json.loads(json.dumps(encode_context(context)))) == context


def test_a_time_of_any_zone_arrives_as_the_same_instant_in_utc() -> None:
    local = datetime(2026, 3, 1, 13, tzinfo=timezone(timedelta(hours=1)))

    told = decode_context(encode_context(replace(PLAIN, now=local)))

    assert told.now == local
    assert told.now.utcoffset() == timedelta(0)


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="zone"):
        encode_context(replace(PLAIN, now=datetime(2026, 3, 1)))  # noqa: DTZ001


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("messages", None),
        ("messages", ["x"]),
        ("messages", [{"text": "x"}]),
        ("trigger", 3),
        ("timezone", None),
        ("now", "noon"),
        ("now", True),
        ("now", 10**30),
        ("job", 4),
        ("recent", "x"),
        ("recent", [4]),
        ("recent", ["x"]),
        ("recent", [{"text": "x"}]),
        ("recent", [{"text": 3, "job_ids": []}]),
        ("recent", [{"text": "x", "job_ids": 3}]),
        ("recent", [{"text": "x", "job_ids": ["3"]}]),
        ("recent", [{"text": "x", "job_ids": [True]}]),
    ],
)
def test_a_wrong_field_is_named(field: str, value: object) -> None:
    fields = encode_context(PLAIN) | {field: value}

    with pytest.raises(ValueError, match=r"is not"):
        decode_context(fields)


@pytest.mark.parametrize("data", [None, [], "x", 3])
def test_what_is_no_object_is_refused(data: object) -> None:
    with pytest.raises(ValueError, match="context is not an object"):
        decode_context(data)
