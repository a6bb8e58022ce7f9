"""The topology spread constraints of a pod: its own, or those its profile gives to pods without any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moorage.api.labels import HOSTNAME, ZONE
from moorage.api.pod import Pod, TopologySpreadConstraint
from moorage.api.selectors import EVERYTHING, Selector, equality_selector, label_selector, required_nodes
from moorage.api.taints import keeps_away
from moorage.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from moorage.cluster.objects import Objects
from moorage.cluster.pods import PodClass
from moorage.framework.nodes import Nodes

DO_NOT_SCHEDULE = "DoNotSchedule"
SCHEDULE_ANYWAY = "ScheduleAnyway"

SYSTEM_CONSTRAINTS = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=SCHEDULE_ANYWAY),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable=SCHEDULE_ANYWAY),
)
"""What pods of a service or controller get where the configuration says nothing else: wishes only."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint ready to use."""

    max_skew: int
    topology_key: str
    selector: Selector
    min_domains: int
    honors_affinity: bool
    honors_taints: bool

    def eligible(self, pod: Pod, nodes: Nodes) -> NDArray[np.bool_]:
        """The nodes whose pods count, by the constraint's node inclusion policies. Shape (nodes,)."""
        mask = np.ones(len(nodes), bool)
        if self.honors_affinity and not (wanted := required_nodes(pod)).anything:
            mask &= nodes.required_by(wanted)
        if self.honors_taints:
            mask &= ~nodes.taints.judge(lambda taints: keeps_away(taints, pod.spec.tolerations))
        return mask


def matching_pods(nodes: Nodes, selector: Selector, namespace: str) -> NDArray[np.int32]:
    """The node row of every pod of a namespace that a selector means; pods on their way out do not count.

    A selector that asks for nothing counts nothing.
    """
    return nodes.snapshot.pods.nodes_of(lambda each: counts_for(each, selector, namespace))


def counts_for(each: PodClass, selector: Selector, namespace: str) -> bool:
    """Whether pods of a class count for a constraint's selector in a namespace."""
    if selector.empty or each.terminating or each.namespace != namespace:
        return False
    return selector.matches(dict(each.labels))


def constraints(
    pod: Pod, action: str, defaults: Sequence[TopologySpreadConstraint], objects: Objects
) -> tuple[Constraint, ...]:
    """The pod's constraints of one kind (`action`), or the default ones with a selector found for it."""
    own = pod.spec.topology_spread_constraints
    if own:
        return tuple(_constraint(c, _own_selector(c, pod)) for c in own if c.when_unsatisfiable == action)
    chosen = [c for c in defaults if c.when_unsatisfiable == action]
    if not chosen:
        return ()
    selector = default_selector(pod, objects)
    return () if selector.empty else tuple(_constraint(c, selector) for c in chosen)


def _constraint(constraint: TopologySpreadConstraint, selector: Selector) -> Constraint:
    return Constraint(
        constraint.max_skew,
        constraint.topology_key,
        selector,
        1 if constraint.min_domains is None else constraint.min_domains,
        constraint.node_affinity_policy in (None, "Honor"),
        constraint.node_taints_policy == "Honor",
    )


def _own_selector(constraint: TopologySpreadConstraint, pod: Pod) -> Selector:
    """The selector, narrowed to pods that have the same values as this one for matchLabelKeys."""
    shared = {key: pod.labels[key] for key in constraint.match_label_keys if key in pod.labels}
    return label_selector(constraint.label_selector).adding(shared)


def default_selector(pod: Pod, objects: Objects) -> Selector:
    """What belongs with a pod: all that its services and its controller select."""
    labels: dict[str, str] = {}
    for service in objects.of(Service).within(pod.namespace).values():
        wanted = service.spec.selector
        if wanted and all(pod.labels.get(key) == value for key, value in wanted.items()):
            labels.update(wanted)
    extra = EVERYTHING
    owner = pod.controller
    if owner is not None:
        match (owner.api_version, owner.kind):
            case ("v1", "ReplicationController"):
                controller = objects.of(ReplicationController).get(pod.namespace, owner.name)
                labels.update(controller.spec.selector if controller is not None else {})
            case ("apps/v1", "ReplicaSet"):
                extra = _workload_selector(objects.of(ReplicaSet).get(pod.namespace, owner.name))
            case ("apps/v1", "StatefulSet"):
                extra = _workload_selector(objects.of(StatefulSet).get(pod.namespace, owner.name))
    own = equality_selector(labels)
    return Selector((*(own.requirements or ()), *(extra.requirements or ())))


def _workload_selector(workload: ReplicaSet | StatefulSet | None) -> Selector:
    return EVERYTHING if workload is None else label_selector(workload.spec.selector)
