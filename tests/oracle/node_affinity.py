"""The oracle for NodeAffinity: nodeSelector, node affinity, and the affinity a profile adds to every pod."""

from __future__ import annotations

from moorage.api.node import Node
from moorage.api.pod import NodeAffinity as Affinity
from moorage.api.pod import PreferredSchedulingTerm
from tests.oracle.cluster import BrokenPodError, OraclePlugin, Refusal, refusal, share_of_largest
from tests.oracle.labels import MalformedError, node_selected, required_selector, term_matches, wanted_by


class NodeAffinity(OraclePlugin):
    """A node must match what the profile adds and what the pod requires; preferences add their weights."""

    name = "NodeAffinity"
    filters = scores = True
    weight = 2

    @property
    def added(self) -> Affinity:
        """The affinity that the profile adds."""
        return self.args.added_affinity or Affinity()

    def narrow(self) -> frozenset[str] | str | None:
        """Where every term names its nodes, only those are in question; names that exclude each other: none.

        This goes by what is written: also a malformed term names nodes.
        """
        required = required_selector(self.pod)
        if required is None or not required.node_selector_terms:
            return None
        names: set[str] = set()
        for term in required.node_selector_terms:
            lists = [
                set(each.values)
                for each in term.match_fields
                if each.key == "metadata.name" and each.operator == "In"
            ]
            if not lists:
                return None
            names |= set.intersection(*lists)
        return frozenset(names) or "pod affinity terms conflict"

    def filter(self, node: Node) -> Refusal | None:
        """What the profile adds comes first, then what the pod wants."""
        enforced = self.added.required_during_scheduling_ignored_during_execution
        if enforced is not None and not node_selected(enforced, node):
            return refusal("node(s) didn't match scheduler-enforced node affinity", resolvable=False)
        if not wanted_by(self.pod, node):
            return refusal("node(s) didn't match Pod's node affinity/selector", resolvable=False)
        return None

    def preferences(self) -> list[PreferredSchedulingTerm]:
        """The pod's preferences and the profile's."""
        affinity = self.pod.spec.affinity
        own = Affinity() if affinity is None or affinity.node_affinity is None else affinity.node_affinity
        return [
            *own.preferred_during_scheduling_ignored_during_execution,
            *self.added.preferred_during_scheduling_ignored_during_execution,
        ]

    def skips_score(self, feasible: list[Node]) -> bool:
        """Nobody prefers anything."""
        return not self.preferences()

    def score(self, node: Node, feasible: list[Node]) -> int:
        """The weights of the preferences that match; a preference that makes no sense is an error."""
        try:
            return sum(
                each.weight
                for each in self.preferences()
                if each.weight and term_matches(each.preference, node)
            )
        except MalformedError as error:
            raise BrokenPodError(str(error)) from None

    def normalise(self, raw: list[int], feasible: list[Node]) -> list[int]:
        """The more the better."""
        return share_of_largest(raw)
