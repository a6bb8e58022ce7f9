"""What pods request and what nodes have, added up the plain way.

Amounts are exact integers in billionths until they are counted: milli-CPU for cpu and whole units for all
else, rounded up.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from moorage.api.node import Node
from moorage.api.pod import Container, Pod
from tests.oracle.cluster import Cluster

BILLION = 10**9
DEFAULTS = {"cpu": BILLION // 10, "memory": 200 * 2**20 * BILLION}
"""Taken for containers without a request when scoring: 100m and 200Mi."""

Amounts = dict[str, int]


def units(resource: str, billionths: int) -> int:
    """An amount as it is counted, rounded up."""
    size = BILLION // 1000 if resource == "cpu" else BILLION
    return (billionths + size - 1) // size


def is_extended(resource: str) -> bool:
    """Whether a resource is some vendor's."""
    vendor = "/" in resource and "kubernetes.io/" not in resource and not resource.startswith("requests.")
    return (
        vendor and re.fullmatch(r"[a-z0-9.-]+/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?", resource) is not None
    )


def is_scalar(resource: str) -> bool:
    """Whether a resource counts although it is none of cpu, memory and ephemeral-storage."""
    return (
        is_extended(resource)
        or "kubernetes.io/" in resource
        or resource.startswith(("hugepages-", "attachable-volumes-"))
    )


def counts(resource: str) -> bool:
    """Whether a resource means anything to scheduling; pods are counted apart."""
    return resource in ("cpu", "memory", "ephemeral-storage") or is_scalar(resource)


def add(first: Mapping[str, int], second: Mapping[str, int]) -> Amounts:
    """Two lists of amounts together."""
    return {name: first.get(name, 0) + second.get(name, 0) for name in {**first, **second}}


def larger(first: Mapping[str, int], second: Mapping[str, int]) -> Amounts:
    """The larger of two amounts, for each resource that either names."""
    return {name: max(each[name] for each in (first, second) if name in each) for name in {**first, **second}}


def in_force(
    pod: Pod, wanted: Mapping[str, int], given: Mapping[str, int], booked: Mapping[str, int]
) -> Amounts:
    """What counts while a resize is under way: the largest of all, or what is there if it cannot be done."""
    pending = [each for each in pod.status.conditions if each.type == "PodResizePending"]
    present = larger(given, booked)
    if pending and pending[0].reason == "Infeasible":
        return present
    return larger(wanted, present)


def of_container(pod: Pod, container: Container, defaults: Mapping[str, int], running: bool) -> Amounts:
    """A container's requests; `running` looks at what the kubelet says of it."""
    requests: Mapping[str, int] = container.resources.requests
    if running:
        for status in (*pod.status.container_statuses, *pod.status.init_container_statuses):
            if status.name == container.name and status.resources is not None:
                requests = in_force(
                    pod, container.resources.requests, status.resources.requests, status.allocated_resources
                )
    return {**defaults, **requests}


def names_pod_level(resource: str) -> bool:
    """Whether a resource can be requested for the pod as a whole."""
    return resource in ("cpu", "memory") or resource.startswith("hugepages-")


def pod_level(pod: Pod, running: bool) -> Amounts:
    """What is requested for the pod as a whole."""
    if pod.spec.resources is None:
        return {}
    wanted = {name: each for name, each in pod.spec.resources.requests.items() if names_pod_level(name)}
    if running and pod.status.resources is not None:
        effective = in_force(
            pod, pod.spec.resources.requests, pod.status.resources.requests, pod.status.allocated_resources
        )
        return {name: effective.get(name, 0) for name in wanted}
    return dict(wanted)


def requests(
    pod: Pod, *, running: bool = False, whole_pod: bool = True, defaults: Mapping[str, int] | None = None
) -> Amounts:
    """What a pod requests, in billionths.

    Containers run together and add up; so do restartable init containers, which keep running. Any other init
    container needs its own share while the restartable ones before it run. The pod needs the larger of both,
    for each resource. What is requested for the pod as a whole replaces that; overhead comes on top.
    """
    filling = defaults or {}
    together: Amounts = {}
    for each in pod.spec.containers:
        together = add(together, of_container(pod, each, filling, running))
    sidecars: Amounts = {}
    starting: Amounts = {}
    for each in pod.spec.init_containers:
        if each.restart_policy == "Always":
            sidecars = add(sidecars, of_container(pod, each, filling, running))
            starting = larger(starting, sidecars)
        else:
            starting = larger(starting, add(sidecars, of_container(pod, each, filling, False)))
    total = larger(add(together, sidecars), starting)
    if whole_pod:
        total = {**total, **pod_level(pod, running)}
    return add(total, pod.spec.overhead)


def allocatable(node: Node, resource: str) -> int:
    """How much of a resource a node has for pods."""
    return units(resource, node.status.allocatable.get(resource, 0)) if counts(resource) else 0


def used(cluster: Cluster, node: Node, resource: str) -> int:
    """How much of a resource the pods on a node request; each pod's amount is rounded by itself."""
    return sum(units(resource, requests(pod, running=True).get(resource, 0)) for pod in cluster.pods_on(node))


def used_for_scoring(cluster: Cluster, node: Node, resource: str) -> int:
    """As `used`, with the defaults for what cpu or memory pods leave open.

    A pod with requests for the pod as a whole gets a default only for what it requests nowhere.
    """
    if resource not in DEFAULTS:
        return used(cluster, node, resource)
    total = 0
    for pod in cluster.pods_on(node):
        defaults = dict(DEFAULTS)
        if pod_level(pod, True):
            known = requests(pod, running=True)
            defaults = {name: amount for name, amount in DEFAULTS.items() if name not in known}
        total += units(resource, requests(pod, running=True, defaults=defaults).get(resource, 0))
    return total
