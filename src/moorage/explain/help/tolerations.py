"""Tolerate a taint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from msgspec.structs import replace as replaced

from moorage.api.node import Taint
from moorage.api.pod import Toleration
from moorage.api.taints import NO_EXECUTE, NO_SCHEDULE, UNSCHEDULABLE_TAINT, tolerated
from moorage.explain.help.change import Situation
from moorage.explain.help.problem import Offer, Problem

_TAINTS: Final = "TaintToleration"
_CORDONS: Final = "NodeUnschedulable"
_MAX_OFFERS: Final = 12


@dataclass(frozen=True, slots=True)
class Tolerate:
    """Tolerate one taint."""

    taint: Taint

    kind: str = "toleration"

    def __str__(self) -> str:
        value = f"={self.taint.value}" if self.taint.value else ""
        return f"tolerate {self.taint.key}{value}:{self.taint.effect}"

    def apply(self, situation: Situation) -> Situation:
        """With one toleration more."""
        taint = self.taint
        new = Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
        return situation.with_spec(lambda spec: replaced(spec, tolerations=(*spec.tolerations, new)))

    def details(self) -> dict[str, Any]:
        """The taint."""
        return {"key": self.taint.key, "value": self.taint.value, "effect": self.taint.effect}


def offers(problem: Problem) -> Iterator[Offer]:
    """One offer for each set of taints that nodes have; those of the most nodes first."""
    is_refused = problem.refused_by(_TAINTS, _CORDONS)
    if not is_refused.any():
        return
    taints = problem.nodes.taints
    cordoned = np.asarray(problem.nodes.unschedulable)
    rows = np.flatnonzero(is_refused)
    sets = Counter(zip(taints.codes[rows].tolist(), cordoned[rows].tolist(), strict=True))
    wanted = {
        _untolerated(problem, taints.vocabulary.values[code], is_cordoned): None
        for (code, is_cordoned), _ in sets.most_common(_MAX_OFFERS)
    }
    for missing in wanted:
        if missing:
            changes = tuple(Tolerate(taint) for taint in missing)
            yield problem.offer(changes, len(changes), _TAINTS, _CORDONS)


def _untolerated(problem: Problem, taints: tuple[Taint, ...], is_cordoned: bool) -> tuple[Taint, ...]:
    """The taints of a node that a pod does not tolerate, each once."""
    repelling = [taint for taint in taints if taint.effect in (NO_SCHEDULE, NO_EXECUTE)]
    if is_cordoned:
        repelling.append(UNSCHEDULABLE_TAINT)
    known = {(taint.key, taint.value, taint.effect): taint for taint in repelling}
    return tuple(taint for taint in known.values() if not tolerated(taint, problem.pod.spec.tolerations))
