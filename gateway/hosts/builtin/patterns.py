"""Building blocks of the grammar's regular expressions.

Repeats are bounded, so that no text makes a match slow.
"""

import re


def any_of(*alternatives: str) -> str:
    """One of these."""
    return "(?:" + "|".join(alternatives) + ")"


def maybe(*alternatives: str, times: int = 1) -> str:
    """One of these, up to `times` times, or nothing."""
    return any_of(*alternatives) + f"{{0,{times}}}"


def typed(*alternatives: str) -> "re.Pattern[str]":
    """One of these, in large or small letters."""
    return re.compile("|".join(alternatives), re.IGNORECASE)
