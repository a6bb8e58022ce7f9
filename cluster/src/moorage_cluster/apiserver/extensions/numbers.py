"""Numbers in schemas: 64-bit integers and floating point, written as Go writes them."""

from __future__ import annotations

import math
from typing import Final

MIN_INT64: Final = -(2**63)
MAX_INT64: Final = 2**63 - 1
_MIN_INT32: Final = -(2**31)
_MAX_INT32: Final = 2**31 - 1
_FLOAT32_LIMIT: Final = 2.0**128 - 2.0**103
"""The least number that rounds to infinity in 32 bits."""
_MAX_EXACT: Final = 2.0**53 - 1
_CLOSE: Final = 1e-9


def is_whole(number: float) -> bool:
    """Whether a floating point number is an integer, up to rounding errors."""
    if not math.isfinite(number) or abs(number) > _MAX_EXACT:
        return False
    whole = math.trunc(number)
    return number == whole or (whole != 0 and abs(number - whole) / (abs(number) + abs(whole)) < _CLOSE)


def fits(number: float, type_name: str, number_format: str) -> bool:
    """Whether a number can be of a type and format without loss."""
    if type_name == "integer":
        if isinstance(number, float) and not number.is_integer():
            return False
        least, most = (_MIN_INT32, _MAX_INT32) if number_format == "int32" else (MIN_INT64, MAX_INT64)
        return least <= number <= most
    return number_format != "float" or abs(number) < _FLOAT32_LIMIT
