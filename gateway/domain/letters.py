"""Words as people type them, made comparable."""

import unicodedata


def plain_letters(text: str) -> str:
    """The text in lower case, without accents, on one line: `Zürich ` is `zurich`."""
    parts = unicodedata.normalize("NFKD", text.casefold())
    return " ".join("".join(c for c in parts if not unicodedata.combining(c)).split())
