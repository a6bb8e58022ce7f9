"""Affinity terms in both directions: which pods those of an incoming pod match, and which terms match it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from moorage.api.affinity import AffinityTerm, PodTerms
from moorage.api.node import Namespace
from moorage.api.pod import Pod
from moorage.api.selectors import Selector
from moorage.cluster.object_tables import Objects
from moorage.cluster.pod_class import Label, PodClass
from moorage.cluster.vocabularies import TermsVocabulary
from moorage.plugins.topology_counts.pod_matcher import PodMatcher

NO_LABELS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Incoming:
    """What the terms of existing pods are matched with: the incoming pod's namespace and labels."""

    namespace: str
    labels: frozenset[tuple[str, str]]
    namespace_labels: frozenset[tuple[str, str]]

    def matches(self) -> Callable[[AffinityTerm], bool]:
        """Whether a term of an existing pod matches this pod."""
        labels, namespace_labels = dict(self.labels), dict(self.namespace_labels)
        return lambda term: (
            term.selector.matches(labels) and term.covers_namespace(self.namespace, namespace_labels)
        )

    @property
    def pod_class(self) -> PodClass:
        """The pod's class as if it were on a node."""
        return PodClass(self.namespace, self.labels, terminating=False)


@dataclass(frozen=True, slots=True)
class ExistingAntiAffinity:
    """Existing pods whose required anti-affinity matches a pod; a CountQuery by topology key."""

    of: Incoming

    @property
    def labels(self) -> frozenset[Label]:
        """The pod's labels."""
        return self.of.labels

    def __call__(self, terms: PodTerms) -> Iterable[tuple[str, int]]:
        """The topology keys of the anti-affinity terms that match the pod, each once, and 1."""
        is_matched = self.of.matches()
        keys: dict[str, int] = {}
        for term in terms.required_anti:
            if term.topology_key not in keys and is_matched(term):
                keys[term.topology_key] = 1
        return keys.items()

    def candidates(self, terms: TermsVocabulary) -> set[int]:
        """The codes of the terms that may match the pod."""
        return terms.may_match(self.of.labels)


@dataclass(frozen=True, slots=True)
class ExistingTermWeights:
    """The weights of existing pods' terms that match a pod; a CountQuery by topology key."""

    of: Incoming
    required_weight: int
    """The weight of a required affinity term (hardPodAffinityWeight)."""

    @property
    def labels(self) -> frozenset[Label]:
        """The pod's labels."""
        return self.of.labels

    def __call__(self, terms: PodTerms) -> Iterable[tuple[str, int]]:
        """The terms that match the pod: topology key and weight."""
        weighted = [(each.term, each.weight) for each in terms.preferred]
        if self.required_weight:
            weighted += [(term, self.required_weight) for term in terms.required]
        is_matched = self.of.matches()
        return [(term.topology_key, weight) for term, weight in weighted if is_matched(term)]

    def candidates(self, terms: TermsVocabulary) -> set[int]:
        """The codes of the terms that may match the pod."""
        return terms.may_match(self.of.labels)


@dataclass(frozen=True, slots=True)
class IncomingTerm:
    """A term of the incoming pod, about pods in the same domain of a topology key."""

    key: str
    matcher: PodMatcher
    weight: int = 1


@dataclass(frozen=True, slots=True)
class IncomingTerms:
    """The terms of an incoming pod, with the namespaces that their selectors match now.

    affinity: a pod counts if all required terms match it, so all of these have the same matcher.
    anti_affinity: required. preferred: both, weighted.
    """

    incoming: Incoming
    affinity: tuple[IncomingTerm, ...]
    anti_affinity: tuple[IncomingTerm, ...]
    preferred: tuple[IncomingTerm, ...]

    @property
    def matches_itself(self) -> bool:
        """Whether the pod matches its own required affinity terms."""
        return bool(self.affinity) and self.affinity[0].matcher.matches(self.incoming.pod_class)


def resolve_terms(pod: Pod, terms: PodTerms, objects: Objects, *, by_name: bool) -> IncomingTerms:
    """Resolve the terms of an incoming pod to matchers.

    by_name: whether namespace selectors stand for the namespaces that they match, and for no others.
    """
    scope = _scope_by_name if by_name else _scope
    incoming = _incoming(pod, objects)
    if not terms:
        return IncomingTerms(incoming, (), (), ())
    together = PodMatcher(tuple([scope(term, objects) for term in terms.required]), terminating=True)
    return IncomingTerms(
        incoming,
        tuple([IncomingTerm(term.topology_key, together) for term in terms.required]),
        tuple(
            [IncomingTerm(term.topology_key, _matcher(scope(term, objects))) for term in terms.required_anti]
        ),
        tuple(
            [
                IncomingTerm(each.term.topology_key, _matcher(scope(each.term, objects)), each.weight)
                for each in terms.preferred
            ]
        ),
    )


def _incoming(pod: Pod, objects: Objects) -> Incoming:
    namespace = objects.of(Namespace).get("", pod.namespace)
    labels = NO_LABELS if namespace is None else namespace.labels
    return Incoming(pod.namespace, frozenset(pod.labels.items()), frozenset(labels.items()))


_Scope = tuple[Selector, frozenset[str] | None]
"""The selector of a term, and its namespaces; None: all."""


def _matcher(scope: _Scope) -> PodMatcher:
    return PodMatcher((scope,), terminating=True)


def _scope(term: AffinityTerm, objects: Objects) -> _Scope:
    """A namespace selector that matches an unlabelled namespace matches every namespace.

    kube-scheduler v1.36 resolves selectors to names, and compares them with no labels at all besides.
    """
    if term.namespace_selector.matches(NO_LABELS):
        return term.selector, None
    return _scope_by_name(term, objects)


def _scope_by_name(term: AffinityTerm, objects: Objects) -> _Scope:
    """A namespace selector stands for the namespaces that it matches; an empty one for all."""
    wanted = term.namespace_selector
    if wanted.empty:
        return term.selector, None
    chosen = (each.name for each in objects.of(Namespace) if wanted.matches(each.labels))
    return term.selector, term.namespaces.union(chosen)
