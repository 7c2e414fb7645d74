"""Where a text may be cut without breaking a character that a person sees as one.

The rules are those of Unicode's UAX #29 (extended grapheme clusters), with the properties that
the standard library lacks written as ranges. Where those ranges are coarse they join too much
rather than too little: a cut may come a character early, never in the middle of a cluster.
"""

import unicodedata

_ZWJ = "\u200d"
_ZWNJ = "\u200c"
# Below the first combining mark only CR LF belongs together.
_FIRST_COMBINING = "\u0300"
_EXTENDING_CATEGORIES = frozenset({"Mn", "Me", "Mc"})
_CONTROL_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# Thai and Lao AM, and the halfwidth Katakana sound marks: letters by category, marks by use.
_EXTENDING_LETTERS = frozenset("\u0e33\u0eb3\uff9e\uff9f")
# Prepended marks: they belong to what follows.
_PREPENDED = frozenset(
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\u0d4e"
    "\U000110bd\U000110cd\U000111c2\U000111c3"
)
# Signs that join the consonant before them to the one after (Devanagari to Malayalam).
_VIRAMAS = frozenset("\u094d\u09cd\u0acd\u0b4d\u0c4d\u0d4d")
_PICTOGRAPHS_BELOW_EMOJI = frozenset("\u00a9\u00ae\u203c\u2049\u2122\u3030\u303d\u3297\u3299")


def is_boundary(text: str, at: int, *, floor: int = 0) -> bool:
    """Whether a cut before `text[at]` leaves every cluster whole.

    Nothing before `floor`, itself taken for a boundary, is looked at.
    """
    if at <= floor or at >= len(text):
        return True
    before, after = text[at - 1], text[at]
    if before < _FIRST_COMBINING and after < _FIRST_COMBINING:
        return (before, after) != ("\r", "\n")
    if _is_control(before) or _is_control(after):
        return True
    if _extends(after) or before in _PREPENDED:
        return False
    return not (
        _is_joined_emoji(text, at, floor)
        or _is_inside_flag(text, at, floor)
        or _is_hangul_syllable(before, after)
        or _is_conjunct(text, at, floor)
    )


def _is_control(char: str) -> bool:
    if char in (_ZWJ, _ZWNJ) or "\U000e0020" <= char <= "\U000e007f" or char in _PREPENDED:
        return False
    return unicodedata.category(char) in _CONTROL_CATEGORIES


def _extends(char: str) -> bool:
    return (
        char in (_ZWJ, _ZWNJ)
        or "\U0001f3fb" <= char <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= char <= "\U000e007f"  # tags, as in the flag of Wales
        or char in _EXTENDING_LETTERS
        or unicodedata.category(char) in _EXTENDING_CATEGORIES
    )


def _is_pictograph(char: str) -> bool:
    return (
        "\U0001f000" <= char <= "\U0001faff"
        or "\u2190" <= char <= "\u2bff"
        or char in _PICTOGRAPHS_BELOW_EMOJI
    )


def _is_joined_emoji(text: str, at: int, floor: int) -> bool:
    """Emoji, marks, joiner | emoji: one family, one profession."""
    if text[at - 1] != _ZWJ or not _is_pictograph(text[at]):
        return False
    base = at - 2
    while base > floor and _extends(text[base]):
        base -= 1
    return base >= floor and _is_pictograph(text[base])


def _is_inside_flag(text: str, at: int, floor: int) -> bool:
    """Regional indicators pair up from the start of their run."""
    if not (_is_regional(text[at - 1]) and _is_regional(text[at])):
        return False
    first = at - 1
    while first > floor and _is_regional(text[first - 1]):
        first -= 1
    return (at - first) % 2 == 1


def _is_regional(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _is_hangul_syllable(before: str, after: str) -> bool:
    if _is_leading_jamo(before):
        return _is_leading_jamo(after) or _is_vowel_jamo(after) or "\uac00" <= after <= "\ud7a3"
    if _is_vowel_jamo(after):
        return _is_vowel_jamo(before) or _is_open_syllable(before)
    if _is_trailing_jamo(after):
        return _is_vowel_jamo(before) or _is_trailing_jamo(before) or "\uac00" <= before <= "\ud7a3"
    return False


def _is_leading_jamo(char: str) -> bool:
    return "\u1100" <= char <= "\u115f" or "\ua960" <= char <= "\ua97c"


def _is_vowel_jamo(char: str) -> bool:
    return "\u1160" <= char <= "\u11a7" or "\ud7b0" <= char <= "\ud7c6"


def _is_trailing_jamo(char: str) -> bool:
    return "\u11a8" <= char <= "\u11ff" or "\ud7cb" <= char <= "\ud7fb"


def _is_open_syllable(char: str) -> bool:
    """A precomposed syllable without a final consonant: every 28th."""
    return "\uac00" <= char <= "\ud7a3" and (ord(char) - 0xAC00) % 28 == 0


def _is_conjunct(text: str, at: int, floor: int) -> bool:
    """Virama, marks and joiners | consonant."""
    if not _is_indic_letter(text[at]):
        return False
    sign = at - 1
    while sign > floor and _extends(text[sign]) and text[sign] not in _VIRAMAS:
        sign -= 1
    return text[sign] in _VIRAMAS


def _is_indic_letter(char: str) -> bool:
    return "\u0900" <= char <= "\u0d7f" and unicodedata.category(char) == "Lo"
