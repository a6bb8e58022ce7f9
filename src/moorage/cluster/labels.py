"""Label columns: one code column per label key that anybody selects by."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moorage.api.selectors import Operator, Requirement, parse_integer
from moorage.cluster.columns import ABSENT, Vocabulary


def matching(
    requirement: Requirement, codes: NDArray[np.int32], vocabulary: Vocabulary[str]
) -> NDArray[np.bool_]:
    """Which codes of a label's column meet a requirement. Shape of `codes`."""
    match requirement.operator:
        case Operator.IN:
            return _isin(requirement.values, codes, vocabulary)
        case Operator.NOT_IN:
            return ~_isin(requirement.values, codes, vocabulary)
        case Operator.EXISTS:
            return np.not_equal(codes, ABSENT)
        case Operator.DOES_NOT_EXIST:
            return np.equal(codes, ABSENT)
        case Operator.GT | Operator.LT:
            table: NDArray[np.bool_] = vocabulary.judge(requirement.accepts)
            return table[codes]


def _isin(values: frozenset[str], codes: NDArray[np.int32], vocabulary: Vocabulary[str]) -> NDArray[np.bool_]:
    wanted = [code for value in values if (code := vocabulary.code(value)) != ABSENT]
    if not wanted:
        return np.zeros(codes.shape, bool)
    if len(wanted) == 1:
        return np.equal(codes, wanted[0])
    table = np.zeros(len(vocabulary) + 1, bool)
    table[wanted] = True
    return table[codes]


def integers(codes: NDArray[np.int32], vocabulary: Vocabulary[str], default: int) -> NDArray[np.int64]:
    """Label values as integers; `default` where the label is absent or no integer. Shape of `codes`."""

    def number(value: str) -> int:
        parsed = parse_integer(value)
        return default if parsed is None else parsed

    table: NDArray[np.int64] = vocabulary.judge(number, np.int64, absent=default)
    return table[codes]
