"""Devices, claims and classes from short arguments, and a small cluster to try them in."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from moorage.api.base import Object
from moorage.api.devices import DeviceClass, ResourceClaim, ResourceSlice
from moorage.api.pod import Pod
from moorage.clock import Clock, VirtualClock
from moorage.cluster.cache import Cache
from moorage.config.args import DynamicResourcesArgs
from moorage.emulation import kubernetes_version
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.framework.interface.effects import Effects
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import Code, Status
from moorage.plugins.dynamic_resources.plugin import DynamicResources
from moorage.plugins.dynamic_resources.structured.device_rules import NEWER_RULES, OLDER_RULES, DeviceRules
from moorage.sim.cache_effects import CacheEffects
from tests.builders import Manifest, make, make_pod

DRIVER = "gpu.example.com"


def attribute(value: bool | int | str) -> Manifest:
    """An attribute; texts that start with `v:` are versions."""
    if isinstance(value, bool):
        return {"bool": value}
    if isinstance(value, int):
        return {"int": value}
    return {"version": value[2:]} if value.startswith("v:") else {"string": value}


def device(
    name: str,
    attributes: Mapping[str, Any] | None = None,
    capacity: Mapping[str, Any] | None = None,
    consumes: Mapping[str, str] | None = None,
    **fields: Any,
) -> Manifest:
    """A device; `capacity` by name, as an amount or in full; `consumes` from the counter set `card`."""
    made: Manifest = {"name": name, **fields}
    if attributes:
        made["attributes"] = {key: attribute(value) for key, value in attributes.items()}
    if capacity:
        made["capacity"] = {
            key: value if isinstance(value, dict) else {"value": value} for key, value in capacity.items()
        }
    if consumes:
        counters = {key: {"value": value} for key, value in consumes.items()}
        made["consumesCounters"] = [{"counterSet": "card", "counters": counters}]
    return made


def pool_slice(
    name: str,
    *devices: Manifest | str,
    node: str | None = "n1",
    driver: str = DRIVER,
    pool: str | None = None,
    generation: int = 1,
    count: int = 1,
    counters: Mapping[str, str] | None = None,
    **fields: Any,
) -> ResourceSlice:
    """A slice; its pool is named after it unless told otherwise."""
    spec: Manifest = {
        "driver": driver,
        "pool": {"name": pool or name, "generation": generation, "resourceSliceCount": count},
        "devices": [device(each) if isinstance(each, str) else each for each in devices],
        **fields,
    }
    if node is not None:
        spec["nodeName"] = node
    if counters is not None:
        amounts = {key: {"value": value} for key, value in counters.items()}
        spec["sharedCounters"] = [{"name": "card", "counters": amounts}]
    made = make({"apiVersion": "v1", "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec})
    assert isinstance(made, ResourceSlice)
    return made


def device_class(name: str = "gpu", expression: str | None = None, **fields: Any) -> DeviceClass:
    """A class; without an expression it means all devices of the driver."""
    selectors = [{"cel": {"expression": expression or f'device.driver == "{DRIVER}"'}}]
    spec = {"selectors": selectors, **fields}
    made = make({"apiVersion": "v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec})
    assert isinstance(made, DeviceClass)
    return made


def asking(
    count: int | None = 1, expression: str | None = None, class_name: str = "gpu", **fields: Any
) -> Manifest:
    """What a request asks for: a count of devices, or (None) all of them."""
    made: Manifest = {"deviceClassName": class_name, **fields}
    if count is None:
        made["allocationMode"] = "All"
    else:
        made |= {"allocationMode": "ExactCount", "count": count}
    if expression is not None:
        made["selectors"] = [{"cel": {"expression": expression}}]
    return made


def request(name: str, *alternatives: Manifest) -> Manifest:
    """A request; with several alternatives, which are called a0, a1, ..."""
    if len(alternatives) == 1:
        return {"name": name, "exactly": alternatives[0]}
    return {"name": name, "firstAvailable": [{"name": f"a{i}", **a} for i, a in enumerate(alternatives)]}


def claim(
    name: str,
    *requests: Manifest,
    constraints: Iterable[Manifest] = (),
    status: Manifest | None = None,
    namespace: str = "default",
    metadata: Manifest | None = None,
    **fields: Any,
) -> ResourceClaim:
    """A claim."""
    made = make(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": namespace, **(metadata or {})},
            "spec": {"devices": {"requests": list(requests), "constraints": list(constraints), **fields}},
            "status": status or {},
        }
    )
    assert isinstance(made, ResourceClaim)
    return made


def allocated(*devices: str, node: str | None = "n1", users: Iterable[str] = (), **fields: Any) -> Manifest:
    """The status of a claim that has devices, each as `pool/device`."""
    results = []
    for each in devices:
        pool, _, name = each.partition("/")
        results.append({"request": "r", "driver": DRIVER, "pool": pool, "device": name, **fields})
    given: Manifest = {"devices": {"results": results}}
    if node is not None:
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        given["nodeSelector"] = {"nodeSelectorTerms": [term]}
    reserved = [{"resource": "pods", "name": user, "uid": f"default/{user}"} for user in users]
    return {"allocation": given, "reservedFor": reserved}


def pod_claiming(name: str, *claims: str, **fields: Any) -> Pod:
    """A pod that uses claims by name."""
    references = [{"name": each, "resourceClaimName": each} for each in claims]
    return make_pod(name, resource_claims=references, **fields)


class Scene:
    """A cluster and the plugin in it, at the level of one pod's cycle."""

    def __init__(
        self,
        *objects: Object,
        clock: Clock | None = None,
        effects: Effects | None = None,
        args: DynamicResourcesArgs | None = None,
        rules: DeviceRules = OLDER_RULES,
    ) -> None:
        self.cache = Cache(objects)
        self.clock = clock or VirtualClock()
        self.effects = effects or CacheEffects(self.cache)
        version = kubernetes_version.V1_37 if rules is NEWER_RULES else kubernetes_version.V1_36
        self.handle = Handle(self.cache.objects, self.effects, self.clock, version=version)
        self.plugin = DynamicResources((args or DynamicResourcesArgs()).defaulted(), self.handle)
        self.cycle = CycleState()

    @property
    def nodes(self) -> Nodes:
        return Nodes(self.cache.snapshot())

    def pre_filter(self, pod: Pod) -> Status | None:
        """Begin a cycle."""
        self.cycle = CycleState()
        return self.plugin.pre_filter(self.cycle, pod, self.nodes)

    def filter_nodes(self, pod: Pod) -> dict[str, str]:
        """What is said of each node; empty texts for nodes that pass."""
        status = self.pre_filter(pod)
        names = self.nodes.names
        if status is not None:
            text = "" if status.code is Code.SKIP else status.message
            return dict.fromkeys(names, text)
        selector_result = self.plugin.filter(self.cycle, pod, self.nodes)
        codes = [0] * len(names) if selector_result.codes is None else selector_result.codes.tolist()
        texts = ["", *(reason.texts[0] for reason in selector_result.reasons)]
        return {name: texts[code] for name, code in zip(names, codes, strict=True)}

    def feasible(self, pod: Pod) -> list[str]:
        """The nodes that pass."""
        return [name for name, text in self.filter_nodes(pod).items() if not text]

    def reserve(self, pod: Pod, node: str = "n1") -> Status | None:
        """Judge, then keep what the node would give."""
        assert node in self.feasible(pod), self.filter_nodes(pod)
        return self.plugin.reserve(self.cycle, pod, node)

    def bind(self, pod: Pod, node: str = "n1") -> Status | None:
        """Judge, reserve and write."""
        assert self.reserve(pod, node) is None
        return asyncio.run(self._pre_bind(pod, node))

    async def _pre_bind(self, pod: Pod, node: str) -> Status | None:
        return await self.plugin.pre_bind(self.cycle, pod, node)

    def claim(self, name: str, namespace: str = "default") -> ResourceClaim:
        """A claim as it is now."""
        found = self.cache.objects.of(ResourceClaim).get(namespace, name)
        assert found is not None, name
        return found

    def devices(self, name: str) -> list[str]:
        """The devices that a claim holds, as `pool/device`."""
        given = self.claim(name).status.allocation
        return [] if given is None else [f"{r.pool}/{r.device}" for r in given.devices.results]

    def post_filter(self, pod: Pod) -> Any:
        """Ask for room after a cycle in which no node passed."""
        return self.plugin.post_filter(self.cycle, pod, self.nodes, Diagnosis(len(self.nodes)))
