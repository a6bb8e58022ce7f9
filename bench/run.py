"""Measures the engine: `make bench`. Workloads are in workloads.yaml; results are medians, on one core."""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from rich.console import Console
from rich.table import Table

from moorage.api.decode import convert
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.cluster.cache import Cache
from moorage.config.load import default_config
from moorage.engine.engine import Engine
from moorage.framework.cycle import CycleState
from moorage.framework.diagnosis import Diagnosis
from moorage.framework.nodes import Nodes
from moorage.framework.profiles import Profiles
from moorage.framework.runtime import Framework
from moorage.plugins import default_registry
from moorage.plugins.default_preemption import DefaultPreemption

WARM_UP = 100
Row = dict[str, Any]


def make_node(index: int, kind: Row, generation: int = 0) -> Node:
    labels = {
        "kubernetes.io/hostname": f"node-{index}",
        "topology.kubernetes.io/zone": f"zone-{index % kind['zones']}",
        "generation": str(generation),
    }
    return convert(
        {
            "kind": "Node",
            "metadata": {"name": f"node-{index}", "labels": labels},
            "status": {"allocatable": {key: kind[key] for key in ("cpu", "memory", "pods")}},
        },
        Node,
    )


def make_pod(index: int, kind: Row, node: str = "", priority: int = 0) -> Pod:
    labels = {"app": "bench"}
    affinity: Row = {}
    if "zone" in kind:
        expression = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [kind["zone"]]}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    if "apart" in kind:
        term = {"topologyKey": kind["apart"], "labelSelector": {"matchLabels": labels}}
        affinity["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    spread = [
        {
            "maxSkew": 1,
            "topologyKey": kind.get("spread", ""),
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": labels},
        }
    ]
    return convert(
        {
            "kind": "Pod",
            "metadata": {
                "name": f"pod-{index}",
                "namespace": "default",
                "uid": f"pod-{index}",
                "labels": labels,
            },
            "spec": {
                "nodeName": node,
                "priority": priority,
                "affinity": affinity,
                "topologySpreadConstraints": spread if "spread" in kind else [],
                "containers": [
                    {
                        "name": "c",
                        "image": "pause:3",
                        "resources": {"requests": {k: kind[k] for k in ("cpu", "memory")}},
                    }
                ],
            },
        },
        Pod,
    )


def default_framework() -> Framework:
    return Profiles(default_config(), default_registry())["default-scheduler"]


def timed(action: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = action()
    return result, time.perf_counter() - start


def decide(workload: Row) -> Iterator[Row]:
    cache = Cache(make_node(i, workload["node"]) for i in range(workload["nodes"]))
    pods = [make_pod(i, workload["pod"]) for i in range(workload["pods"])]
    framework, engine = default_framework(), Engine(seed=1)
    cache.snapshot()
    times: dict[str, list[float]] = {"decide": [], "snapshot and assume": []}
    start = time.perf_counter()
    for pod in pods:
        snapshot, refreshing = timed(cache.snapshot)
        decision, deciding = timed(lambda pod=pod, snapshot=snapshot: engine.decide(framework, pod, snapshot))
        assert decision.node is not None, decision.message
        _, assuming = timed(lambda pod=pod, node=decision.node: cache.assume_pod(pod, node))
        times["decide"].append(deciding)
        times["snapshot and assume"].append(refreshing + assuming)
    elapsed = time.perf_counter() - start
    for what, measured in times.items():
        yield {"what": what, **summary(measured[WARM_UP:])}
    yield {"what": "pods/s", "median": None, "rate": len(pods) / elapsed}


def update(workload: Row) -> Iterator[Row]:
    cache = Cache(make_node(i, workload["node"]) for i in range(workload["nodes"]))
    cache.snapshot().label("generation")
    changed = [make_node(i % workload["nodes"], workload["node"], i + 1) for i in range(workload["updates"])]

    def one(node: Node) -> None:
        cache.put_node(node)
        cache.snapshot()

    yield {
        "what": "update and snapshot",
        **summary([timed(lambda node=node: one(node))[1] for node in changed][WARM_UP:]),
    }


def preemption(workload: Row) -> Iterator[Row]:
    per_node = workload["pods_per_node"]
    cache = Cache(make_node(i, workload["node"]) for i in range(workload["nodes"]))
    for index in range(workload["nodes"] * per_node):
        cache.put_pod(make_pod(index, workload["victim"], f"node-{index // per_node}"))
    framework = default_framework()
    plugin = framework.plugins["DefaultPreemption"]
    assert isinstance(plugin, DefaultPreemption)
    boss = make_pod(-1, workload["pod"], priority=1000)
    everything = Nodes(cache.snapshot())
    cycle = CycleState()
    assert framework.pre_filter(cycle, boss, everything, Diagnosis(len(everything))) is not None

    def one() -> int:
        _, gone = plugin.dry_run(cycle, boss, everything, Diagnosis(len(everything)))
        return int(np.count_nonzero(gone))

    assert one() == 2 * workload["nodes"]
    yield {"what": "all candidates", **summary([timed(one)[1] for _ in range(workload["rounds"])])}


def summary(seconds: list[float]) -> Row:
    ordered = sorted(seconds)
    return {
        "median": statistics.median(ordered) * 1e6,
        "p99": ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))] * 1e6,
    }


KINDS: dict[str, Callable[[Row], Iterator[Row]]] = {
    "decide": decide,
    "update": update,
    "preemption": preemption,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="only workloads whose name contains this")
    parser.add_argument("--json", type=Path, help="write the results to this file, too")
    options = parser.parse_args()
    workloads = yaml.safe_load((Path(__file__).parent / "workloads.yaml").read_text())["workloads"]
    console = Console()
    table = Table(
        "workload",
        "nodes",
        "measured",
        "median",
        "p99",
        title=f"Python {platform.python_version()}, NumPy {np.__version__}",
    )
    rows = []
    for workload in workloads:
        if options.only and options.only not in workload["name"]:
            continue
        for row in KINDS[workload["kind"]](workload):
            rows.append({"name": workload["name"], "nodes": workload["nodes"], **row})
            shown = f"{row['rate']:,.0f}/s" if "rate" in row else f"{row['median']:,.0f} µs"
            p99 = f"{row['p99']:,.0f} µs" if "p99" in row else ""
            table.add_row(workload["name"], f"{workload['nodes']:,}", row["what"], shown, p99)
    console.print(table)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
