"""Drop a required term of pod affinity or anti-affinity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final, Literal

from msgspec.structs import replace as replaced

from moorage.api.pod import Affinity, Pod, PodAffinity, PodAffinityTerm, PodSpec
from moorage.explain.help.change import Situation
from moorage.explain.help.problem import Offer, Problem

_PLUGIN: Final = "InterPodAffinity"
_REQUIRED: Final = "required_during_scheduling_ignored_during_execution"
_MAX_TERMS: Final = 6
"""Number of terms up to which combinations of two are offered."""

Side = Literal["pod_affinity", "pod_anti_affinity"]


@dataclass(frozen=True, slots=True)
class DropTerm:
    """Drop one required term, wherever it is repeated."""

    side: Side
    term: PodAffinityTerm

    kind: str = "podTerm"

    def __str__(self) -> str:
        name = "anti-affinity" if self.side == "pod_anti_affinity" else "affinity"
        return f"drop the {name} term over {self.term.topology_key}{_selected(self.term)}"

    def apply(self, situation: Situation) -> Situation:
        """Without the term."""
        return situation.with_spec(self._without)

    def _without(self, spec: PodSpec) -> PodSpec:
        affinity = spec.affinity or Affinity()
        pods: PodAffinity = getattr(affinity, self.side)
        left = tuple(each for each in _terms(pods) if each != self.term)
        return replaced(spec, affinity=replaced(affinity, **{self.side: replaced(pods, **{_REQUIRED: left})}))

    def details(self) -> dict[str, Any]:
        """The term."""
        name = "podAntiAffinity" if self.side == "pod_anti_affinity" else "podAffinity"
        labels = {} if self.term.label_selector is None else dict(self.term.label_selector.match_labels)
        return {"in": name, "topologyKey": self.term.topology_key, "matchLabels": labels}


def offers(problem: Problem) -> Iterator[Offer]:
    """Each term alone, then two, then all of them."""
    if not problem.refused_by(_PLUGIN).any():
        return
    drops = _drops(problem.pod)
    sizes = (1, 2, len(drops)) if len(drops) <= _MAX_TERMS else (1, len(drops))
    for size in sorted({size for size in sizes if 0 < size <= len(drops)}):
        for changes in combinations(drops, size):
            yield problem.offer(changes, size, _PLUGIN)


def _drops(pod: Pod) -> list[DropTerm]:
    affinity = pod.spec.affinity
    if affinity is None:
        return []
    sides: tuple[Side, Side] = ("pod_anti_affinity", "pod_affinity")
    drops: list[DropTerm] = []
    for side in sides:
        for term in () if getattr(affinity, side) is None else _terms(getattr(affinity, side)):
            if DropTerm(side, term) not in drops:
                drops.append(DropTerm(side, term))
    return drops


def _terms(pods: PodAffinity) -> tuple[PodAffinityTerm, ...]:
    return pods.required_during_scheduling_ignored_during_execution


def _selected(term: PodAffinityTerm) -> str:
    selector = term.label_selector
    if selector is None or not (selector.match_labels or selector.match_expressions):
        return ""
    texts = [f"{key}={value}" for key, value in selector.match_labels.items()]
    texts += [
        f"{each.key} {each.operator}" + (f" ({', '.join(each.values)})" if each.values else "")
        for each in selector.match_expressions
    ]
    return f" for pods with {', '.join(texts)}"
