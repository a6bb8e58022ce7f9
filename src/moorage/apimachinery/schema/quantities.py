"""Quantities in canonical form: the text that Kubernetes returns for a given text.

The suffix is as large as it can be without a fraction, and of the family that was used: `1024Mi` is `1Gi`,
`1.5Gi` is `1536Mi`, `0.5` is `500m`. Text that matches the canonical syntax is kept as it is, even where
there is a shorter form (`1.500`): so does Kubernetes, and clients compare texts.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from moorage.api.amounts import Amount, Style
from moorage.api.quantity import parse_quantity
from moorage.api.text_cache import MAX_CACHED_LENGTH

WRONG_FORMAT: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
WRONG_NUMBER: Final = "unable to parse numeric part of quantity"
WRONG_SUFFIX: Final = "unable to parse quantity's suffix"

_PARTS: Final = re.compile(r"[+-]?0*([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_EXPONENT: Final = re.compile(r"[eE][+-]?[0-9]+")
_MAX_SUFFIX_LENGTH: Final = 12
_FINEST_POWER: Final = -9
_SURE_DIGITS: Final = 18
"""Number of decimal digits that always fit into an int64; longer text is never kept as it is."""
_SURE_BINARY_DIGITS: Final = 14


@lru_cache(maxsize=65536)
def canonical_quantity(text: str) -> str:
    """The canonical text of a quantity; ValueError with Kubernetes' message if it is none."""
    is_too_long = len(text) > MAX_CACHED_LENGTH
    text = text.strip()
    match = _PARTS.fullmatch(text)
    if match is None or not text:
        raise ValueError(WRONG_FORMAT)
    whole, fraction, suffix = match[1] or "0", match[2] or "", match[3]
    binary = suffix in _BINARY
    if not binary and suffix not in _DECIMAL and not _EXPONENT.fullmatch(suffix):
        raise ValueError(WRONG_SUFFIX)
    if len(suffix) > _MAX_SUFFIX_LENGTH:
        raise ValueError(WRONG_SUFFIX)
    if is_too_long:
        raise ValueError(WRONG_NUMBER)
    if not text[: match.start(3)].strip("+-."):
        # A sign, a point or a suffix alone is not a number; Kubernetes reads it as zero.
        return "0"
    if binary:
        kept = _keeps_binary(whole, fraction, _BINARY[suffix])
    else:
        kept = _keeps_decimal(whole, fraction, _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:]))
    try:
        amount = int(parse_quantity(text))
    except ValueError:
        raise ValueError(WRONG_NUMBER) from None
    if kept:
        return text
    style = Style.BINARY if binary else Style.DECIMAL if suffix in _DECIMAL else Style.EXPONENT
    return str(Amount(amount, style))


def _keeps_decimal(whole: str, fraction: str, power: int) -> bool:
    scale = power - len(fraction)
    digits = whole + fraction
    return (
        len(digits) <= _SURE_DIGITS
        and scale >= _FINEST_POWER
        and scale % 3 == 0
        and not digits.endswith("000")
        and digits[0] != "0"
    )


def _keeps_binary(whole: str, fraction: str, power: int) -> bool:
    fits = not fraction and len(whole) + power * 3 // 10 <= _SURE_BINARY_DIGITS
    return fits and int(whole) % 8 != 0
