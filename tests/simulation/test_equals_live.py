"""A simulation places pods as a scheduler with an API server does, both in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from moorage.api.manifests import Manifest
from tests.simulation.live import Ending, lived
from tests.simulation.simulating import manifest

GROUPS = "--feature-gates=GenericWorkload=true"
SPACING_SECONDS = 12
"""Longer than the longest backoff, so that the simulated cluster is at rest when the next pod arrives."""


def node(name: str, zone: str, cpu: str = "4") -> Manifest:
    amounts = {"cpu": cpu, "memory": "32Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def nodes(count: int) -> list[Manifest]:
    return [node(f"node-{number}", f"zone-{number % 3}") for number in range(count)]


def priority(name: str, value: int) -> Manifest:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**kind, "metadata": {"name": name}, "value": value}


def gang(name: str, least: int, **spec: Any) -> Manifest:
    kind = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup"}
    meta = {"name": name, "namespace": "default"}
    return {**kind, "metadata": meta, "spec": {"schedulingPolicy": {"gang": {"minCount": least}}, **spec}}


def members(name: str, count: int, cpu: str, **spec: Any) -> list[Manifest]:
    group = {"podGroupName": name}
    return [manifest(f"{name}-{number}", cpu, schedulingGroup=group, **spec) for number in range(count)]


def simulated(
    cluster: Sequence[Manifest], pods: Sequence[Manifest], folder: Path, *options: str, seed: int
) -> Ending:
    """What becomes of pods that arrive one after another in a simulation."""
    files = folder / "cluster.yaml", folder / "pods.yaml"
    for number, pod in enumerate(pods):
        pod["metadata"]["annotations"]["moorage.io/arrival"] = f"{number * SPACING_SECONDS}s"
    for file, items in zip(files, (cluster, pods), strict=True):
        file.write_text(yaml.safe_dump_all(items))
    words = ["--from", str(files[0]), "--workload", str(files[1]), f"--seed={seed}", "--no-restart"]
    ended = subprocess.run(
        [sys.executable, "-m", "moorage", "simulate", *words, *options, "-o", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    placements = json.loads(ended.stdout)["placements"]
    standing = [each for each in placements if each["endedAt"] is None]
    return Ending(
        {each["name"]: each["node"] for each in standing},
        {each["name"]: each["message"] for each in standing if each["message"]},
        {each["name"] for each in placements if each["endedAt"] is not None},
    )


SIZES = ("1", "500m", "2", "250m", "1500m")


def single_pods() -> list[Manifest]:
    """Pods that fill five nodes, some that preempt others, and some for which there is no room."""
    low = [manifest(f"low-{number}", SIZES[number % 5]) for number in range(15)]
    urgent = [manifest(f"urgent-{number}", "3", priorityClassName="urgent") for number in range(3)]
    large = manifest("large", "9")
    return [*low[:8], large, *low[8:], *urgent, manifest("last", "3500m")]


def groups() -> list[Manifest]:
    """Gangs among single pods: one that fits, one that preempts, and one whose last member never comes."""
    return [
        *(manifest(f"low-{number}", SIZES[number % 5]) for number in range(5)),
        *members("fits", 3, "2"),
        *members("urgent", 2, "3", priorityClassName="urgent"),
        manifest("single", "500m"),
        *members("incomplete", 2, "100m"),
    ]


def test_pods_and_preemption(tmp_path: Path) -> None:
    cluster = [*nodes(5), priority("urgent", 1000)]
    expected = lived(cluster, single_pods(), tmp_path, seed=3)
    assert simulated(cluster, single_pods(), tmp_path, seed=3) == expected
    assert simulated(cluster, single_pods(), tmp_path, seed=4) != expected  # Ties are left to chance.
    assert expected.removed
    assert "large" in expected.messages


def test_groups(tmp_path: Path) -> None:
    urgent = [priority("urgent", 1000), gang("urgent", 2, priorityClassName="urgent")]
    cluster = [*nodes(4), *urgent, gang("fits", 3), gang("incomplete", 3)]
    expected = lived(cluster, groups(), tmp_path, GROUPS, seed=11)
    assert simulated(cluster, groups(), tmp_path, GROUPS, seed=11) == expected
    assert simulated(cluster, groups(), tmp_path, GROUPS, seed=12) != expected
    assert "fits-0" in expected.removed
    assert expected.nodes["urgent-0"]
    assert not expected.nodes["incomplete-0"]
