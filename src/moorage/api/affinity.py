"""Pod affinity terms, made ready to match."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from moorage.api.limits import has_too_many_terms
from moorage.api.pod import Pod, PodAffinity, PodAffinityTerm
from moorage.api.selectors import Selector, SelectorError, label_selector


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """The pods a term matches, and the topology key."""

    topology_key: str
    selector: Selector
    namespaces: frozenset[str]
    namespace_selector: Selector

    def covers_namespace(self, namespace: str, namespace_labels: Mapping[str, str]) -> bool:
        """Whether pods of a namespace can match."""
        return namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)

    def matches(self, pod: Pod, namespace_labels: Mapping[str, str]) -> bool:
        """Whether a pod of a namespace with these labels matches."""
        return self.covers_namespace(pod.namespace, namespace_labels) and self.selector.matches(pod.labels)


@dataclass(frozen=True, slots=True)
class WeightedTerm:
    """A term and its weight; negative for anti-affinity."""

    weight: int
    term: AffinityTerm


@dataclass(frozen=True, slots=True)
class PodTerms:
    """All affinity and anti-affinity terms of a pod."""

    required: tuple[AffinityTerm, ...] = ()
    required_anti: tuple[AffinityTerm, ...] = ()
    preferred: tuple[WeightedTerm, ...] = ()

    def __len__(self) -> int:
        """The number of terms."""
        return len(self.required) + len(self.required_anti) + len(self.preferred)

    def __iter__(self) -> Iterator[AffinityTerm]:
        """All terms, without weights."""
        return chain(self.required, self.required_anti, (each.term for each in self.preferred))


NO_TERMS = PodTerms()


def pod_terms(pod: Pod) -> PodTerms:
    """A pod's affinity and anti-affinity terms; SelectorError if one is invalid."""
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return NO_TERMS
    near, away = affinity.pod_affinity or PodAffinity(), affinity.pod_anti_affinity or PodAffinity()
    return PodTerms(
        _required(near, pod.namespace),
        _required(away, pod.namespace),
        _preferred(near, pod.namespace, 1) + _preferred(away, pod.namespace, -1),
    )


def placed_pod_terms(pod: Pod) -> PodTerms:
    """The terms of a pod on a node that count for other pods.

    None, if one is invalid, or if there are more than any pod may have: one user's pods must not make other
    pods' attempts expensive.
    """
    try:
        return NO_TERMS if has_too_many_terms(pod) else pod_terms(pod)
    except SelectorError:
        return NO_TERMS


def _required(affinity: PodAffinity, namespace: str) -> tuple[AffinityTerm, ...]:
    return tuple(
        _term(term, namespace) for term in affinity.required_during_scheduling_ignored_during_execution
    )


def _preferred(affinity: PodAffinity, namespace: str, sign: int) -> tuple[WeightedTerm, ...]:
    return tuple(
        WeightedTerm(sign * weighted.weight, _term(weighted.pod_affinity_term, namespace))
        for weighted in affinity.preferred_during_scheduling_ignored_during_execution
    )


def _term(term: PodAffinityTerm, namespace: str) -> AffinityTerm:
    own_namespace_only = not term.namespaces and term.namespace_selector is None
    return AffinityTerm(
        term.topology_key,
        label_selector(term.label_selector),
        frozenset((namespace,) if own_namespace_only else term.namespaces),
        label_selector(term.namespace_selector),
    )
