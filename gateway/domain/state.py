"""What all state machines share: a table of moves and one check."""

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

from gateway.errors import IllegalTransitionError

S = TypeVar("S", bound=StrEnum)


def check_move(table: Mapping[S, frozenset[S]], before: S, after: S) -> None:
    """Return if `table` draws the move, else raise IllegalTransitionError."""
    if after not in table[before]:
        raise IllegalTransitionError(f"{type(before).__name__}: {before} -> {after} is not drawn")
