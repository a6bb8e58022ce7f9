"""Pods packed into nodes of a catalogue, without a scheduler: for tests of NodeRequest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from moorage import Handle, Nodes, Object, Offer, Pod, PodGroupInfo, Shape, default_registry, offers_of
from moorage.api.decode import convert
from moorage.api.pod_groups import PodGroup, key_of
from moorage.cluster.cache import Cache
from moorage.framework.runtime.framework import Framework
from moorage.optional_plugins.node_request.allowance import Allowance
from moorage.optional_plugins.node_request.arguments import NodeRequestArgs
from moorage.optional_plugins.node_request.demands import Demand
from moorage.optional_plugins.node_request.packing import Packed, Packing
from tests.builders import make_pod, make_profile

FILTERS = ("NodeAffinity", "TaintToleration", "NodeResourcesFit", "PodTopologySpread", "InterPodAffinity")


def shape(name: str, price: float = 1.0, cpu: str = "4", memory: str = "16Gi", **fields: Any) -> Shape:
    """A shape of a catalogue."""
    resources = {"cpu": cpu, "memory": memory, **fields.pop("resources", {})}
    return convert({"name": name, "pricePerHour": price, "resources": resources, **fields}, Shape)


def worker(name: str, cpu: str = "1", memory: str = "1Gi", **fields: Any) -> Pod:
    """A pod without a node."""
    return make_pod(name, uid=name, requests={"cpu": cpu, "memory": memory}, **fields)


def gang(name: str, minimum: int, topology: str = "") -> PodGroup:
    """A group of which some pods have to run at once, if wanted on nodes with one value of a label."""
    spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    if topology:
        spec["schedulingConstraints"] = {"topology": [{"key": topology}]}
    return convert({"metadata": {"name": name, "namespace": "default"}, "spec": spec}, PodGroup)


def alone(pod: Pod, *, is_local: bool = True) -> Demand:
    """The demand of a single pod."""
    return Demand(pod.uid, (pod,), is_local)


def together(group: PodGroup, pods: Iterable[Pod]) -> Demand:
    """The demand of a group."""
    some = tuple(pods)
    info = PodGroupInfo(key_of(group), group, some)
    return Demand(info.key, some, False, "", info, group.quorum)


class PackingScene:
    """A cluster, a catalogue, and nodes that are asked for."""

    def __init__(self, shapes: Sequence[Shape], *objects: Object, **args: Any) -> None:
        self.args = NodeRequestArgs(shapes=tuple(shapes), **args)
        self.cache = Cache(objects)
        handle = Handle(self.cache.objects, snapshot=self.cache.latest_snapshot)
        framework = Framework(make_profile(*FILTERS), default_registry(), handle)
        self.paper = framework.hypothetical_nodes()
        self.asked: list[tuple[Offer, Any]] = []

    def pack(self, demands: Iterable[Demand], refusal: Callable[[Offer], str] = lambda offer: "") -> Packed:
        nodes = Nodes(self.cache.snapshot())
        allowance = Allowance(self.args, nodes, self.asked)
        packing = Packing(
            self.paper, nodes, offers_of(self.args.shapes), self.args.choice, allowance, refusal
        )
        for _ in packing.run(demands):
            pass
        self.asked += packing.packed.new
        return packing.packed

    def names(self, pods: Iterable[Pod]) -> list[str]:
        """The nodes that are asked for because of some single pods."""
        return [new.node.name for new in self.pack([alone(pod) for pod in pods]).new]


def counted(names: Iterable[str]) -> Mapping[str, int]:
    """How many nodes of each shape, by the names of nodes such as `small-3`."""
    counts: dict[str, int] = {}
    for name in names:
        prefix = name.rpartition("-")[0]
        counts[prefix] = counts.get(prefix, 0) + 1
    return counts
