"""The oracle for InterPodAffinity.

Two nodes are near each other by a label if both have it with the same value. A term speaks of pods: those its
label selector matches, in the namespaces it lists (its own pod's, if it lists none and has no namespace
selector) or that its namespace selector matches. Its matchLabelKeys are the API server's business.
"""

from __future__ import annotations

from collections.abc import Iterator

from moorage.api.node import Namespace, Node
from moorage.api.pod import Pod, PodAffinity, PodAffinityTerm
from tests.oracle.cluster import Cluster, OraclePlugin, Refusal, refusal
from tests.oracle.labels import select


def affinity(pod: Pod) -> PodAffinity:
    """What a pod wants to be near to."""
    found = pod.spec.affinity and pod.spec.affinity.pod_affinity
    return found or PodAffinity()


def anti_affinity(pod: Pod) -> PodAffinity:
    """What a pod wants to be away from."""
    found = pod.spec.affinity and pod.spec.affinity.pod_anti_affinity
    return found or PodAffinity()


def required(preference: PodAffinity) -> tuple[PodAffinityTerm, ...]:
    """The terms that must hold."""
    return preference.required_during_scheduling_ignored_during_execution


def preferred(pod: Pod) -> list[tuple[int, PodAffinityTerm]]:
    """A pod's wishes with their weights; negative for what it wants to be away from."""
    near = affinity(pod).preferred_during_scheduling_ignored_during_execution
    away = anti_affinity(pod).preferred_during_scheduling_ignored_during_execution
    return [(each.weight, each.pod_affinity_term) for each in near] + [
        (-each.weight, each.pod_affinity_term) for each in away
    ]


def near(first: Node, second: Node, key: str) -> bool:
    """Whether two nodes are in the same domain of a label."""
    return key in first.labels and key in second.labels and first.labels[key] == second.labels[key]


def listed_namespaces(term: PodAffinityTerm, of: Pod) -> set[str]:
    """The namespaces that a pod's term names."""
    if not term.namespaces and term.namespace_selector is None:
        return {of.namespace}
    return set(term.namespaces)


def existing_means(cluster: Cluster, term: PodAffinityTerm, existing: Pod, pod: Pod) -> bool:
    """Whether a term of a pod that is on a node speaks of the new pod.

    A namespace that is not known counts as one without labels.
    """
    known = cluster.one(Namespace, pod.namespace)
    labels = known.labels if known is not None else {}
    covered = pod.namespace in listed_namespaces(term, existing) or select(term.namespace_selector, labels)
    return covered and select(term.label_selector, pod.labels)


def new_means(cluster: Cluster, term: PodAffinityTerm, pod: Pod, other: Pod) -> bool:
    """Whether a term of the new pod speaks of another pod (or of itself).

    The namespace selector chooses among the namespaces that are known; an empty one means every namespace.
    Before v1.37, kube-scheduler tries it on no labels at all, too: a selector that no labels satisfy, such as
    NotIn or DoesNotExist, means every namespace.
    """
    chosen = listed_namespaces(term, pod) | {
        each.name for each in cluster.all_of(Namespace) if select(term.namespace_selector, each.labels)
    }
    selector = term.namespace_selector
    if cluster.version.resolved_namespace_selectors:
        means_all = selector is not None and not (selector.match_labels or selector.match_expressions)
    else:
        means_all = select(selector, {})
    return (other.namespace in chosen or means_all) and select(term.label_selector, other.labels)


class InterPodAffinity(OraclePlugin):
    """The new pod's required terms must hold, and those of pods that want to be away from it.

    Preferred terms, of the new pod and of those on nodes, add and take away points; so do the required
    affinity terms of pods on nodes, with a weight from the configuration.
    """

    name = "InterPodAffinity"
    filters = scores = True
    weight = 2

    def meant(self, term: PodAffinityTerm, other: Pod) -> bool:
        """Whether a term of the new pod speaks of another."""
        return new_means(self.cluster, term, self.pod, other)

    def filter(self, node: Node) -> Refusal | None:
        """First what the pod wants near, then what it wants away, then who wants to be away from it."""
        if not self.near_enough(node):
            return refusal("node(s) didn't match pod affinity rules", resolvable=False)
        for term in required(anti_affinity(self.pod)):
            for other, place in self.cluster.placed():
                if near(node, place, term.topology_key) and self.meant(term, other):
                    return refusal("node(s) didn't match pod anti-affinity rules")
        for other, place in self.cluster.placed():
            for term in required(anti_affinity(other)):
                if near(node, place, term.topology_key) and existing_means(
                    self.cluster, term, other, self.pod
                ):
                    return refusal("node(s) didn't satisfy existing pods anti-affinity rules")
        return None

    def near_enough(self, node: Node) -> bool:
        """For every term there must be a pod near by that all terms speak of.

        The first pod of a group that wants to be together passes: one that its own terms speak of, while
        there is no other such pod on any node with one of the labels.
        """
        terms = required(affinity(self.pod))
        keys = [term.topology_key for term in terms]
        if any(key not in node.labels for key in keys):
            return False
        matching_pods = [
            place for other, place in self.cluster.placed() if all(self.meant(term, other) for term in terms)
        ]
        if all(any(near(node, place, key) for place in matching_pods) for key in keys):
            return True
        alone = not any(key in place.labels for place in matching_pods for key in keys)
        return alone and all(self.meant(term, self.pod) for term in terms)

    def contributions(self) -> Iterator[tuple[Node, str, int]]:
        """Every pair of a pod on a node and a term that counts: where, by which label, how much."""
        for other, place in self.cluster.placed():
            for weight, term in preferred(self.pod):
                if self.meant(term, other):
                    yield place, term.topology_key, weight
            theirs = preferred(other)
            hard = self.args.hard_pod_affinity_weight
            if hard:
                theirs = [*theirs, *((hard, term) for term in required(affinity(other)))]
            for weight, term in theirs:
                if existing_means(self.cluster, term, other, self.pod):
                    yield place, term.topology_key, weight

    def skips_score(self, feasible: list[Node]) -> bool:
        """Nothing counts on any node, or only pods that have wishes themselves may look at others' wishes."""
        if self.args.ignore_preferred_terms_of_existing_pods and not preferred(self.pod):
            return True
        return not any(key in place.labels for place, key, _ in self.contributions())

    def score(self, node: Node, feasible: list[Node]) -> int:
        """The sum of all that counts near by."""
        return sum(weight for place, key, weight in self.contributions() if near(node, place, key))

    def normalise(self, raw: list[int], feasible: list[Node]) -> list[int]:
        """From 0 for the worst to 100 for the best, rounded down; all 0 where all are alike."""
        least, most = min(raw), max(raw)
        if least == most:
            return [0 for _ in raw]
        return [int(100 * ((score - least) / (most - least))) for score in raw]
