"""Which of a pod's requests the kubelet pins to NUMA zones, for the pod as a whole and for each container.

Exclusive are: whole CPUs, memory and huge pages of containers in Guaranteed pods, and devices of all pods.
Other requests are served from what is shared, wherever that is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from moorage import Pod, QOSClass, pod_requests, qos_class, whole_units
from moorage.optional_plugins.numa.topology import CPU

_CORE: Final = 1_000_000_000
"""A CPU, in billionths."""
_MEMORY: Final = "memory"
_HUGE_PAGES: Final = "hugepages-"
_LARGEST_REQUEST: Final = 1 << 53
"""Larger requests are cut off: no zone has as much."""

Amounts = Mapping[str, int]
"""Whole units by resource, milli-CPU for cpu; none is zero."""


class ContainerRequests(NamedTuple):
    """What a container requests.

    kind: "init " or "sidecar " for init containers, nothing for the others: a part of messages.
    stays: whether the container runs beside those that come after it.
    pinned: what it gets from zones. all: everything that it requests.
    """

    kind: str
    stays: bool
    pinned: Amounts
    all: Amounts


class PodRequests(NamedTuple):
    """What a pod requests: `pinned` and `all` of the pod as a whole; is_guaranteed: its QoS class.

    names: all resources that it or a container requests.
    """

    pinned: Amounts
    all: Amounts
    containers: tuple[ContainerRequests, ...]
    is_guaranteed: bool
    names: tuple[str, ...]


def requests_of(pod: Pod) -> PodRequests:
    """What a pod requests.

    Resources of the pod as a whole are not exclusive, and neither are cpu and memory of its containers then.
    """
    spec = pod.spec
    is_guaranteed = qos_class(pod) is QOSClass.GUARANTEED
    pins_native = is_guaranteed and spec.resources is None
    containers = []
    for is_init, each in (
        *((True, each) for each in spec.init_containers),
        *((False, each) for each in spec.containers),
    ):
        kind = ("sidecar " if each.restartable else "init ") if is_init else ""
        requests = each.resources.requests
        pinned = {name: amount for name, amount in requests.items() if _is_pinned(name, amount, pins_native)}
        containers.append(ContainerRequests(kind, kind != "init ", _whole(pinned), _whole(requests)))
    whole = _whole(pod_requests(pod))
    names = dict.fromkeys((*whole, *(name for each in containers for name in each.all)))
    return PodRequests(_together(containers), whole, tuple(containers), is_guaranteed, tuple(names))


def pinned_of(pod: Pod) -> Amounts:
    """What a pod on a node may hold of its zones."""
    return requests_of(pod).pinned


def _is_pinned(name: str, amount: int, pins_native: bool) -> bool:
    if name == CPU:
        return pins_native and amount % _CORE == 0
    if name == _MEMORY or name.startswith(_HUGE_PAGES):
        return pins_native
    prefix, slash, _ = name.partition("/")
    return bool(slash) and not (prefix == "kubernetes.io" or prefix.endswith(".kubernetes.io"))


def _together(containers: Iterable[ContainerRequests]) -> Amounts:
    """Containers run together; init containers before them, one after another, beside the sidecars so far."""
    total: dict[str, int] = {}
    peak: dict[str, int] = {}
    for each in containers:
        for name, amount in each.pinned.items():
            needed = total.get(name, 0) + amount
            if each.stays:
                total[name] = needed
            peak[name] = max(peak.get(name, 0), needed)
    return peak


def _whole(amounts: Mapping[str, int]) -> Amounts:
    """Amounts in billionths as whole units, rounded up."""
    return {
        name: min(whole_units(name, amount), _LARGEST_REQUEST)
        for name, amount in amounts.items()
        if amount > 0
    }
