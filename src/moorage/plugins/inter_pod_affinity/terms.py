"""Affinity terms in both directions: which pods an incoming pod means, and which terms mean it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from moorage.api.affinity import AffinityTerm, PodTerms
from moorage.api.node import Namespace
from moorage.api.pod import Pod
from moorage.api.selectors import Selector
from moorage.cluster.objects import Objects
from moorage.cluster.pod_class import Label, PodClass
from moorage.cluster.vocabularies import TermsVocabulary
from moorage.plugins.topology_counts.pod_matcher import PodsMeant

NO_LABELS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Incoming:
    """What terms can tell of an incoming pod."""

    namespace: str
    labels: frozenset[tuple[str, str]]
    namespace_labels: frozenset[tuple[str, str]]

    def means(self) -> Callable[[AffinityTerm], bool]:
        """Says of a term of a pod on a node whether it means this pod."""
        labels, namespace_labels = dict(self.labels), dict(self.namespace_labels)
        return lambda term: (
            term.selector.matches(labels) and term.covers_namespace(self.namespace, namespace_labels)
        )

    @property
    def pod_class(self) -> PodClass:
        """The pod's class, were it on a node."""
        return PodClass(self.namespace, self.labels, terminating=False)


@dataclass(frozen=True, slots=True)
class Refusals:
    """Which pods on nodes keep a pod away. As a question to `Tallies` it counts them by topology key."""

    of: Incoming

    @property
    def labels(self) -> frozenset[Label]:
        """The pod's labels."""
        return self.of.labels

    def __call__(self, terms: PodTerms) -> Iterable[tuple[str, int]]:
        """The anti-affinity terms that mean the pod: topology key, and 1."""
        is_meant = self.of.means()
        return [(term.topology_key, 1) for term in terms.required_anti if is_meant(term)]

    def candidates(self, terms: TermsVocabulary) -> set[int]:
        """The codes of the terms that may mean the pod."""
        return terms.that_may_mean(self.of.labels)


@dataclass(frozen=True, slots=True)
class Claims:
    """What pods on nodes wish of a pod. As a question to `Tallies` it adds that up by topology key."""

    of: Incoming
    required_weight: int
    """What a required affinity term is worth."""

    @property
    def labels(self) -> frozenset[Label]:
        """The pod's labels."""
        return self.of.labels

    def __call__(self, terms: PodTerms) -> Iterable[tuple[str, int]]:
        """The terms that mean the pod: topology key and weight."""
        weighted = [(each.term, each.weight) for each in terms.preferred]
        if self.required_weight:
            weighted += [(term, self.required_weight) for term in terms.required]
        is_meant = self.of.means()
        return [(term.topology_key, weight) for term, weight in weighted if is_meant(term)]

    def candidates(self, terms: TermsVocabulary) -> set[int]:
        """The codes of the terms that may mean the pod."""
        return terms.that_may_mean(self.of.labels)


@dataclass(frozen=True, slots=True)
class NearBy:
    """A term of the incoming pod: pods that are in the same domain of a topology key."""

    key: str
    meant: PodsMeant
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Wants:
    """What an incoming pod wants of pods on nodes, with the namespaces that its terms mean now.

    near: all required affinity terms must mean a pod for it to count, so these all have the same pods.
    away: required anti-affinity. preferred: both kinds, weighted.
    """

    incoming: Incoming
    near: tuple[NearBy, ...]
    away: tuple[NearBy, ...]
    preferred: tuple[NearBy, ...]

    @property
    def is_own_kind(self) -> bool:
        """Whether the pod is one of those that its required affinity asks for."""
        return bool(self.near) and self.near[0].meant.means(self.incoming.pod_class)


def wants_of(pod: Pod, terms: PodTerms, objects: Objects) -> Wants:
    """What an incoming pod with these terms wants."""
    together = PodsMeant(tuple(_scope(term, objects) for term in terms.required), terminating=True)
    return Wants(
        _incoming(pod, objects),
        tuple(NearBy(term.topology_key, together) for term in terms.required),
        tuple(NearBy(term.topology_key, _meant(term, objects)) for term in terms.required_anti),
        tuple(
            NearBy(each.term.topology_key, _meant(each.term, objects), each.weight)
            for each in terms.preferred
        ),
    )


def _incoming(pod: Pod, objects: Objects) -> Incoming:
    namespace = objects.of(Namespace).get("", pod.namespace)
    labels = NO_LABELS if namespace is None else namespace.labels
    return Incoming(pod.namespace, frozenset(pod.labels.items()), frozenset(labels.items()))


def _meant(term: AffinityTerm, objects: Objects) -> PodsMeant:
    return PodsMeant((_scope(term, objects),), terminating=True)


def _scope(term: AffinityTerm, objects: Objects) -> tuple[Selector, frozenset[str] | None]:
    """The pods that a term means, and their namespaces; None: all.

    A namespace selector that an unlabelled namespace meets means every namespace: kube-scheduler resolves
    selectors to names, and compares what is left with no labels at all.
    """
    wanted = term.namespace_selector
    if wanted.matches(NO_LABELS):
        return term.selector, None
    chosen = (each.name for each in objects.of(Namespace) if wanted.matches(each.labels))
    return term.selector, term.namespaces.union(chosen)
