"""Extended resources that devices back.

A device class can back an extended resource: by naming it, and always
`deviceclass.resource.kubernetes.io/CLASS`. Where a node has none of the resource itself, a pod that requests
it gets devices: the scheduler makes a claim for the pod, with a request for each container and resource.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from moorage.api.base import ObjectMeta, OwnerReference
from moorage.api.devices import (
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from moorage.api.names import is_extended_resource
from moorage.api.node import Node
from moorage.api.pod import Container, ContainerExtendedResourceRequest, Pod
from moorage.api.quantity import NANO
from moorage.api.resource_requests import resource_amounts, spec_requests
from moorage.cluster.object_tables import ObjectTable
from moorage.cluster.table_reader import TableReader

CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"
CLAIM_ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
NOT_STORED = "<extended-resources>"
"""The name of a pod's claim before it is stored; no stored claim can have it."""

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def can_be_backed(resource: str) -> bool:
    """Whether a resource is of a kind that devices can back."""
    return is_extended_resource(resource) or resource.startswith(CLASS_PREFIX)


def backing_class(resource: str, classes: ObjectTable[DeviceClass]) -> DeviceClass | None:
    """The device class that backs a resource: of several the newest, then the first by name."""
    if not can_be_backed(resource):
        return None
    if resource.startswith(CLASS_PREFIX):
        return classes.get("", resource.removeprefix(CLASS_PREFIX))
    return _by_resource(classes).get(resource)


_CLASSES: WeakKeyDictionary[ObjectTable[DeviceClass], tuple[int, dict[str, DeviceClass]]] = (
    WeakKeyDictionary()
)
"""By table of classes: its version, and the class that backs each resource."""


def _by_resource(classes: ObjectTable[DeviceClass]) -> dict[str, DeviceClass]:
    """The class that backs each resource that a class names; made once for each version of the table."""
    version, backing = _CLASSES.get(classes, (None, {}))
    if version != classes.version:
        backing = {}
        for each in sorted(classes, key=lambda one: one.name):
            resource = each.spec.extended_resource_name
            if resource and (resource not in backing or _created(backing[resource]) < _created(each)):
                backing[resource] = each
        _CLASSES[classes] = classes.version, backing
    return backing


def _created(device_class: DeviceClass) -> datetime:
    return device_class.metadata.creation_timestamp or _LONG_AGO


def wanted_resources(pod: Pod) -> dict[str, int]:
    """The amounts a pod requests of resources that devices could back."""
    amounts = resource_amounts(spec_requests(pod))
    return {name: amount for name, amount in amounts.items() if amount and can_be_backed(name)}


def wants_backed_resources(pod: Pod, classes: ObjectTable[DeviceClass]) -> bool:
    """Whether devices back some resource that a pod requests."""
    if not classes:
        return False
    return any(backing_class(name, classes) is not None for name in wanted_resources(pod))


class ExtendedResourceClaims:
    """The claims for extended resources by the uids of their pods, updated by the changes of their table."""

    def __init__(self) -> None:
        self._reader = TableReader()
        self._owners: dict[tuple[str, str], str] = {}
        """The uid of the pod that each claim was made for."""
        self._keys: dict[str, dict[tuple[str, str], None]] = {}
        """The claims that were made for each pod."""

    def existing(self, pod: Pod, claims: ObjectTable[ResourceClaim]) -> ResourceClaim | None:
        """The claim that an earlier attempt made for a pod's extended resources; of several the first."""
        self._refresh(claims)
        keys = [key for key in self._keys.get(pod.metadata.uid, ()) if key[0] == pod.namespace]
        if len(keys) > 1:
            keys = [(pod.namespace, name) for name in claims.within(pod.namespace)]
        for key in keys:
            claim = claims.get(*key)
            if claim is not None and _is_made_for(claim, pod):
                return claim
        return None

    def _refresh(self, claims: ObjectTable[ResourceClaim]) -> None:
        keys = self._reader.changed_keys(claims)
        if keys is None:
            self._owners.clear()
            self._keys.clear()
            keys = [(claim.namespace, claim.name) for claim in claims]
        for key in keys:
            self._drop(key)
            claim = claims.get(*key)
            if claim is not None and _is_extended(claim) and claim.controller is not None:
                uid = self._owners[key] = claim.controller.uid
                self._keys.setdefault(uid, {})[key] = None

    def _drop(self, key: tuple[str, str]) -> None:
        uid = self._owners.pop(key, None)
        if uid is not None:
            del self._keys[uid][key]
            if not self._keys[uid]:
                del self._keys[uid]


def _is_extended(claim: ResourceClaim) -> bool:
    return claim.metadata.annotations.get(CLAIM_ANNOTATION) == "true"


def _is_made_for(claim: ResourceClaim, pod: Pod) -> bool:
    owner = claim.controller
    return (
        _is_extended(claim) and owner is not None and (owner.name, owner.uid) == (pod.name, pod.metadata.uid)
    )


def new_claim(pod: Pod) -> ResourceClaim:
    """A claim for a pod's extended resources, not stored yet; each node gets its own requests."""
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.name, uid=pod.metadata.uid, controller=True)
    return ResourceClaim(
        api_version="resource.k8s.io/v1",
        kind="ResourceClaim",
        metadata=ObjectMeta(
            name=NOT_STORED,
            generate_name=f"{pod.name}-extended-resources-",
            namespace=pod.namespace,
            annotations={CLAIM_ANNOTATION: "true"},
            owner_references=(owner,),
        ),
    )


def to_store(claim: ResourceClaim) -> ResourceClaim:
    """The claim as it is sent to the API server, which gives it its name."""
    return replace(claim, metadata=replace(claim.metadata, name=""))


@dataclass(frozen=True, slots=True)
class NodeClaim:
    """A pod's claim on nodes that lack the same resources."""

    claim: ResourceClaim
    mappings: tuple[ContainerExtendedResourceRequest, ...]


def left_to_devices(wanted: Iterable[str], backed: AbstractSet[str], node: Node) -> frozenset[str] | None:
    """The resources that devices must provide on a node; None if one of them is not provided at all.

    backed: those that a class backs.
    """
    names = set()
    allocatable = node.status.allocatable
    for name in wanted:
        if name in backed and not allocatable.get(name):
            names.add(name)
        elif name not in allocatable:
            return None
    return frozenset(names)


def node_claim(
    pod: Pod, claim: ResourceClaim, resources: Iterable[str], classes: ObjectTable[DeviceClass]
) -> NodeClaim:
    """A pod's claim with requests for the resources that devices must provide."""
    requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    for resource in sorted(resources):
        device_class = backing_class(resource, classes)
        if device_class is not None:
            made = _Requests(pod, resource, device_class.name)
            requests += made.requests
            mappings += made.mappings
    requests.sort(key=lambda request: request.name)
    spec = ResourceClaimSpec(devices=DeviceClaim(requests=tuple(requests)))
    return NodeClaim(replace(claim, spec=spec), tuple(mappings))


class _Requests:
    """The device requests for one resource, and which container uses which.

    Containers that run for the pod's whole life have devices of their own. Init containers that end before
    use those of the containers that start after them, and share one more request among themselves for what
    the largest of them needs beyond that.
    """

    def __init__(self, pod: Pod, resource: str, class_name: str) -> None:
        self._resource = resource
        self._class_name = class_name
        self.requests: list[DeviceRequest] = []
        self.mappings: list[ContainerExtendedResourceRequest] = []
        containers = [*pod.spec.init_containers, *pod.spec.containers]
        inits = len(pod.spec.init_containers)
        lasting: list[DeviceRequest | None] = [None] * len(containers)
        passing = []
        for index, container in enumerate(containers):
            if index < inits and not container.restartable:
                passing.append((index, container))
            else:
                lasting[index] = self._request(index, container, self.mappings)
        self._add_passing(passing, lasting)
        self.requests += [request for request in lasting if request is not None]

    def _add_passing(self, passing: list[tuple[int, Container]], lasting: list[DeviceRequest | None]) -> None:
        used: list[ContainerExtendedResourceRequest] = []
        extra: list[DeviceRequest] = []
        for index, container in passing:
            reusable = [request for request in lasting[index:] if request is not None]
            request = self._request(index, container, used, reusable)
            if request is not None:
                extra.append(request)
        if extra:
            largest = max(extra, key=_count)
            replaced = {request.name for request in extra} - {largest.name}
            used = [replace(m, request_name=largest.name) if m.request_name in replaced else m for m in used]
            self.requests.append(largest)
        self.mappings += used

    def _request(
        self,
        index: int,
        container: Container,
        mappings: list[ContainerExtendedResourceRequest],
        reusable: Iterable[DeviceRequest] = (),
    ) -> DeviceRequest | None:
        """What a container needs beyond the requests it can use too; None if those are enough."""
        amounts = container.resources.requests
        amount = amounts.get(self._resource, 0)
        if not amount or amount % NANO:
            return None
        needed = amount // NANO

        def use(name: str) -> None:
            mappings.append(
                ContainerExtendedResourceRequest(
                    container_name=container.name, resource_name=self._resource, request_name=name
                )
            )

        for other in reusable:
            use(other.name)
            needed -= _count(other)
            if needed <= 0:
                return None
        name = f"container-{index}-request-{sorted(amounts).index(self._resource)}"
        use(name)
        return DeviceRequest(
            name=name, exactly=ExactDeviceRequest(device_class_name=self._class_name, count=needed)
        )


def _count(request: DeviceRequest) -> int:
    assert request.exactly is not None
    return request.exactly.count
