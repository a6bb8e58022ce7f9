"""Sets of characters that patterns name (`[:alpha:]`, `p{L}`), and how sets are joined and negated."""

from __future__ import annotations

import sys
import unicodedata
from functools import lru_cache
from itertools import groupby
from typing import Final, TypeAlias

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Code points, as sorted inclusive ranges that do not touch."""

LAST: Final = sys.maxunicode


def merged(ranges: list[tuple[int, int]]) -> Ranges:
    """Sorted ranges; overlapping and adjacent ones are joined."""
    joined: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return tuple(joined)


def negated(ranges: Ranges) -> Ranges:
    """All other characters."""
    gaps = []
    following = 0
    for low, high in ranges:
        if low > following:
            gaps.append((following, low - 1))
        following = high + 1
    if following <= LAST:
        gaps.append((following, LAST))
    return tuple(gaps)


def _spans(*pairs: str) -> Ranges:
    return merged([(ord(pair[0]), ord(pair[-1])) for pair in pairs])


_DIGIT: Final = _spans("09")
_WORD: Final = _spans("09", "AZ", "az", "_")
PERL: Final = {
    "d": _DIGIT,
    "D": negated(_DIGIT),
    "w": _WORD,
    "W": negated(_WORD),
    "s": _spans("\t\n", "\f\r", " "),
    "S": negated(_spans("\t\n", "\f\r", " ")),
}
POSIX: Final = {
    "alnum": _spans("09", "AZ", "az"),
    "alpha": _spans("AZ", "az"),
    "ascii": _spans("\x00\x7f"),
    "blank": _spans("\t", " "),
    "cntrl": _spans("\x00\x1f", "\x7f"),
    "digit": _DIGIT,
    "graph": _spans("!~"),
    "lower": _spans("az"),
    "print": _spans(" ~"),
    "punct": _spans("!/", ":@", "[`", "{~"),
    "space": _spans("\t\r", " "),
    "upper": _spans("AZ"),
    "word": _WORD,
    "xdigit": _spans("09", "AF", "af"),
}
ANY: Final = ((0, LAST),)
NOT_NEWLINE: Final = negated(_spans("\n"))


@lru_cache(maxsize=1)
def categories() -> dict[str, Ranges]:
    """Unicode's general categories; built on first use, which examines every character."""
    found: dict[str, list[tuple[int, int]]] = {}
    for category, points in groupby(range(LAST + 1), lambda point: unicodedata.category(chr(point))):
        run = list(points)
        found.setdefault(category, []).append((run[0], run[-1]))
        found.setdefault(category[0], []).append((run[0], run[-1]))
    return {name: merged(ranges) for name, ranges in found.items()}


def folded(ranges: Ranges) -> Ranges:
    """The same characters in either case; only spans of letters are widened, not half of Unicode."""
    both = list(ranges)
    for low, high in ranges:
        if high - low > 0x400:
            continue
        for point in range(low, high + 1):
            for other in (chr(point).lower(), chr(point).upper()):
                if len(other) == 1:
                    both.append((ord(other), ord(other)))
    return merged(both)
