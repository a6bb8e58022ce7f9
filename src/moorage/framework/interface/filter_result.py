"""What a filter answers: a code per node, not an object per node.

Code 0 lets the pod in; any other code is an index into the reasons. Text is made on demand.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.framework.interface.status import AnswerError, Code, Status


class Reason(msgspec.Struct, frozen=True):
    """Why a node was rejected: one text or several; `code` determines whether preemption could help."""

    texts: tuple[str, ...]
    code: Code = Code.UNSCHEDULABLE

    def __post_init__(self) -> None:
        assert self.texts, "a refusal needs a reason"
        assert self.code in (Code.UNSCHEDULABLE, Code.UNRESOLVABLE), self.code


class FilterResult(msgspec.Struct, frozen=True, eq=False):
    """A filter's answer for all nodes it was asked about.

    codes: shape (nodes,); 0 passes, i is rejected for `reasons[i - 1]`. None: all nodes pass.
    """

    codes: NDArray[Any] | None
    reasons: tuple[Reason, ...] = ()


ALL = FilterResult(None)
"""Every node passes."""


class Mask(np.ndarray[Any, np.dtype[np.bool_]]):
    """Yes or no per node; combine with `&`, `|` and `~`, then give the reason for False with `otherwise`."""

    def otherwise(self, reason: str, *, resolvable: bool = True) -> FilterResult:
        """Reject the nodes where this is False; `resolvable`: preemption on such a node could help."""
        return refuse_where(~self, reason, resolvable=resolvable)


def refuse_where(refused: NDArray[np.bool_], reason: str, *, resolvable: bool = True) -> FilterResult:
    """Reject the nodes where `refused` is True, for one reason."""
    if not isinstance(reason, str) or not reason:
        raise TypeError(f"a refusal needs a reason in words, not {reason!r}")
    code = Code.UNSCHEDULABLE if resolvable else Code.UNRESOLVABLE
    return FilterResult(refused.view(np.int8), (Reason((reason,), code),))


def reason_of(answer: Status | str | Any) -> Reason | None:
    """The reason in a filter's answer for one node; None: the node passes. AnswerError if it is an error."""
    if isinstance(answer, Reason):
        return answer
    if answer is None or (isinstance(answer, Status) and answer.code is Code.SUCCESS):
        return None
    if isinstance(answer, str):
        return Reason((answer,))
    if isinstance(answer, Status) and answer.code in (Code.UNSCHEDULABLE, Code.UNRESOLVABLE):
        return Reason(answer.reasons or (answer.code.value,), answer.code)
    if isinstance(answer, Status) and answer.code is Code.ERROR:
        raise AnswerError(answer.text)
    raise AnswerError(
        f"filter_node returned {answer!r}; return None, a reason, unschedulable() or unresolvable()"
    )
