"""What must hold some time after the last fault: nothing lost or left over, caches equal the API server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from moorage.api.base import Object
from moorage.api.manifests import Manifest
from moorage.scheduler.scheduler import Scheduler
from moorage_cluster.chaos.monitor import devices_of
from moorage_cluster.chaos.room import priority_of, would_fit
from moorage_cluster.chaos.storage import Storage, claim_names, node_of_volume
from moorage_cluster.chaos.world import World, named

_GROUP: Final = "schedulingGroup"
_STARTED: Final = "PodGroupInitiallyScheduled"


def problems(world: World) -> Iterator[str]:
    """What is wrong now; empty if the run ends well."""
    yield from _bound_once(world)
    yield from _pending(world)
    yield from _groups(world)
    yield from _volumes(world)
    scheduler = _leader(world)
    if scheduler is None:
        yield "no scheduler leads"
        return
    yield from _invalid("cache", scheduler.cache.validate)
    yield from _invalid("queue", scheduler.queue.validate)
    yield from _left_over(scheduler)
    yield from _differences(world, scheduler)


def _leader(world: World) -> Scheduler | None:
    """The scheduler at work."""
    if len(world.candidates) == 1:
        return world.candidates[0].scheduler
    leases = [each for name, each in named(world.objects("Lease")) if name == "kube-scheduler"]
    holder = leases[0]["spec"].get("holderIdentity") if leases else None
    return next((each.scheduler for each in world.candidates if each.identity == holder), None)


def _bound_once(world: World) -> Iterator[str]:
    for uid, times in world.monitor.bound.items():
        if times > 1:
            yield f"pod with uid {uid} was bound {times} times"


# -- pods without a node


def _pending(world: World) -> Iterator[str]:
    """Pods that could be on a node and are not."""
    pods, nodes = world.objects("Pod"), world.objects("Node")
    claims = dict(named(world.objects("ResourceClaim")))
    slices = world.objects("ResourceSlice")
    has_class = bool(world.objects("DeviceClass"))
    storage = Storage.of(world)
    waiting = {name for name, group in named(_pod_groups(world)) if not _has_started(group)}
    for pod in pods:
        spec = pod["spec"]
        if not spec.get("nodeName") and spec.get(_GROUP, {}).get("podGroupName") not in waiting:
            others = [each for each in pods if priority_of(each) >= priority_of(pod)]
            for name, node in named(nodes):
                has_devices = _has_devices(pod, name, claims, slices, has_class)
                if would_fit(pod, node, others) and has_devices and storage.has_volumes(pod, name):
                    yield f"pod {pod['metadata']['name']} is pending, and node {name} has room for it"
                    break


def _has_devices(
    pod: Manifest, node: str, claims: dict[str, Manifest], slices: list[Manifest], has_class: bool
) -> bool:
    """Whether a node has a device for each claim of a pod: a new one, or the one that is allocated."""
    wanted = [each["resourceClaimName"] for each in pod["spec"].get("resourceClaims") or ()]
    if wanted and not has_class:
        return False
    taken = {device: name for name, claim in claims.items() for device in devices_of(claim)}
    free = 0
    for each in slices:
        if each["spec"].get("nodeName") == node:
            driver, pool = each["spec"]["driver"], each["spec"]["pool"]["name"]
            here = [(driver, pool, device["name"]) for device in each["spec"]["devices"]]
            free += sum(1 for device in here if device not in taken)
            wanted = [name for name in wanted if name not in {taken.get(device) for device in here}]
    if any(name not in claims or devices_of(claims[name]) for name in wanted):
        return False  # The claim is not there, or allocated on another node.
    return len(wanted) <= free


# -- groups


def _pod_groups(world: World) -> list[Manifest]:
    return world.objects("PodGroup") if world.script.has_groups else []


def _has_started(group: Manifest) -> bool:
    """Whether all members that are needed had nodes at one time; what fails to bind is then tried alone."""
    conditions = (group.get("status") or {}).get("conditions") or ()
    return any(each["type"] == _STARTED and each["status"] == "True" for each in conditions)


def _groups(world: World) -> Iterator[str]:
    """Gangs of which fewer members than needed have nodes."""
    pods = world.objects("Pod")
    for name, group in named(_pod_groups(world)):
        gang = group["spec"]["schedulingPolicy"].get("gang")
        members = [each for each in pods if (each["spec"].get(_GROUP) or {}).get("podGroupName") == name]
        bound = sum(1 for each in members if each["spec"].get("nodeName"))
        # Members that users have deleted are not replaced: a gang may be left with fewer.
        if gang and 0 < bound < gang["minCount"] <= len(members) and not _has_started(group):
            yield f"{bound} of {gang['minCount']} members of gang {name} have nodes"


# -- volumes


def _volumes(world: World) -> Iterator[str]:
    """Pods on nodes that do not reach their volumes; claims with several volumes."""
    storage = Storage.of(world)
    for pod in world.objects("Pod"):
        node = pod["spec"].get("nodeName")
        for claim in claim_names(pod) if node else ():
            found = [node_of_volume(each) for each in storage.volumes_of(claim)]
            if found != [node]:
                name = pod["metadata"]["name"]
                yield f"pod {name} is on node {node}, and the volumes of its claim {claim} on {found}"


# -- the scheduler and the API server


def _invalid(what: str, validate: Callable[[], None]) -> Iterator[str]:
    try:
        validate()
    except AssertionError as error:
        yield f"the {what} is not valid: {error}"


def _left_over(scheduler: Scheduler) -> Iterator[str]:
    if scheduler.cache.assumed_count:
        yield f"{scheduler.cache.assumed_count} pods are still assumed"
    if scheduler.background_task_count:
        yield f"{scheduler.background_task_count} bindings or evictions are still under way"


def _differences(world: World, scheduler: Scheduler) -> Iterator[str]:
    """How cache, queue and informers differ from the API server."""
    pods = {each["metadata"]["uid"]: each for each in world.objects("Pod")}
    bound = {uid: _version(each) for uid, each in pods.items() if each["spec"].get("nodeName")}
    cached = {each.uid: _version_of(each) for each in scheduler.cache.pods()}
    if cached != bound:
        yield f"the cache has other pods on nodes than the API server: {_difference(cached, bound)}"
    nodes = {name: _version(each) for name, each in named(world.objects("Node"))}
    known = {each.name: _version_of(each) for each in scheduler.cache.nodes()}
    if known != nodes:
        yield f"the cache has other nodes than the API server: {_difference(known, nodes)}"
    queued = {each.uid for each in scheduler.queue}
    if not world.script.has_groups and queued != pods.keys() - bound.keys():
        yield f"the queue has other pods than those without a node: {queued ^ (pods.keys() - bound.keys())}"


def _difference(one: dict[str, str], other: dict[str, str]) -> str:
    return str(sorted({*one.items()} ^ {*other.items()})[:4])


def _version(obj: Manifest) -> str:
    return str(obj["metadata"]["resourceVersion"])


def _version_of(obj: Object) -> str:
    return obj.metadata.resource_version
