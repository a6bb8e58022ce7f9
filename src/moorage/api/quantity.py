"""Exact resource quantities, as Kubernetes writes them: `100m`, `1.5Gi`, `1e3`, `12E`.

A `Quantity` is an integer number of billionths: Kubernetes keeps nothing finer than `n`, so sums and
comparisons are plain integer arithmetic and never lose a digit. Rounding happens once, at the end, away
from zero: a small request never becomes zero.
"""

from __future__ import annotations

import re
from functools import lru_cache

from moorage.api.text_cache import MAX_CACHED_LENGTH

NANO = 1_000_000_000
_MICRO_PER_MILLI = 1_000_000  # billionths in a thousandth

_DECIMAL_EXPONENTS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_EXPONENTS = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_BINARY_MAX = ((1 << 63) - 1) * NANO  # Kubernetes caps binary quantities here, decimal ones nowhere
_MAX_EXPONENT = 1000  # beyond this a quantity is a mistake, not an amount

_PATTERN = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?(?:([eE])([+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)", re.ASCII)


class Quantity(int):
    """An exact amount of a resource, counted in billionths of its unit."""

    __slots__ = ()

    @property
    def value(self) -> int:
        """Whole units, rounded away from zero: bytes, devices, pods, cores."""
        return round_up(self, NANO)

    @property
    def milli_value(self) -> int:
        """Thousandths, rounded away from zero: how CPU is counted."""
        return round_up(self, _MICRO_PER_MILLI)

    def __repr__(self) -> str:
        return f"Quantity({format_quantity(self)!r})"


def round_up(billionths: int, unit: int) -> int:
    """`billionths / unit` as an integer, rounded away from zero."""
    if billionths >= 0:
        return -(-billionths // unit)
    return billionths // unit


@lru_cache(maxsize=65536)
def parse_quantity(text: str) -> Quantity:
    """The amount in `text`; ValueError with the reason if it is invalid."""
    match = _PATTERN.fullmatch(text) if len(text) <= MAX_CACHED_LENGTH else None
    if match is None or not (match[2] or match[3]):
        raise ValueError(f"{text[:MAX_CACHED_LENGTH]!r} is not a quantity (like 100m, 1.5Gi or 2e3)")
    sign, whole, fraction, _, exponent, suffix = match.groups(default="")
    digits = int(whole + fraction or "0")
    if suffix in _BINARY_EXPONENTS:
        numerator, denominator = digits << _BINARY_EXPONENTS[suffix], 10 ** len(fraction)
    else:
        power = int(exponent) if exponent else _DECIMAL_EXPONENTS[suffix]
        if abs(power) > _MAX_EXPONENT:
            raise ValueError(f"{text!r} is not a quantity: its exponent is out of range")
        power -= len(fraction)
        numerator, denominator = digits * 10 ** max(power, 0), 10 ** max(-power, 0)
    amount = round_up(numerator * NANO, denominator)
    if suffix in _BINARY_EXPONENTS:
        amount = min(amount, _BINARY_MAX)
    return Quantity(-amount if sign == "-" else amount)


def format_quantity(billionths: int) -> str:
    """The shortest exact text for an amount: binary suffixes for whole binary multiples, else decimal."""
    if billionths % NANO == 0:
        units = billionths // NANO
        for suffix, power in reversed(_BINARY_EXPONENTS.items()):
            if units and units % (1 << power) == 0:
                return f"{units >> power}{suffix}"
        return str(units)
    for suffix in ("m", "u"):
        step = 10 ** (9 + _DECIMAL_EXPONENTS[suffix])
        if billionths % step == 0:
            return f"{billionths // step}{suffix}"
    return f"{int(billionths)}n"
