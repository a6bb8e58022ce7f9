"""Node-pressure eviction: a kubelet sets conditions, collects images, and evicts one pod at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moorage.api.manifests import Manifest
from moorage.api.quantity import NANO, format_quantity, parse_quantity
from moorage.api.resource_requests import EPHEMERAL_STORAGE, MEMORY, PODS
from moorage.apimachinery.schema.quantities import canonical_quantity
from moorage_cluster.nodes.kubelet import Kubelet
from moorage_cluster.nodes.nodeobject import PRESSURE_EVENTS
from moorage_cluster.nodes.podrun import PodRun
from moorage_cluster.nodes.pressure import Observation, Observations
from moorage_cluster.nodes.ranking import CRITICAL_PRIORITY, Candidate, eviction_order
from moorage_cluster.nodes.thresholds import (
    ALLOCATABLE_MEMORY_AVAILABLE,
    DISK_PRESSURE,
    IMAGEFS_AVAILABLE,
    IMAGEFS_INODES_FREE,
    MEMORY_AVAILABLE,
    NODEFS_AVAILABLE,
    NODEFS_INODES_FREE,
    PID_AVAILABLE,
    RESOURCES,
    Threshold,
)
from moorage_cluster.nodes.usage import INODES, NOTHING, PIDS, ContainerUsage

_BYTES_PER_INODE = 16 << 10
_SYSTEM_PIDS = 200
_IMMEDIATE_GRACE_SECONDS = 1.0
"""Grace period of pods that are evicted immediately, in seconds."""


def node_usage(kubelet: Kubelet, now: float) -> ContainerUsage:
    """The usage of a node by pods, by images, and by the system, which takes half of its reserve."""
    total = NOTHING
    for run in kubelet.pods.values():
        total = total.plus(run.usage(now))
    capacity, allocatable = _amounts(kubelet, "capacity"), _amounts(kubelet, "allocatable")
    reserved_cpu = max(capacity.get("cpu", 0) - allocatable.get("cpu", 0), 0)
    return ContainerUsage(
        total.cpu_nano + reserved_cpu // 2,
        total.memory + _reserved_memory(kubelet) // 2,
        total.disk + kubelet.images.bytes_used,
        total.inodes + kubelet.images.inodes_used,
        total.pids + _SYSTEM_PIDS,
    )


def observe(kubelet: Kubelet, now: float) -> Observations:
    """The available memory, disk and processes of a node; images are on the same disk as all else."""
    used = node_usage(kubelet, now)
    capacity = {name: amount // NANO for name, amount in _amounts(kubelet, "capacity").items()}
    max_pids = kubelet.context.settings.max_pids
    observations = {PID_AVAILABLE: Observation.of(max_pids, used.pids)}
    if memory := capacity.get(MEMORY):
        reserved = _reserved_memory(kubelet)
        observations[MEMORY_AVAILABLE] = Observation.of(memory, used.memory)
        of_pods = used.memory - reserved // 2
        observations[ALLOCATABLE_MEMORY_AVAILABLE] = Observation.of(memory - reserved, of_pods)
    if disk := capacity.get(EPHEMERAL_STORAGE):
        inodes = disk // _BYTES_PER_INODE
        space, files = Observation.of(disk, used.disk), Observation.of(inodes, used.inodes)
        observations |= {NODEFS_AVAILABLE: space, IMAGEFS_AVAILABLE: space}
        observations |= {NODEFS_INODES_FREE: files, IMAGEFS_INODES_FREE: files}
    return observations


def _amounts(kubelet: Kubelet, part: str) -> Mapping[str, int]:
    status = kubelet.node.get("status") or {}
    listed = status.get(part) or status.get("allocatable") or {}
    return {name: parse_quantity(text) for name, text in listed.items() if name != PODS}


def _reserved_memory(kubelet: Kubelet) -> int:
    """The memory that is reserved from pods, beside what hard eviction keeps free."""
    capacity = _amounts(kubelet, "capacity").get(MEMORY, 0) // NANO
    allocatable = _amounts(kubelet, "allocatable").get(MEMORY, 0) // NANO
    kept = sum(
        each.value.of(capacity)
        for each in kubelet.context.thresholds
        if each.signal == MEMORY_AVAILABLE and not each.grace_seconds
    )
    return max(capacity - allocatable - kept, 0)


def needs_eviction_check(kubelet: Kubelet) -> bool:
    """Whether a node's usage may have changed since it was last observed."""
    if kubelet.is_cut_off:
        return False
    if kubelet.has_changes or not kubelet.pressure.is_clear:
        return True
    return any(not run.has_constant_usage and not run.is_finished for run in kubelet.pods.values())


def reclaim_resources(kubelet: Kubelet, now: float) -> bool:
    """Observe a node and reclaim resources if needed; returns whether its conditions have changed."""
    kubelet.has_changes = False
    pressure, before = kubelet.pressure, kubelet.pressure.conditions
    observations = observe(kubelet, now)
    due = pressure.observe(now, observations)
    for condition in sorted({*before, *pressure.conditions}):
        if (condition in before) != (condition in pressure.conditions):
            event = PRESSURE_EVENTS[condition][condition in pressure.conditions]
            message = f"Node {kubelet.name} status is now: {event}"
            kubelet.record_event(kubelet.node, "Normal", event, message)
    if not _evict_beyond_limits(kubelet, now) and due:
        _reclaim(kubelet, due, observations, now)
    return set(before) != set(pressure.conditions)


def _reclaim(kubelet: Kubelet, due: Sequence[Threshold], observations: Observations, now: float) -> None:
    """Remove unused images; if that is not enough, evict one pod."""
    resource = due[0].resource
    kubelet.record_event(kubelet.node, "Warning", "EvictionThresholdMet", f"Attempting to reclaim {resource}")
    active = {run.uid: run for run in kubelet.pods.values() if not run.is_finished}
    if due[0].condition == DISK_PRESSURE:
        kubelet.images.collect(each.spec["image"] for run in active.values() for each in run.containers)
        if kubelet.pressure.is_relieved(observe(kubelet, now)):
            return
    candidates = [_candidate(run, resource, now) for run in active.values()]
    for candidate in eviction_order(resource, candidates)[:1]:
        run = active[candidate.key]
        kubelet.evict(
            run,
            eviction_message(run, due, observations, now),
            is_disrupted=True,
            grace_seconds=_grace_seconds(kubelet, run, due[0]),
        )


def _grace_seconds(kubelet: Kubelet, run: PodRun, threshold: Threshold) -> float:
    """The grace period of an evicted pod: minimal, unless the threshold is soft."""
    if not threshold.grace_seconds:
        return _IMMEDIATE_GRACE_SECONDS
    longest = kubelet.context.settings.eviction_max_pod_grace_seconds
    own: int | None = run.manifest["spec"].get("terminationGracePeriodSeconds")
    if own is None:
        return longest
    return own if longest < 0 else min(longest, own)


def _candidate(run: PodRun, resource: str, now: float) -> Candidate:
    usage = run.usage(now)
    requests = run.claims.amounts if run.claims is not None else {}
    if resource == MEMORY:
        return Candidate(run.uid, run.priority, usage.memory, requests.get(MEMORY, 0))
    disk = requests.get(EPHEMERAL_STORAGE, 0)
    if resource == EPHEMERAL_STORAGE:
        return Candidate(run.uid, run.priority, usage.disk, disk)
    if resource == INODES:
        # There are no requests of inodes, yet the kubelet deducts the requests of the disk they are on.
        return Candidate(run.uid, run.priority, usage.inodes, 0, disk)
    assert resource == PIDS
    return Candidate(run.uid, run.priority, usage.pids)


def eviction_message(run: PodRun, due: Sequence[Threshold], observations: Observations, now: float) -> str:
    """Why a pod is evicted: the resource that is short, and which containers exceed their requests."""
    resource = due[0].resource
    message = f"The node was low on resource: {resource}. "
    threshold = next(each for each in due if RESOURCES[each.signal] == resource)
    available, capacity = observations[threshold.signal]
    left = canonical_quantity(str(available)) if resource in (INODES, PIDS) else _bytes(available)
    message += f"Threshold quantity: {_bytes(threshold.value.of(capacity))}, available: {left}. "
    if resource not in (MEMORY, EPHEMERAL_STORAGE):
        return message
    whole = (run.manifest["spec"].get("resources") or {}).get("requests") or {}
    if resource == MEMORY and MEMORY in whole:
        message += _larger("Pod", run.name, run.usage(now).memory, whole[MEMORY], resource)
    for container in (*run.mains, *run.inits):
        usage = container.usage(now)
        used = usage.memory if resource == MEMORY else usage.disk
        request = ((container.spec.get("resources") or {}).get("requests") or {}).get(resource, "0")
        if used > parse_quantity(request).value:
            message += _larger("Container", container.name, used, request, resource)
    return message


def _larger(what: str, name: str, used: int, request: str, resource: str) -> str:
    return (
        f"{what} {name} was using {_bytes(used)}, request is {request}, "
        f"has larger consumption of {resource}. "
    )


def _bytes(amount: int) -> str:
    return format_quantity(amount * NANO)


def _evict_beyond_limits(kubelet: Kubelet, now: float) -> bool:
    """Evict all pods that exceed their disk limits; returns whether there were any."""
    evicted = False
    for run in list(kubelet.pods.values()):
        if run.is_finished or run.priority >= CRITICAL_PRIORITY:
            continue
        message = _beyond_limits(run, now)
        if message:
            kubelet.evict(run, message, is_disrupted=False, grace_seconds=_IMMEDIATE_GRACE_SECONDS)
            evicted = True
    return evicted


def _beyond_limits(run: PodRun, now: float) -> str:
    limits = {each.name: limit for each in run.mains if (limit := _disk_limit(each.spec)) is not None}
    if not limits:
        return ""
    total = sum(parse_quantity(limit).value for limit in limits.values())
    if run.usage(now).disk > total:
        return f"Pod ephemeral local storage usage exceeds the total limit of containers {_bytes(total)}. "
    for each in run.mains:
        limit = limits.get(each.name)
        if limit is not None and each.usage(now).disk > parse_quantity(limit).value:
            return f'Container {each.name} exceeded its local ephemeral storage limit "{limit}". '
    return ""


def _disk_limit(container: Manifest) -> str | None:
    limits: Mapping[str, str] = (container.get("resources") or {}).get("limits") or {}
    return limits.get(EPHEMERAL_STORAGE)
