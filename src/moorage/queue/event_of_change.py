"""The most specific events that describe the change of an object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.quantity import NANO, round_up
from moorage.api.resource_requests import have_equal_resources_in_status, pod_requests, resources_in_status
from moorage.queue.cluster_events import Action, ClusterEvent, Resource, event

_MILLI = NANO // 1000


class PodEvents:
    """The events of pods without a node, and of updates of any pod, as a version of Kubernetes names them.

    tells_target: whether updates of the pod that a hint is asked about are events of their own, and so are
    those that raise a request.
    """

    def __init__(self, tells_target: bool) -> None:
        self._tells_target = tells_target
        self._target = Resource.TARGET_POD if tells_target else Resource.UNSCHEDULABLE_POD
        self._unscheduled = Resource.UNSCHEDULED_POD if tells_target else Resource.UNSCHEDULABLE_POD
        self.added = event(self._unscheduled, Action.ADD)
        self.updated = event(self._unscheduled, Action.UPDATE)
        self.deleted = event(self._unscheduled, Action.DELETE)

    def of_update(self, old: Pod, new: Pod, *, is_target: bool = False) -> tuple[ClusterEvent, ...]:
        """The events of an update; at least one: an update of no particular field is an event as well."""
        kind = (
            Resource.ASSIGNED_POD if new.spec.node_name else self._target if is_target else self._unscheduled
        )
        if _is_of_no_particular_field(old, new):
            return (event(kind, Action.UPDATE),)
        actions = _pod_actions(old, new, self._tells_target)
        return tuple([event(kind, action) for action in actions]) or (event(kind, Action.UPDATE),)


def _is_of_no_particular_field(old: Pod, new: Pod) -> bool:
    """Whether an update is certain to have no specific event, as most updates of a pod's conditions."""
    was, status = old.status, new.status
    return (
        old.metadata.labels == new.metadata.labels
        and old.spec == new.spec
        and was.resource_claim_statuses == status.resource_claim_statuses
        and was.extended_resource_claim_status == status.extended_resource_claim_status
        and have_equal_resources_in_status(old, new)
    )


def _pod_actions(old: Pod, new: Pod, tells_scale_up: bool) -> Iterator[Action]:
    if old.labels != new.labels:
        yield Action.UPDATE_POD_LABEL
    if _what_requests_depend_on(old) != _what_requests_depend_on(new):
        if _scaled_down(old, new):
            yield Action.UPDATE_POD_SCALE_DOWN
        if tells_scale_up and _scaled_down(new, old):
            yield Action.UPDATE_POD_SCALE_UP
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        yield Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
    # The API server allows adding tolerations, not changing them.
    if len(old.spec.tolerations) != len(new.spec.tolerations):
        yield Action.UPDATE_POD_TOLERATION
    if _generated_claims(old) != _generated_claims(new):
        yield Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM


def _scaled_down(old: Pod, new: Pod) -> bool:
    """Whether any request decreased, compared in thousandths."""
    after = pod_requests(new, use_status=True)
    return any(
        name not in after or round_up(amount, _MILLI) > round_up(after[name], _MILLI)
        for name, amount in pod_requests(old, use_status=True).items()
    )


def _what_requests_depend_on(pod: Pod) -> tuple[Any, ...]:
    spec = pod.spec
    return spec.containers, spec.init_containers, spec.resources, spec.overhead, resources_in_status(pod)


def _generated_claims(pod: Pod) -> tuple[Any, ...]:
    return pod.status.resource_claim_statuses, pod.status.extended_resource_claim_status


def node_events(old: Node, new: Node) -> tuple[ClusterEvent, ...]:
    """The events of a node update; none for changes that scheduling does not depend on (a heartbeat)."""
    return tuple(event(Resource.NODE, action) for action in dict.fromkeys(_node_actions(old, new)))


def _node_actions(old: Node, new: Node) -> Iterator[Action]:
    if old.spec.unschedulable and not new.spec.unschedulable:
        yield Action.UPDATE_NODE_TAINT
    if old.status.allocatable != new.status.allocatable:
        yield Action.UPDATE_NODE_ALLOCATABLE
    if old.labels != new.labels:
        yield Action.UPDATE_NODE_LABEL
    if old.spec.taints != new.spec.taints:
        yield Action.UPDATE_NODE_TAINT
    if _condition_states(old) != _condition_states(new):
        yield Action.UPDATE_NODE_CONDITION
    if old.metadata.annotations != new.metadata.annotations:
        yield Action.UPDATE_NODE_ANNOTATION
    if old.status.declared_features != new.status.declared_features:
        yield Action.UPDATE_NODE_DECLARED_FEATURE


def _condition_states(node: Node) -> dict[str, str]:
    return {each.type: each.status for each in node.status.conditions}


def lost_nomination(old: Pod, new: Pod) -> bool:
    """Whether an update removes a pod's nomination: other pods may use the node's resources now."""
    before = old.status.nominated_node_name
    return bool(before) and before != new.status.nominated_node_name
