"""What a pod counts with: its requests as the scheduler sees them, itself, and the devices that it claims.

Devices are counted as ResourceQuota counts them, by class. A claim that several pods share counts for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from moorage import Objects, Pod, PodInfo, ResourceClaim

PODS: Final = "pods"
"""The resource of which each pod requests one."""
DEVICES_OF_CLASS: Final = ".deviceclass.resource.k8s.io/devices"
"""The end of the names of resources that are devices of a class."""
_MAX_DEVICES: Final = 32
"""Number of devices that a request for all devices counts with: as many as a claim may get."""


def request_of(info: PodInfo, objects: Objects) -> dict[str, int]:
    """What a pod counts with, by resource."""
    return {**info.load.amounts, PODS: 1, **devices_of(info.pod, objects)}


def devices_of(pod: Pod, objects: Objects) -> dict[str, int]:
    """The devices that a pod claims, by resource."""
    devices: dict[str, int] = {}
    for claim in _claims_of(pod, objects) if pod.spec.resource_claims else ():
        for name, count in _devices_in(claim).items():
            devices[name] = devices.get(name, 0) + count
    return devices


def _claims_of(pod: Pod, objects: Objects) -> Iterator[ResourceClaim]:
    """The claims of a pod that exist: those that it names, and those that were made for it."""
    made = {each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses}
    table = objects.of(ResourceClaim)
    for reference in pod.spec.resource_claims:
        name = reference.resource_claim_name or made.get(reference.name)
        claim = table.get(pod.namespace, name) if name else None
        if claim is not None:
            yield claim


def _devices_in(claim: ResourceClaim) -> dict[str, int]:
    """The devices of a claim; of the alternatives of a request, the most of each class."""
    devices: dict[str, int] = {}
    for request in claim.spec.devices.requests:
        choices = request.first_available or (() if request.exactly is None else (request.exactly,))
        most: dict[str, int] = {}
        for choice in choices:
            name = choice.device_class_name + DEVICES_OF_CLASS
            count = _MAX_DEVICES if choice.allocation_mode == "All" else choice.count
            most[name] = max(count, most.get(name, 0))
        for name, count in most.items():
            devices[name] = devices.get(name, 0) + count
    return devices
