"""Why nodes have no room for a pod: a mask for each reason, and a code for each combination of reasons."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from moorage.framework.interface.filter_result import ALL, FilterResult, Reason
from moorage.framework.interface.status import Code

_MASKS_AT_ONCE: Final = 7
"""Number of masks that are combined in one step: as bits of a byte."""
_BYTE_BITS: Final = 8


class Shortages:
    """The reasons against each node; a node can have several."""

    def __init__(self) -> None:
        self._masks: list[NDArray[np.bool_]] = []
        self._texts: list[str] = []
        self._too_small: NDArray[np.bool_] | None = None

    def add(self, short: NDArray[np.bool_], text: str, too_small: NDArray[np.bool_] | None = None) -> None:
        """One more reason, for the nodes where `short` is True; nodes that are too small are unresolvable."""
        self._masks.append(short)
        self._texts.append(text)
        if too_small is not None:
            self._too_small = too_small if self._too_small is None else self._too_small | too_small

    def result(self) -> FilterResult:
        """The filter result; only combinations of reasons that occur get a code."""
        if not self._masks:
            return ALL
        if self._too_small is None or not self._too_small.any():
            codes, combinations = combined(self._masks)
        else:
            codes, combinations = combined([*self._masks, self._too_small])
        return FilterResult(codes, tuple(self._reason(each) for each in combinations[1:]))

    def _reason(self, combination: tuple[int, ...]) -> Reason:
        count = len(self._texts)
        texts = tuple(self._texts[index] for index in combination if index < count)
        return Reason(texts, Code.UNRESOLVABLE if combination[-1] == count else Code.UNSCHEDULABLE)


def combined(masks: list[NDArray[np.bool_]]) -> tuple[NDArray[Any], list[tuple[int, ...]]]:
    """A code for each node, and for each code the indices of the masks that are True; code 0 has none."""
    if len(masks) == 1:
        return masks[0].view(np.int8), [(), (0,)]
    codes, combinations = _numbered(masks[:_MASKS_AT_ONCE], 0)
    for first in range(_MASKS_AT_ONCE, len(masks), _MASKS_AT_ONCE):
        others, found = _numbered(masks[first : first + _MASKS_AT_ONCE], first)
        pairs = codes * np.intp(len(found)) + others
        occurring, codes = np.unique(np.append(pairs, 0), return_inverse=True)
        codes = codes[:-1]
        combinations = [
            combinations[pair // len(found)] + found[pair % len(found)] for pair in occurring.tolist()
        ]
    return codes, combinations


def _numbered(masks: list[NDArray[np.bool_]], first: int) -> tuple[NDArray[Any], list[tuple[int, ...]]]:
    """As `combined`, for masks that fit into a byte, the first of which has index `first`.

    Bytes are searched and translated at several times the speed of integers that count or index.
    """
    size, packed = len(masks), _packed(masks).tobytes()
    occurring = [bits for bits in range(1 << size) if not bits or bits in packed]
    table = bytearray(1 << _BYTE_BITS)
    for code, bits in enumerate(occurring):
        table[bits] = code
    combinations = [
        tuple([first + i for i in range(size) if bits >> (size - 1 - i) & 1]) for bits in occurring
    ]
    return np.frombuffer(packed.translate(table), np.uint8), combinations


def _packed(masks: list[NDArray[np.bool_]]) -> NDArray[np.uint8]:
    """Masks as the bits of a number, the last one in its lowest bit."""
    bits = masks[0].view(np.uint8)
    for mask in masks[1:]:
        bits = bits + bits
        bits += mask.view(np.uint8)
    return bits
