"""The topology spread constraints of a pod: its own, or those its profile gives to pods without any."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moorage.api.labels import HOSTNAME, ZONE
from moorage.api.pod import Pod, TopologySpreadConstraint
from moorage.api.selectors import (
    EVERYTHING,
    NOTHING,
    Selector,
    equality_selector,
    label_selector,
    required_nodes,
)
from moorage.api.taints import has_untolerated
from moorage.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from moorage.cluster.columns import ABSENT
from moorage.cluster.object_tables import Objects
from moorage.framework.interface.nodes import Nodes
from moorage.plugins.topology_counts.pod_matcher import PodMatcher

DO_NOT_SCHEDULE = "DoNotSchedule"
SCHEDULE_ANYWAY = "ScheduleAnyway"

SYSTEM_CONSTRAINTS = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=SCHEDULE_ANYWAY),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable=SCHEDULE_ANYWAY),
)
"""The system's default constraints for pods of a service or controller: ScheduleAnyway only."""


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """A constraint ready to use."""

    max_skew: int
    topology_key: str
    selector: Selector
    min_domains: int
    honors_affinity: bool
    honors_taints: bool

    def counted(self, pod: Pod) -> PodMatcher:
        """The pods that count: those of the pod's namespace that are not terminating.

        An empty selector counts nothing.
        """
        selector = NOTHING if self.selector.empty else self.selector
        return PodMatcher(((selector, frozenset((pod.namespace,))),), terminating=False)

    def included(self, pod: Pod, nodes: Nodes) -> NDArray[np.bool_] | None:
        """The nodes whose pods count, by the constraint's node inclusion policies; None: all nodes."""
        mask: NDArray[np.bool_] | None = None
        if self.honors_affinity and not (wanted := required_nodes(pod)).anything:
            mask = nodes.required_by(wanted)
        if self.honors_taints:
            lets_in = ~nodes.taints.map_values(lambda taints: has_untolerated(taints, pod.spec.tolerations))
            mask = lets_in if mask is None else mask & lets_in
        return mask


def having_keys(nodes: Nodes, keys: Iterable[str]) -> NDArray[np.bool_]:
    """The nodes that have all labels. Shape (nodes,)."""
    mask = np.ones(len(nodes), bool)
    for key in keys:
        mask &= nodes.label(key).codes != ABSENT
    return mask


def topology_keys(wanted: Iterable[SpreadConstraint]) -> list[str]:
    """The topology key of each constraint."""
    return [each.topology_key for each in wanted]


def countable(
    pod: Pod, nodes: Nodes, constraint: SpreadConstraint, mask: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Those of the nodes in `mask` whose pods count for a constraint. Shape (nodes,)."""
    included = constraint.included(pod, nodes)
    return mask if included is None else mask & included


def constraints(
    pod: Pod, action: str, defaults: Sequence[TopologySpreadConstraint], objects: Objects
) -> tuple[SpreadConstraint, ...]:
    """The pod's constraints of one kind (`action`), or the default ones with a selector found for it."""
    own = pod.spec.topology_spread_constraints
    if own:
        return tuple(_constraint(c, _own_selector(c, pod)) for c in own if c.when_unsatisfiable == action)
    chosen = [c for c in defaults if c.when_unsatisfiable == action]
    if not chosen:
        return ()
    selector = default_selector(pod, objects)
    return () if selector.empty else tuple(_constraint(c, selector) for c in chosen)


def _constraint(constraint: TopologySpreadConstraint, selector: Selector) -> SpreadConstraint:
    return SpreadConstraint(
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
    """The default selector of a pod: the selectors of its services and its controller combined."""
    services, workload = objects.of(Service).within(pod.namespace), _controller(pod, objects)
    if not services and workload is None:
        return EVERYTHING
    labels: dict[str, str] = {}
    for service in services.values():
        wanted = service.spec.selector
        if wanted and all(pod.labels.get(key) == value for key, value in wanted.items()):
            labels.update(wanted)
    extra = EVERYTHING
    if isinstance(workload, ReplicationController):
        labels.update(workload.spec.selector)
    elif workload is not None:
        extra = label_selector(workload.spec.selector)
    own = equality_selector(labels)
    return Selector((*(own.requirements or ()), *(extra.requirements or ())))


def _controller(pod: Pod, objects: Objects) -> ReplicationController | ReplicaSet | StatefulSet | None:
    """The controller of a pod, if it is of a kind that selects pods."""
    owner = pod.controller
    if owner is None:
        return None
    kind = _CONTROLLERS.get((owner.api_version, owner.kind))
    return None if kind is None else objects.of(kind).get(pod.namespace, owner.name)


_CONTROLLERS: Mapping[tuple[str, str], type[ReplicationController | ReplicaSet | StatefulSet]] = {
    ("v1", "ReplicationController"): ReplicationController,
    ("apps/v1", "ReplicaSet"): ReplicaSet,
    ("apps/v1", "StatefulSet"): StatefulSet,
}


class TemplateConstraints:
    """The constraints of all pods of one equivalence class; default ones follow services and controllers.

    As long as they are equal, they are the same object.
    """

    def __init__(self, pod: Pod, action: str, defaults: Sequence[TopologySpreadConstraint]) -> None:
        """defaults: the default constraints with this action."""
        self._action = action
        self._defaults = defaults
        has_own = bool(pod.spec.topology_spread_constraints)
        self._is_settled = has_own or not defaults
        self._basis: object = None
        self._constraints: tuple[SpreadConstraint, ...] | None = None if has_own or defaults else ()

    def of(self, pod: Pod, objects: Objects) -> tuple[SpreadConstraint, ...]:
        """The constraints of a pod of this class."""
        known = self._constraints
        if known is not None and self._is_settled:
            return known
        workload = _controller(pod, objects)
        # Workloads change all the time, but hardly ever what they select.
        selected = None if workload is None else (type(workload), workload.spec.selector)
        basis = (objects.of(Service).version, selected)
        if known is None or basis != self._basis:
            self._basis = basis
            new = constraints(pod, self._action, self._defaults, objects)
            if new != known:
                known = self._constraints = new
        return known
