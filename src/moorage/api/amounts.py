"""Amounts of resources that are added up and then shown: a sum is written the way its first part was.

`api.quantity` is exact but does not keep the format (`1Gi`, `1073741824` or `1e3`); messages and a quota's
status need it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from moorage.api.quantity import NANO, parse_quantity


class Style(Enum):
    """How a quantity is written."""

    DECIMAL = auto()
    """`100m`, `5k`."""
    BINARY = auto()
    """`2Gi`."""
    EXPONENT = auto()
    """`5e3`."""


class Amount(NamedTuple):
    """An amount of a resource, in billionths."""

    billionths: int
    style: Style = Style.DECIMAL

    def plus(self, other: Amount) -> Amount:
        """The sum."""
        return Amount(self.billionths + other.billionths, self.style if self.billionths else other.style)

    def minus(self, other: Amount) -> Amount:
        """The difference, at least zero."""
        return Amount(max(self.billionths - other.billionths, 0), self.style)

    def __str__(self) -> str:
        amount = self.billionths
        if not amount:
            return "0"
        if self.style is Style.BINARY and amount % NANO == 0 and abs(amount) >= 1024 * NANO:
            return _binary(amount // NANO)
        return _decimal(amount, exponent_form=self.style is Style.EXPONENT)


Amounts: TypeAlias = dict[str, Amount]
"""Amounts by the resource's name."""

ZERO: Final = Amount(0)
ONE: Final = Amount(NANO)

_BINARY_SUFFIXES: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL_SUFFIXES: Final = dict(
    zip(range(-9, 19, 3), ("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), strict=True)
)
"""Suffixes by power of ten. Like Kubernetes, no others are written."""


def _binary(units: int) -> str:
    power = 0
    while units % 1024 == 0 and power < len(_BINARY_SUFFIXES) - 1:
        units //= 1024
        power += 1
    return f"{units}{_BINARY_SUFFIXES[power]}"


def _decimal(billionths: int, *, exponent_form: bool) -> str:
    power = -9
    while billionths % 1000 == 0:
        billionths //= 1000
        power += 3
    if exponent_form:
        return f"{billionths}e{power}" if power else str(billionths)
    return f"{billionths}{_DECIMAL_SUFFIXES.get(power, '')}"


@lru_cache(maxsize=65536)
def amount_of(text: str) -> Amount:
    """The amount and the format of a quantity in canonical form."""
    if text.endswith("i"):
        style = Style.BINARY
    elif text[-1:].isdigit() and "e" in text.lower():
        style = Style.EXPONENT
    else:
        style = Style.DECIMAL
    return Amount(int(parse_quantity(text)), style)


def amounts_of(resources: Mapping[str, str]) -> Amounts:
    """The amounts of an object's resource list."""
    return {name: amount_of(text) for name, text in resources.items()}


def whole(count: int) -> Amount:
    """An integer count as an amount."""
    return Amount(count * NANO)


def add_to(total: Amounts, more: Mapping[str, Amount]) -> None:
    """Add amounts to others, in place."""
    for name, amount in more.items():
        before = total.get(name)
        total[name] = amount if before is None else before.plus(amount)


def raise_to(total: Amounts, floor: Mapping[str, Amount]) -> None:
    """Make each amount at least as large as another, in place."""
    for name, amount in floor.items():
        before = total.get(name)
        if before is None or before.billionths < amount.billionths:
            total[name] = amount
