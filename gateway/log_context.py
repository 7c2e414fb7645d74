"""The ids that are in force where something is logged; whoever works on a row puts its ids here."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

_ids: ContextVar[Mapping[str, object]] = ContextVar("log_ids", default=MappingProxyType({}))


@contextmanager
def bind(
    *,
    chat: object = None,
    turn: object = None,
    run: object = None,
    delivery: object = None,
) -> Iterator[None]:
    """Put these ids on every record that is logged within, also by tasks started there."""
    given = {"chat": chat, "turn": turn, "run": run, "delivery": delivery}
    known = {name: value for name, value in given.items() if value is not None}
    token = _ids.set({**_ids.get(), **known})
    try:
        yield
    finally:
        _ids.reset(token)


def bound_ids() -> Mapping[str, object]:
    """The ids in force here."""
    return _ids.get()
