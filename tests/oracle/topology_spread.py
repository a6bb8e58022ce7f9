"""The oracle for PodTopologySpread.

A domain is a value of the constraint's node label. Of a constraint count the pods of the pod's own namespace
that its selector matches and that are not on their way out. An empty selector matches every pod but, oddly,
counts none of those that are there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from moorage.api.base import LabelSelector
from moorage.api.node import Node
from moorage.api.pod import Pod, TopologySpreadConstraint
from moorage.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from tests.oracle.cluster import OraclePlugin, Refusal, refusal
from tests.oracle.labels import is_empty, select, wanted_by
from tests.oracle.tolerations import is_repelled

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
UNEVEN = "node(s) didn't match pod topology spread constraints"
NO_LABEL = f"{UNEVEN} (missing required label)"

SYSTEM = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable="ScheduleAnyway"),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable="ScheduleAnyway"),
)


@dataclass(frozen=True)
class Rule:
    """A constraint with the selectors that must all match: its own, and more from labels or owners."""

    constraint: TopologySpreadConstraint
    selectors: tuple[LabelSelector | None, ...]

    @property
    def key(self) -> str:
        """The node label."""
        return self.constraint.topology_key

    def matches(self, pod: Pod) -> bool:
        """Whether a pod is of the kind that is to be spread."""
        return all(select(each, pod.labels) for each in self.selectors)

    @property
    def empty(self) -> bool:
        """Whether nothing at all is asked of pods."""
        return all(is_empty(each) for each in self.selectors)

    def includes(self, pod: Pod, node: Node) -> bool:
        """Whether a node takes part: by default where the pod's node affinity allows it, tainted or not."""
        if self.constraint.node_affinity_policy in (None, "Honor") and not wanted_by(pod, node):
            return False
        return not (self.constraint.node_taints_policy == "Honor" and is_repelled(pod, node))


class PodTopologySpread(OraclePlugin):
    """Hard constraints refuse nodes that would make the domains too uneven; soft ones score them."""

    name = "PodTopologySpread"
    filters = scores = True
    weight = 2

    # Which constraints there are

    @property
    def system_defaulted(self) -> bool:
        """Whether pods without constraints are spread by the system's own ones."""
        return self.args.defaulting_type == "System"

    def rules(self, when: str) -> list[Rule]:
        """The pod's own constraints, or those of the profile for pods that something owns or serves."""
        own = self.pod.spec.topology_spread_constraints
        if own:
            return [Rule(each, self.own_selectors(each)) for each in own if each.when_unsatisfiable == when]
        given = SYSTEM if self.system_defaulted else self.args.default_constraints
        selectors = self.owners_selectors()
        if all(is_empty(each) for each in selectors):
            return []
        return [Rule(each, selectors) for each in given if each.when_unsatisfiable == when]

    def own_selectors(self, constraint: TopologySpreadConstraint) -> tuple[LabelSelector | None, ...]:
        """The constraint's selector, and the pod's own values of the labels it names."""
        shared = {key: self.pod.labels[key] for key in constraint.match_label_keys if key in self.pod.labels}
        return (constraint.label_selector, LabelSelector(match_labels=shared))

    def owners_selectors(self) -> tuple[LabelSelector, ...]:
        """What the services that match the pod and the controller that owns it select by."""
        namespace = self.pod.namespace
        served: dict[str, str] = {}
        for service in self.cluster.all_of(Service, namespace):
            wanted = service.spec.selector
            if wanted and select(LabelSelector(match_labels=wanted), self.pod.labels):
                served |= wanted
        controllers = [each for each in self.pod.metadata.owner_references if each.controller]
        if not controllers:
            return (LabelSelector(match_labels=served),)
        by = controllers[0]
        if (by.api_version, by.kind) == ("v1", "ReplicationController"):
            replication = self.cluster.one(ReplicationController, by.name, namespace)
            if replication is not None:
                served |= replication.spec.selector
        kinds: tuple[type[ReplicaSet | StatefulSet], ...] = (ReplicaSet, StatefulSet)
        for kind in kinds:
            if (by.api_version, by.kind) == ("apps/v1", kind.__name__):
                workload = self.cluster.one(kind, by.name, namespace)
                if workload is not None and workload.spec.selector is not None:
                    return (LabelSelector(match_labels=served), workload.spec.selector)
        return (LabelSelector(match_labels=served),)

    def count(self, rule: Rule, node: Node) -> int:
        """How many pods on a node count for a rule."""
        if rule.empty:
            return 0
        return sum(
            pod.namespace == self.pod.namespace
            and pod.metadata.deletion_timestamp is None
            and rule.matches(pod)
            for pod in self.cluster.pods_on(node)
        )

    # Filtering

    def filter(self, node: Node) -> Refusal | None:
        """With the pod, no domain may have more than maxSkew pods above the one with the fewest."""
        rules = self.rules("DoNotSchedule")
        for rule in rules:
            if rule.key not in node.labels:
                return refusal(NO_LABEL, resolvable=False)
            counts: dict[str, int] = {}
            for each in self.cluster.nodes:
                if has_all(each, rules) and rule.includes(self.pod, each):
                    domain = each.labels[rule.key]
                    counts[domain] = counts.get(domain, 0) + self.count(rule, each)
            enough = len(counts) >= (rule.constraint.min_domains or 1)
            fewest = min(counts.values()) if counts and enough else 0
            here = counts.get(node.labels[rule.key], 0) + rule.matches(self.pod)
            if here - fewest > rule.constraint.max_skew:
                return refusal(UNEVEN)
        return None

    # Scoring

    def needs_all_keys(self) -> bool:
        """Whether nodes without some label are left out; the system's own constraints are lenient there."""
        return bool(self.pod.spec.topology_spread_constraints) or not self.system_defaulted

    def left_out(self, node: Node) -> bool:
        """Whether a node is not scored for want of a label."""
        return self.needs_all_keys() and not has_all(node, self.rules("ScheduleAnyway"))

    def skips_score(self, feasible: list[Node]) -> bool:
        """There are no soft constraints."""
        return not self.rules("ScheduleAnyway")

    def score(self, node: Node, feasible: list[Node]) -> int:
        """How many pods of the kind there are around, weighted: the rarer the domain's size, the more."""
        if self.left_out(node):
            return 0
        scored = [each for each in feasible if not self.left_out(each)]
        total = 0.0
        for rule in self.rules("ScheduleAnyway"):
            if rule.key not in node.labels:
                continue
            if rule.key == HOSTNAME:
                # Every node is a domain of its own, whatever the label says.
                around, domains = self.count(rule, node), len(scored)
            else:
                around = self.count_domain(rule, node.labels[rule.key])
                domains = len({each.labels.get(rule.key, "") for each in scored})
            total += around * math.log(domains + 2) + (rule.constraint.max_skew - 1)
        return math.floor(total + 0.5)

    def count_domain(self, rule: Rule, domain: str) -> int:
        """How many pods count in a domain; a node without the label is in the domain of the empty value."""
        return sum(
            self.count(rule, each)
            for each in self.cluster.nodes
            if not self.left_out(each)
            and rule.includes(self.pod, each)
            and each.labels.get(rule.key, "") == domain
        )

    def normalise(self, raw: list[int], feasible: list[Node]) -> list[int]:
        """The fewer the better; nodes that are left out get nothing."""
        out = [self.left_out(node) for node in feasible]
        kept = [score for score, left_out in zip(raw, out, strict=True) if not left_out]
        if not kept:
            return [0 for _ in raw]
        least, most = min(kept), max(kept)
        return [
            0 if left_out else 100 if most == 0 else 100 * (most + least - score) // most
            for score, left_out in zip(raw, out, strict=True)
        ]


def has_all(node: Node, rules: list[Rule]) -> bool:
    """Whether a node has the labels of all constraints."""
    return all(rule.key in node.labels for rule in rules)
