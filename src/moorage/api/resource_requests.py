"""The resource requests of a pod, computed as Kubernetes does.

Containers run together, so their requests add up; init containers run one after another beforehand, so
the largest counts; restartable init containers keep running beside both. Pod-level resources replace the
sum for what they name, overhead comes on top, and a running pod that is being resized counts with the
larger of what it has and what it wants.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moorage.api.base import ResourceList
from moorage.api.names import is_pod_level_resource, is_scalar_resource
from moorage.api.pod import Container, ContainerStatus, Pod, PodStatus
from moorage.api.quantity import NANO, Quantity, format_quantity, parse_quantity, round_up
from moorage.api.remembered import IdentityCache

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

SCORING_DEFAULTS: Mapping[str, Quantity] = {CPU: parse_quantity("100m"), MEMORY: parse_quantity("200Mi")}
"""Requests assumed for containers without any, in scoring only: so that such pods spread, too."""

_MILLI = NANO // 1000


def pod_requests(
    pod: Pod,
    *,
    use_status: bool = False,
    pod_level: bool = True,
    defaults: Mapping[str, Quantity] | None = None,
) -> dict[str, int]:
    """A pod's requests in billionths, by resource.

    use_status: count what the kubelet has given as well (pods on a node, in-place resize).
    pod_level: let pod-level resources replace the containers' sum.
    defaults: amounts for containers that name no request for a resource.
    """
    statuses = _statuses(pod) if use_status else {}
    infeasible = use_status and _resize_infeasible(pod)

    def container_requests(container: Container) -> Mapping[str, int]:
        requests: Mapping[str, int] = container.resources.requests
        status = statuses.get(container.name)
        if status is not None and status.resources is not None:
            given = [status.resources.requests, status.allocated_resources]
            requests = _largest(*given) if infeasible else _largest(requests, *given)
        return {**defaults, **requests} if defaults else requests

    total: dict[str, int] = {}
    for container in pod.spec.containers:
        _add(total, container_requests(container))
    running: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in pod.spec.init_containers:
        if container.restartable:
            requests = container_requests(container)
            _add(total, requests)
            _add(running, requests)
            _raise_to(peak, running)
        else:
            # A plain init container has no resize of its own: its status is not read.
            plain = container.resources.requests
            alone: dict[str, int] = {**defaults, **plain} if defaults else dict(plain)
            _add(alone, running)
            _raise_to(peak, alone)
    _raise_to(total, peak)

    if pod_level and has_pod_level_requests(pod):
        _replace_with_pod_level(total, pod, use_status, infeasible)
    _add(total, pod.spec.overhead)
    return total


spec_requests: IdentityCache[Pod, Mapping[str, int]] = IdentityCache(pod_requests)
"""A pod's requests in billionths, by resource, as in its spec; cached, because several plugins read them."""


def current_requests(pod: Pod) -> Mapping[str, int]:
    """A pod's requests in billionths, with what the kubelet has given; that is nothing for a pending pod."""
    return pod_requests(pod, use_status=True) if any(resources_in_status(pod)) else spec_requests(pod)


def scoring_requests(pod: Pod) -> Mapping[str, int]:
    """A new pod's requests in billionths, for scoring: with defaults, and without pod-level resources."""
    if has_pod_level_requests(pod) or _needs_defaults(pod, SCORING_DEFAULTS):
        return pod_requests(pod, pod_level=False, defaults=SCORING_DEFAULTS)
    return spec_requests(pod)


def _needs_defaults(pod: Pod, defaults: Mapping[str, Quantity]) -> bool:
    """Whether some container names no request for a resource that has a default."""
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    return any(name not in each.resources.requests for each in containers for name in defaults)


def resources_in_status(pod: Pod) -> tuple[object, ...]:
    """What `use_status` reads: the resources that the kubelet reports, and its answer to a resize."""
    status = pod.status
    return (
        status.container_statuses,
        status.init_container_statuses,
        status.resources,
        status.allocated_resources,
        _resize_pending(status),
    )


def have_equal_resources_in_status(one: Pod, other: Pod) -> bool:
    """Whether two versions of a pod have the same `resources_in_status`; compared without making them."""
    status, others = one.status, other.status
    if status is others:
        return True
    return (
        status.container_statuses == others.container_statuses
        and status.init_container_statuses == others.init_container_statuses
        and status.resources == others.resources
        and status.allocated_resources == others.allocated_resources
        and (status.conditions is others.conditions or _resize_pending(status) == _resize_pending(others))
    )


def _resize_pending(status: PodStatus) -> str | None:
    """Why a resize waits; None if it does not."""
    for each in status.conditions:
        if each.type == "PodResizePending":
            return each.reason
    return None


def has_pod_level_requests(pod: Pod) -> bool:
    """Whether the pod itself, not only its containers, names requests."""
    resources = pod.spec.resources
    return resources is not None and any(is_pod_level_resource(name) for name in resources.requests)


def _replace_with_pod_level(total: dict[str, int], pod: Pod, use_status: bool, infeasible: bool) -> None:
    assert pod.spec.resources is not None
    wanted = pod.spec.resources.requests
    effective: Mapping[str, int] = wanted
    if use_status and pod.status.resources is not None:
        given = [pod.status.resources.requests, pod.status.allocated_resources]
        effective = _largest(*given) if infeasible else _largest(wanted, *given)
    for name in wanted:
        if is_pod_level_resource(name):
            total[name] = effective.get(name, 0)


def _statuses(pod: Pod) -> dict[str, ContainerStatus]:
    return {s.name: s for s in (*pod.status.container_statuses, *pod.status.init_container_statuses)}


def _resize_infeasible(pod: Pod) -> bool:
    for condition in pod.status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: dict[str, int], floor: Mapping[str, int]) -> None:
    for name, amount in floor.items():
        if name not in total or total[name] < amount:
            total[name] = amount


def _largest(*lists: Mapping[str, int]) -> dict[str, int]:
    largest: dict[str, int] = {}
    for each in lists:
        _raise_to(largest, each)
    return largest


def whole_units(name: str, billionths: int) -> int:
    """An amount in the unit of columns: milli-CPU for cpu, whole units for all else, rounded up."""
    return round_up(billionths, _MILLI if name == CPU else NANO)


def format_amount(name: str, amount: int) -> str:
    """An amount in whole units as a quantity: the inverse of `whole_units`."""
    return format_quantity(amount * (_MILLI if name == CPU else NANO))


def countable(name: str) -> bool:
    """Whether a resource is one that nodes are filled with (pods are counted apart)."""
    return name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar_resource(name)


def resource_amounts(resources: ResourceList | Mapping[str, int]) -> dict[str, int]:
    """Amounts in billionths in the unit of columns, for the resources that nodes are filled with."""
    return {name: whole_units(name, amount) for name, amount in resources.items() if countable(name)}


@dataclass(frozen=True, slots=True)
class PodLoad:
    """What a pod on a node takes from it; whole units."""

    amounts: dict[str, int]
    scoring_cpu_milli: int
    scoring_memory: int


def pod_load(pod: Pod) -> PodLoad:
    """What a pod takes from the node it is on, resizes included."""
    requests = pod_requests(pod, use_status=True)
    defaults = dict(SCORING_DEFAULTS)
    if has_pod_level_requests(pod):
        defaults = {name: amount for name, amount in defaults.items() if name not in requests}
    is_same = not defaults or not (any(resources_in_status(pod)) or _needs_defaults(pod, defaults))
    scoring = requests if is_same else pod_requests(pod, use_status=True, defaults=defaults)
    return PodLoad(
        resource_amounts(requests),
        whole_units(CPU, scoring.get(CPU, 0)),
        whole_units(MEMORY, scoring.get(MEMORY, 0)),
    )
