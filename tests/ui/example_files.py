"""Files that `moorage ui` opens, made by what makes them elsewhere."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from moorage.scheduler.shadow.report import Comparison, GroupComparison, ShadowReport
from moorage.services.metrics import Metrics
from moorage.simulation.results import SimulationResult, result_of
from tests.simulation.simulating import arrivals, manifest, nodes, simulated

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


def simulation_result(node_count: int = 2, pod_count: int = 6, cpu: str = "1") -> SimulationResult:
    """Pods that come every ten seconds and run for a minute, but the last one."""
    pods = [
        manifest(f"pod-{number}", cpu, at=f"{10 * number}s", duration="60s" if number < pod_count - 1 else "")
        for number in range(pod_count)
    ]
    simulation = simulated(nodes(node_count), arrivals(*pods))
    return result_of(simulation.records, 0, is_complete=True)


def simulation_file(path: Path, result: SimulationResult) -> Path:
    path.write_bytes(msgspec.json.encode(result))
    return path


def comparisons() -> list[Comparison | GroupComparison]:
    """Two pods, with the same node and another one, and a group of which one member is elsewhere."""
    profile = "default-scheduler"
    return [
        Comparison(
            time=START,
            pod="default/web-0",
            uid="1",
            profile=profile,
            template="default/ReplicaSet/web",
            result="same",
            node="node-0",
            ours="node-0",
        ),
        Comparison(
            time=START + timedelta(seconds=3),
            pod="default/web-1",
            uid="2",
            profile=profile,
            template="default/ReplicaSet/web",
            result="different",
            node="node-0",
            ours="node-1",
            plugin="NodeResourcesFit",
            reason="has weight 6 or more there, and 1 here",
            totals=(444, 449),
        ),
        GroupComparison(
            time=START + timedelta(seconds=5),
            group="default/train",
            uid="3",
            profile=profile,
            template="default/PodGroup/train",
            result="different",
            nodes={"default/train-0": "node-2", "default/train-1": "node-2"},
            ours={"default/train-1": "node-1"},
            member="default/train-1",
            plugin="NodeAffinity",
        ),
    ]


def shadow_file(path: Path) -> Path:
    report = ShadowReport(Metrics(), path)
    for each in comparisons():
        report.add(each)
    report.close()
    return path
