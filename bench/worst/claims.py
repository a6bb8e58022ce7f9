"""The claims that cause the most work, each as the requests and constraints of a ResourceClaim.

`CLAIMS` is plain data: put one in a ResourceClaim's `spec.devices` and have a pod use it. `slices` are the
devices they are measured with, eight to a node; `CLAIMS_ON_UNIQUE_DEVICES` are measured with devices that
each have a uuid, as real ones do. Run `.venv/bin/python -m bench.worst.claims` for the processor time of an
attempt at 5,000 nodes.
"""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import numpy as np

from moorage.api.decode import convert
from moorage.api.devices import DeviceClass, ResourceClaim, ResourceSlice
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.cli.garbage_collection import collect_in_passing
from moorage.clock import VirtualClock
from moorage.cluster.cache import Cache
from moorage.config.args import DynamicResourcesArgs
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import PluginError
from moorage.plugins.dynamic_resources.plugin import DynamicResources
from moorage.sim.cache_effects import CacheEffects

DRIVER = "gpu.example.com"
NODE_COUNT = 5000
DEVICES_PER_NODE = 8
ATTEMPTS = 3

Manifest = dict[str, Any]


def _asking(*expressions: str, count: int = 1) -> Manifest:
    selectors = [{"cel": {"expression": each}} for each in expressions]
    return {
        "deviceClassName": "gpu",
        "allocationMode": "ExactCount",
        "count": count,
        "selectors": selectors,
    }


def _exactly(*expressions: str, count: int = 1) -> list[Manifest]:
    return [{"name": "r", "exactly": _asking(*expressions, count=count)}]


def _doubled(times: int) -> str:
    """A string that is doubled repeatedly, with types that the checker cannot infer."""
    names = [f"a{index}" for index in range(times)]
    start = f'cel.bind(a0, device.attributes["{DRIVER}"].model, '
    binds = "".join(f"cel.bind({new}, {old} + {old}, " for old, new in pairwise(names))
    return f'{start}{binds}{names[-1]} != ""' + ")" * times


def _nested(times: int) -> str:
    """A list of two lists, each of which contains the same list twice, and so on; compared with itself."""
    names = [f"a{index}" for index in range(times)]
    binds = "".join(f"cel.bind({new}, [{old}, {old}], " for old, new in pairwise(names))
    return f"cel.bind(a0, [1], {binds}{names[-1]} == {names[-1]}" + ")" * times


_REQUESTS_32 = [{"name": f"r{index}", "exactly": _asking()} for index in range(32)]
_ALTERNATIVES_8 = [
    {
        "name": f"r{request}",
        "firstAvailable": [{"name": f"a{index}", **_asking()} for index in range(8)],
    }
    for request in range(9)
]

CLAIMS: dict[str, Manifest] = {
    "an ordinary claim": {
        "requests": _exactly(
            f'device.attributes["{DRIVER}"].model == "m" && '
            f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0'
        )
    },
    "a million numbers, each compared with all others": {
        "requests": _exactly("lists.range(1000000).distinct().size() > 0")
    },
    "a loop within a loop": {"requests": _exactly("lists.range(490).all(a, lists.range(500).all(b, true))")},
    "conversions in a loop": {"requests": _exactly('lists.range(60000).all(x, string(x) != "")')},
    "patterns in a loop": {
        "requests": _exactly('lists.range(10000).all(x, !"x".matches("(a{100}){9}|b{1000}"))')
    },
    "a text doubled 28 times": {"requests": _exactly(_doubled(28))},
    "a list doubled 28 times": {"requests": _exactly(_nested(28))},
    "600 words in each of 32 selectors": {
        "requests": _exactly(*[" && ".join(["true"] * 300) + f" && {index} > -1" for index in range(32)])
    },
    "32 requests on eight devices": {"requests": _REQUESTS_32},
    "nine requests of eight alternatives each": {"requests": _ALTERNATIVES_8},
    "seven devices that must all differ, of which two are equal": {
        "requests": [{"name": f"r{index}", "exactly": _asking()} for index in range(7)],
        "constraints": [{"distinctAttribute": f"{DRIVER}/half"}],
    },
    "eight devices that must be of one half": {
        "requests": _exactly(count=8),
        "constraints": [{"matchAttribute": f"{DRIVER}/half"}] * 32,
    },
}

_ORDINARY = f'device.attributes["{DRIVER}"].model == "m"'

CLAIMS_ON_UNIQUE_DEVICES: dict[str, Manifest] = {
    "unique devices: an ordinary claim": CLAIMS["an ordinary claim"],
    "unique devices: a model that is nowhere": {
        "requests": _exactly(f'device.attributes["{DRIVER}"].model == "a100"')
    },
    "unique devices: all eight of a node": {"requests": _exactly(_ORDINARY, count=8)},
    "unique devices: an attribute that was not read before": {
        "requests": _exactly(f'has(device.attributes["{DRIVER}"].half)')
    },
    "unique devices: two that differ in uuid": {
        "requests": _exactly(_ORDINARY, count=2),
        "constraints": [{"distinctAttribute": f"{DRIVER}/uuid"}],
    },
    "unique devices: a uuid that is nowhere": {
        "requests": _exactly(f'device.attributes["{DRIVER}"].uuid == "GPU-0"')
    },
    "unique devices: a uuid that starts with what none does": {
        "requests": _exactly(f'device.attributes["{DRIVER}"].uuid.startsWith("TPU")')
    },
    "unique devices: eight whose attributes are counted": {
        "requests": _exactly(f'device.attributes["{DRIVER}"].size() > 0', count=8)
    },
}


def slices(node: str, *, unique: bool = False) -> Manifest:
    """The devices of a node: two halves of four, each device with a number that is unique within the node."""
    devices = [
        {
            "name": f"gpu-{index}",
            "attributes": {
                "model": {"string": "m"},
                "half": {"int": index % 4},
                "index": {"int": index},
                **({"uuid": {"string": f"GPU-{node}-{index}"}} if unique else {}),
            },
            "capacity": {"memory": {"value": "80Gi"}},
        }
        for index in range(DEVICES_PER_NODE)
    ]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": pool, "nodeName": node, "devices": devices}
    return {"kind": "ResourceSlice", "metadata": {"name": node}, "spec": spec}


def device_class() -> Manifest:
    """The class of these devices."""
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    return {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {"selectors": [selector]}}


def _cluster(claims: dict[str, Manifest], *, unique: bool) -> Cache:
    cache = Cache([convert(device_class(), DeviceClass)])
    for name in (f"node-{index}" for index in range(NODE_COUNT)):
        cache.put(convert({"kind": "Node", "metadata": {"name": name}}, Node))
        cache.put(convert(slices(name, unique=unique), ResourceSlice))
    for number, devices in enumerate(claims.values()):
        metadata = {"name": f"c{number}", "namespace": "default", "uid": f"c{number}"}
        claim = {"kind": "ResourceClaim", "metadata": metadata, "spec": {"devices": devices}}
        cache.put(convert(claim, ResourceClaim))
    return cache


def _pod(number: int) -> Pod:
    uses = [{"name": "c", "resourceClaimName": f"c{number}"}]
    metadata = {"name": "p", "namespace": "default"}
    return convert({"kind": "Pod", "metadata": metadata, "spec": {"resourceClaims": uses}}, Pod)


def _attempt(plugin: DynamicResources, pod: Pod, nodes: Nodes) -> str:
    cycle = CycleState()
    try:
        plugin.pre_filter(cycle, pod, nodes)
        result = plugin.filter(cycle, pod, nodes)
    except PluginError as error:
        return str(error)
    return "fits" if result.codes is None else result.reasons[int(result.codes[0]) - 1].texts[0]


def _measure(claims: dict[str, Manifest], *, unique: bool) -> None:
    cache = _cluster(claims, unique=unique)
    handle = Handle(cache.objects, CacheEffects(cache), VirtualClock())
    plugin = DynamicResources(DynamicResourcesArgs().defaulted(), handle)
    nodes = Nodes(cache.snapshot())
    _attempt(plugin, _pod(0), nodes.at(np.arange(1)))  # reads the slices
    for number, name in enumerate(claims):
        print(name)
        for _ in range(ATTEMPTS):
            start = time.thread_time()
            end = _attempt(plugin, _pod(number), nodes)
            print(f"  {(time.thread_time() - start) * 1000:8.1f} ms  {end[:120]}")


def main() -> None:
    collect_in_passing()  # as `moorage run` does
    _measure(CLAIMS, unique=False)
    _measure(CLAIMS_ON_UNIQUE_DEVICES, unique=True)


if __name__ == "__main__":
    main()
