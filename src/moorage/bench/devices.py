"""Devices of workloads: what a driver publishes, and claims that are allocated without pods."""

from __future__ import annotations

from fnmatch import fnmatchcase
from random import Random
from typing import Final, TypeVar

from msgspec.structs import replace

from moorage.api.base import Object
from moorage.api.decode import convert
from moorage.api.devices import AllocationResult, DeviceClass, ResourceClaim, ResourceSlice
from moorage.api.manifests import Manifest
from moorage.api.node import Node
from moorage.bench.ops import CreateResourceDriver
from moorage.bench.target import WorkloadFailed
from moorage.cel.budget import WorkBudget, WorkLimitError
from moorage.client.client import Client
from moorage.client.kinds import DEVICE_CLASS, NODE, RESOURCE_CLAIM, RESOURCE_SLICE, Kind
from moorage.cluster.object_tables import ObjectTable
from moorage.plugins.dynamic_resources.structured.allocated_devices import AllocatedDevices
from moorage.plugins.dynamic_resources.structured.allocator import Allocator, allocation
from moorage.plugins.dynamic_resources.structured.claim_requests import AllocationError, claim_request
from moorage.plugins.dynamic_resources.structured.inventory import Inventory
from moorage.plugins.dynamic_resources.structured.search_results import SearchResults
from moorage.scheduler.encoding import plain

T = TypeVar("T", bound=Object)

_SEED: Final = 1


async def slices_of_driver(client: Client, op: CreateResourceDriver) -> list[Manifest]:
    """The slice of a driver's devices for each node that it has devices on."""
    names = [str(each["metadata"]["name"]) for each in await client.list(NODE)]
    return [_slice(op, name) for name in names if fnmatchcase(name, op.nodes)]


def _slice(op: CreateResourceDriver, node_name: str) -> Manifest:
    return {
        "apiVersion": RESOURCE_SLICE.api_version,
        "kind": RESOURCE_SLICE.name,
        "metadata": {"name": node_name},
        "spec": {
            "driver": op.driver_name,
            "nodeName": node_name,
            "pool": {"name": node_name, "generation": 0, "resourceSliceCount": 1},
            "devices": [_device(number) for number in range(op.max_claims_per_node)],
        },
    }


def _device(number: int) -> Manifest:
    return {
        "name": f"instance-{number}",
        "attributes": {
            "model": {"string": "A100"},
            "family": {"string": "GPU"},
            "driverVersion": {"version": "1.2.3"},
            "dra.example.com/numa": {"int": number},
        },
        "capacity": {"memory": {"value": "1Gi"}},
    }


async def allocate_claims(client: Client, namespace: str) -> None:
    """Allocate all claims of a namespace (of all if empty), each on a random node that has the devices."""
    allocations = _Allocations(
        await _objects(client, NODE, Node),
        _table(await _objects(client, RESOURCE_SLICE, ResourceSlice)),
        _table(await _objects(client, DEVICE_CLASS, DeviceClass)),
        _table(await _objects(client, RESOURCE_CLAIM, ResourceClaim)),
    )
    for claim in list(allocations.claims):
        if claim.status.allocation is None and namespace in ("", claim.namespace):
            status = {"allocation": plain(allocations.find(claim))}
            await client.patch(
                RESOURCE_CLAIM, claim.namespace, claim.name, {"status": status}, "merge", "status"
            )


async def _objects(client: Client, kind: Kind, type: type[T]) -> list[T]:
    return [convert(each, type) for each in await client.list(kind)]


def _table(objects: list[T]) -> ObjectTable[T]:
    table: ObjectTable[T] = ObjectTable()
    for each in objects:
        table.put(each)
    return table


class _Allocations:
    """Allocations of claims, one after the other."""

    def __init__(
        self,
        nodes: list[Node],
        slices: ObjectTable[ResourceSlice],
        classes: ObjectTable[DeviceClass],
        claims: ObjectTable[ResourceClaim],
    ) -> None:
        self.claims = claims
        self._nodes = nodes
        self._classes = classes
        self._inventory = Inventory()
        self._inventory.refresh(slices)
        self._allocated = AllocatedDevices()
        self._allocated.refresh(claims, {})
        self._results = SearchResults()
        self._random = Random(_SEED)
        self._candidates: dict[str, list[Node]] = {}
        """The nodes that may have devices left for claims with a spec; devices are not given back."""

    def find(self, claim: ResourceClaim) -> AllocationResult:
        """The devices of a claim, allocated from now on; WorkloadFailed if there are none."""
        candidates = self._candidates.setdefault(repr(claim.spec), list(self._nodes))
        while candidates:
            place = self._random.randrange(len(candidates))
            found = self._on_node(claim, candidates[place])
            if found is not None:
                self.claims.put(replace(claim, status=replace(claim.status, allocation=found)))
                self._allocated.refresh(self.claims, {})
                return found
            candidates[place] = candidates[-1]
            candidates.pop()
        raise WorkloadFailed(f"no node has the devices of claim {claim.key}")

    def _on_node(self, claim: ResourceClaim, node: Node) -> AllocationResult | None:
        work = WorkBudget()
        allocator = Allocator(self._inventory, self._allocated, work, self._results)
        try:
            requests = (claim_request(claim, self._classes, work),)
            picks = allocator.find(node, requests).picks
        except (AllocationError, WorkLimitError) as error:
            raise WorkloadFailed(str(error)) from None
        if picks is None:
            return None
        return allocation(claim, requests[0], picks[0], self._inventory.seen_from(node), node.name)
