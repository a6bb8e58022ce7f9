"""Measures first decisions: pods of templates that the scheduler has not seen, so that nothing is remembered.

    python -m bench.cold [--nodes 5000] [--templates 600] [--output cold.json]

CPU time of a decision, without queue and binding, of one pod of each template (cold) and of a second one
(warm). Every pod is put on its node, so that the cluster changes between decisions as it does in production.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import quantiles
from typing import Any

import msgspec
from msgspec.structs import replace
from rich.console import Console
from rich.table import Table

from moorage.api.decode import convert
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim
from moorage.cli.garbage_collection import collect_in_passing
from moorage.cluster.cache import Cache
from moorage.config.load import default_config
from moorage.engine.engine import Engine
from moorage.framework.runtime.profiles import Profiles
from moorage.plugins import default_registry

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
ZONES = 3
TAINTED_SHARE = 50
"""One node of this many has a taint."""


class Times(msgspec.Struct):
    """Microseconds of CPU of the decisions about one variant's pods."""

    variant: str
    nodes: int
    templates: int
    cold_median: float
    cold_p90: float
    warm_median: float


def make_node(index: int) -> Node:
    labels = {HOST: f"node-{index}", ZONE: f"zone-{index % ZONES}", "disk": ("ssd", "hdd")[index % 2]}
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    return convert(
        {
            "kind": "Node",
            "metadata": {"name": f"node-{index}", "labels": labels},
            "spec": {} if index % TAINTED_SHARE else {"taints": [taint]},
            "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110"}},
        },
        Node,
    )


def selects(app: str) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"app": app}}}


def spread(template: int, action: str = "ScheduleAnyway") -> dict[str, Any]:
    constraint = {"maxSkew": 3, "topologyKey": ZONE, "whenUnsatisfiable": action}
    return {"topologySpreadConstraints": [{**constraint, **selects(f"app-{template}")}]}


def pod_affinity(template: int) -> dict[str, Any]:
    term = {"weight": 10, "podAffinityTerm": {"topologyKey": ZONE, **selects(f"app-{template // 2}")}}
    return {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}}


def pod_anti_affinity(template: int) -> dict[str, Any]:
    term = {"topologyKey": HOST, **selects(f"app-{template}")}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def node_affinity(template: int) -> dict[str, Any]:
    asks = {"key": "disk", "operator": "In", "values": ["ssd", f"disk-{template}"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [asks]}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def everything(template: int) -> dict[str, Any]:
    affinity = {**pod_affinity(template)["affinity"], **node_affinity(template)["affinity"]}
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": f"claim-{template}"}}
    return {**spread(template), "affinity": affinity, "volumes": [claim]}


VARIANTS: dict[str, Callable[[int], dict[str, Any]]] = {
    "plain": lambda template: {},
    "node affinity": node_affinity,
    "spread constraint": spread,
    "required spread constraint": partial(spread, action="DoNotSchedule"),
    "pod affinity": pod_affinity,
    "pod anti-affinity": pod_anti_affinity,
    "all, with a claim": everything,
}


def make_pod(template: int, number: int, more: dict[str, Any]) -> Pod:
    requests = {"cpu": f"{20 + template}m", "memory": f"{64 + 2 * template}Mi"}
    container = {
        "name": "main",
        "image": f"registry.example/app-{template}:1",
        "resources": {"requests": requests},
    }
    name = f"app-{template}-{number}"
    labels = {"app": f"app-{template}"}
    return convert(
        {
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "uid": name, "labels": labels},
            "spec": {"schedulerName": "default-scheduler", "containers": [container], **more},
        },
        Pod,
    )


def bound_claims(templates: int) -> Iterator[PersistentVolume | PersistentVolumeClaim]:
    """A claim for each template, bound to a volume that all nodes reach."""
    for index in range(templates):
        capacity = {"storage": "1Gi"}
        yield convert(
            {
                "kind": "PersistentVolume",
                "metadata": {"name": f"volume-{index}"},
                "spec": {
                    "capacity": capacity,
                    "accessModes": ["ReadWriteMany"],
                    "claimRef": {"namespace": "default", "name": f"claim-{index}", "uid": f"claim-{index}"},
                    "csi": {"driver": "csi.example", "volumeHandle": f"volume-{index}"},
                },
                "status": {"phase": "Bound"},
            },
            PersistentVolume,
        )
        yield convert(
            {
                "kind": "PersistentVolumeClaim",
                "metadata": {
                    "namespace": "default",
                    "name": f"claim-{index}",
                    "uid": f"claim-{index}",
                    "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
                },
                "spec": {
                    "volumeName": f"volume-{index}",
                    "accessModes": ["ReadWriteMany"],
                    "resources": {"requests": capacity},
                },
                "status": {"phase": "Bound", "capacity": capacity},
            },
            PersistentVolumeClaim,
        )


def measure(variant: str, nodes: int, templates: int) -> Times:
    """Decide about two pods of each template."""
    cache = Cache(make_node(index) for index in range(nodes))
    for each in bound_claims(templates):
        cache.put(each)
    framework, engine = Profiles(default_config(), default_registry())["default-scheduler"], Engine(seed=1)

    def decide(template: int, number: int) -> float:
        pod, snapshot = make_pod(template, number, VARIANTS[variant](template)), cache.snapshot()
        begun = time.process_time_ns()
        decision = engine.decide(framework, pod, snapshot)
        took = time.process_time_ns() - begun
        assert decision.node is not None, decision.message
        cache.put_pod(replace(pod, spec=replace(pod.spec, node_name=decision.node)))
        return took / 1000

    times = [[decide(template, number) for number in range(2)] for template in range(templates)]
    cold, warm = (quantiles(each, n=10) for each in zip(*times, strict=True))
    return Times(variant, nodes, templates, cold[4], cold[8], warm[4])


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU time of first decisions.")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--templates", type=int, default=600)
    parser.add_argument("--variant", action="append", choices=VARIANTS, help="only this; may be repeated")
    parser.add_argument("--output", type=Path, help="write the figures as JSON to this file, too")
    options = parser.parse_args()
    collect_in_passing()  # As in `moorage run`.
    found = [measure(each, options.nodes, options.templates) for each in options.variant or VARIANTS]
    table = Table("first decision of a template", "cold: median", "p90", "warm: median")
    for each in found:
        figures = (each.cold_median, each.cold_p90, each.warm_median)
        table.add_row(each.variant, *(f"{figure:,.0f} µs" for figure in figures))
    Console().print(table)
    if options.output is not None:
        options.output.write_bytes(msgspec.json.format(msgspec.json.encode(found)))


if __name__ == "__main__":
    main()
