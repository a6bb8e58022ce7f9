"""Measures what workloads cannot isolate: a node update, and a dry run of preemption.

Run `.venv/bin/python bench/micro.py`; results are medians, on one core.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from moorage.api.decode import convert
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.cluster.cache import Cache
from moorage.config.load import default_config
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.framework.interface.nodes import Nodes
from moorage.framework.runtime.profiles import Profiles
from moorage.plugins import default_registry
from moorage.plugins.default_preemption.plugin import DefaultPreemption
from moorage.plugins.default_preemption.victims import PotentialVictims

WARM_UP = 100
UPDATES = 2000
PODS_PER_NODE = 4
ROUNDS = 10


def make_node(index: int, generation: int = 0) -> Node:
    labels = {"kubernetes.io/hostname": f"node-{index}", "generation": str(generation)}
    return convert(
        {
            "kind": "Node",
            "metadata": {"name": f"node-{index}", "labels": labels},
            "status": {"allocatable": {"cpu": "4", "memory": "32Gi", "pods": "110"}},
        },
        Node,
    )


def make_pod(index: int, cpu: str, node: str = "", priority: int = 0) -> Pod:
    requests = {"cpu": cpu, "memory": "500Mi"}
    container = {"name": "c", "image": "pause:3", "resources": {"requests": requests}}
    return convert(
        {
            "kind": "Pod",
            "metadata": {"name": f"pod-{index}", "namespace": "default", "uid": f"pod-{index}"},
            "spec": {"nodeName": node, "priority": priority, "containers": [container]},
        },
        Pod,
    )


def seconds(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def updates(node_count: int) -> list[float]:
    """A node is updated, and the snapshot refreshed."""
    cache = Cache(make_node(index) for index in range(node_count))
    cache.snapshot().label("generation")

    def update(node: Node) -> None:
        cache.put_node(node)
        cache.snapshot()

    changed = [make_node(number % node_count, number + 1) for number in range(UPDATES)]
    return [seconds(partial(update, node)) for node in changed][WARM_UP:]


def dry_runs(node_count: int) -> list[float]:
    """The victims on all nodes are computed for an unschedulable pod."""
    cache = Cache(make_node(index) for index in range(node_count))
    for index in range(node_count * PODS_PER_NODE):
        cache.put_pod(make_pod(index, "1", f"node-{index // PODS_PER_NODE}"))
    framework = Profiles(default_config(), default_registry())["default-scheduler"]
    plugin = framework.plugins["DefaultPreemption"]
    assert isinstance(plugin, DefaultPreemption)
    preemptor = make_pod(-1, "2", priority=1000)
    everything, cycle = Nodes(cache.snapshot()), CycleState()
    potential = PotentialVictims(preemptor.priority, everything.snapshot.pods)
    assert framework.pre_filter(cycle, preemptor, everything, Diagnosis(len(everything))) is not None

    def one() -> int:
        _, removed = plugin.select_victims_on_nodes(
            cycle, preemptor, potential, everything, Diagnosis(len(everything))
        )
        return int(np.count_nonzero(removed))

    assert one() == 2 * node_count
    return [seconds(one) for _ in range(ROUNDS)]


def main() -> None:
    table = Table("measured", "nodes", "median", "p99")
    for name, measure, sizes in (
        ("a node update", updates, (100, 50_000)),
        ("dry run", dry_runs, (5000,)),
    ):
        for nodes in sizes:
            ordered = sorted(measure(nodes))
            p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
            median = statistics.median(ordered)
            table.add_row(name, f"{nodes:,}", f"{median * 1e6:,.0f} µs", f"{p99 * 1e6:,.0f} µs")
    Console().print(table)


if __name__ == "__main__":
    main()
