"""Whether a cluster has the resources that a group needs as a minimum, summed over all nodes.

The message prints quantities as Go prints the struct that they are: `{{5000 -3} {<nil>}  DecimalSI}` is 5000
times 10 to the power of -3. Quantities that a Go program keeps in another form (binary fractions, more than
18 digits) are printed in this form as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from moorage.api.quantity import NANO, parse_quantity
from moorage.api.resource_requests import CPU, PODS
from moorage.framework.interface.nodes import Nodes

_DECIMAL_SI: Final = "DecimalSI"
_DECIMAL_EXPONENT: Final = "DecimalExponent"
_BINARY_SI: Final = "BinarySI"
_TEXT: Final = re.compile(r"([+-]?)0*(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+)|([numkMGTPE]?)(i?))")
_EXPONENTS: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


@dataclass(frozen=True, slots=True)
class Amount:
    """A quantity: value times 10 to the power of scale. text: as written, until it is used."""

    value: int
    scale: int
    format: str = _DECIMAL_SI
    text: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """A quantity as it is written; ValueError if it is none."""
        exact, match = parse_quantity(text), _TEXT.fullmatch(text)
        assert match is not None, text
        sign, whole, fraction, exponent, suffix, binary = match.groups(default="")
        if binary:
            return cls(exact // NANO, 0, _BINARY_SI, text)
        scale = (int(exponent) if exponent else _EXPONENTS[suffix]) - len(fraction)
        value = int(sign + (whole + fraction or "0"))
        return cls(value, scale, _DECIMAL_EXPONENT if exponent else _DECIMAL_SI, text)

    def minus(self, units: int, scale: int) -> Self:
        """The rest after `units`, of that scale, are taken from it."""
        if not units:
            return replace(self, text="")
        common = min(self.scale, scale)
        value = self.value * 10 ** (self.scale - common) - units * 10 ** (scale - common)
        return replace(self, value=value, scale=common, text="")

    def __str__(self) -> str:
        return f"{{{{{self.value} {self.scale}}} {{<nil>}} {self.text} {self.format}}}"


def resource_gap(
    needed: Mapping[str, str | int], pod_count: int, nodes: Nodes, members: Sequence[int] = ()
) -> str:
    """What is missing in the cluster; empty if nothing is.

    needed: the minimum of each resource. pod_count: the minimum number of pods. nodes: all nodes. members:
    the rows of the group's pods that are on nodes; what they use counts as free.
    """
    amounts = {name: Amount.parse(str(text)) for name, text in needed.items()}
    amounts[PODS] = Amount(pod_count, 0)
    missing = {
        name: rest
        for name, amount in amounts.items()
        if (rest := _missing(amount, -3 if name == CPU else 0, _free(name, nodes, members))) is not None
    }
    if not missing:
        return ""
    return f"resource gap: map[{' '.join(f'{name}:{rest}' for name, rest in sorted(missing.items()))}]"


def _missing(amount: Amount, scale: int, free: NDArray[np.int64]) -> Amount | None:
    """What is left of an amount after all nodes have given what they have free; None if nothing is."""
    if not len(free):
        return amount
    given = np.cumsum(free)
    # The largest sum counts: nodes with more requests than resources have less than nothing free.
    is_covered = amount.minus(int(given.max()), scale).value <= 0
    return None if is_covered else amount.minus(int(given[-1]), scale)


def _free(resource: str, nodes: Nodes, members: Sequence[int]) -> NDArray[np.int64]:
    """What is free of a resource on each node, without the members of the group."""
    pods, own = nodes.snapshot.pods, np.array(members, np.intp)
    if resource == PODS:
        free = nodes.allowed_pods - nodes.pod_count
        np.add.at(free, pods.node_rows[own], 1)
    else:
        free = nodes.allocatable(resource) - nodes.requested(resource)
        np.add.at(free, pods.node_rows[own], pods.load(resource)[own])
    return free
