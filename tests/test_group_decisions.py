"""`moorage decide` answers as kube-scheduler v1.37 did, for groups of recorded clusters.

Unlike a replay it does not know what was left to chance. These are recordings in which that does not matter:
the outcome and all texts of each group's first cycle are the recorded ones, whatever nodes are chosen.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from moorage.cli.main import app
from moorage.sim.recording import parse_recording

FOLDER = Path(__file__).parent / "recordings" / "groups"
NAMES = ("gang-2", "gang-late-7", "gang-topology-0", "group-basic-1", "plain-gang-1", "plain-preemption-2")
SCHEDULED = "Scheduled"

Manifest = dict[str, Any]


def identity(manifest: Manifest) -> tuple[str, str]:
    meta = manifest["metadata"]
    return manifest["kind"], f"{meta.get('namespace', 'default')}/{meta['name']}"


class RecordedCluster:
    """The manifests of a cluster as its recording goes on."""

    def __init__(self, recording: Manifest) -> None:
        self._steps = recording["steps"]
        self._manifests = {identity(each): each for each in recording["objects"]}

    def groups(self) -> Iterator[tuple[list[Manifest], list[Manifest], list[Manifest]]]:
        """Pods of groups that come: the cluster that they come to, the pods, and the recorded cycles."""
        for step in self._steps:
            come = step.get("group") or {}
            for changed in (come.get("create"), step.get("create"), step.get("replace")):
                self._manifests |= {identity(each): each for each in changed or ()}
            for gone in step.get("delete") or ():
                self._manifests.pop(identity(gone), None)
            pods = come.get("pods") or []
            if pods:
                yield list(self._manifests.values()), pods, step["expect"]["cycles"]
            single = [step["pod"]] if "pod" in step else []
            self._manifests |= {identity(each): each for each in (*pods, *single)}
            expect = step.get("expect") or {}
            nodes = {key: pod.get("node") for key, pod in expect.get("pods", {}).items()}
            nodes |= {identity(each)[1]: expect.get("node") for each in single}
            self._follow(nodes, expect.get("victims") or ())

    def _follow(self, nodes: dict[str, str | None], victims: Sequence[str]) -> None:
        for key, node in nodes.items():
            if (known := self._manifests.get(("Pod", key))) is not None:
                known["spec"]["nodeName"] = node or ""
        for victim in victims:
            self._manifests.pop(("Pod", victim), None)


def recorded_outcome(result: Manifest) -> tuple[object, ...]:
    if result["outcome"] == SCHEDULED:
        return SCHEDULED, result["scheduled"], result["unschedulable"]
    return result["outcome"], result["message"]


def outcome(group: Manifest) -> tuple[object, ...]:
    if group["outcome"] != SCHEDULED:
        return group["outcome"], group["message"]
    placed = sum(member["node"] is not None for member in group["members"])
    return SCHEDULED, placed, len(group["members"]) - placed


@pytest.mark.parametrize("name", NAMES)
def test_groups_are_decided_as_recorded(name: str, tmp_path: Path) -> None:
    document = json.loads(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))
    enabled = parse_recording(document, name).version.gates.given
    gates = ",".join(f"{gate}={str(is_on).lower()}" for gate, is_on in enabled.items())
    cluster, asked = tmp_path / "cluster.json", tmp_path / "pods.json"
    compared = 0
    for manifests, pods, cycles in RecordedCluster(document).groups():
        cluster.write_text(json.dumps({"kind": "List", "items": manifests}))
        asked.write_text(json.dumps({"kind": "List", "items": pods}))
        files = [str(cluster), "--pod", str(asked)]
        result = CliRunner().invoke(app, ["decide", *files, "--json", "--feature-gates", gates])
        first, *_ = json.loads(result.stdout)
        if first["outcome"] == "Gated":
            assert cycles == []
            continue
        (recorded,) = cycles[0]["results"].values()
        assert outcome(first) == recorded_outcome(recorded)
        waiting = [each["message"] for each in first["members"] if each["node"] is None]
        assert sorted(waiting) == sorted(cycles[0]["messages"].values())
        compared += 1
    assert compared >= 2
