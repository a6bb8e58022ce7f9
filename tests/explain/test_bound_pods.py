"""Pods on nodes: would they be placed there again, and what has changed since."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.builders import HOSTNAME, Manifest, node, pod
from tests.explain.test_command import dump, run

BOUND_AT = "2026-03-01T12:00:00Z"
LATER = "2026-03-01T13:00:00Z"
SCHEDULED = {"type": "PodScheduled", "status": "True", "lastTransitionTime": BOUND_AT}


def created(manifest: Manifest, time: str) -> Manifest:
    return {**manifest, "metadata": {**manifest["metadata"], "creationTimestamp": time}}


def bound(name: str, on: str, **fields: Any) -> Manifest:
    status = {"phase": "Running", "conditions": [SCHEDULED]}
    return pod(name, uid=name, on=on, status=status, **fields)


def named(name: str, **fields: Any) -> Manifest:
    return node(name, labels={HOSTNAME: name}, **fields)


def explained(folder: Path, *manifests: Manifest) -> Any:
    return json.loads(run("web", "--from", dump(folder, *manifests), "-o", "json").stdout)


def test_a_pod_that_would_be_placed_there_again(tmp_path: Path) -> None:
    document = explained(tmp_path, named("a"), bound("web", "a", requests={"cpu": "1"}))
    assert document["verdict"] == "default/web is on a and would be placed there again today"
    assert document["today"]["same"]


def test_its_node_is_rejected_today(tmp_path: Path) -> None:
    objects = (named("a", taints=["team=a:NoSchedule"]), named("b"), bound("web", "a"))
    document = explained(tmp_path, *objects)
    assert document["verdict"] == "default/web is on a; today it would be placed on b"
    (rejection,) = document["today"]["rejectedBy"]
    assert rejection == {"plugin": "TaintToleration", "reasons": ["node(s) had untolerated taint(s)"]}
    assert "a is rejected today" in run("web", "--from", dump(tmp_path, *objects)).output


def test_another_node_is_better_today(tmp_path: Path) -> None:
    late = created(pod("late", uid="late", on="a", requests={"cpu": "2"}), LATER)
    objects = (named("a"), created(named("b"), LATER), late, bound("web", "a", requests={"cpu": "1"}))
    today = explained(tmp_path, *objects)["today"]
    assert not today["same"]
    assert today["behindByPlugin"]["NodeResourcesFit"] > 0
    assert (today["newNodes"], today["newPodsOnNode"]) == (["b"], ["default/late"])


def test_it_would_fit_nowhere_today(tmp_path: Path) -> None:
    document = explained(tmp_path, named("a", unschedulable=True), bound("web", "a"))
    assert document["verdict"] == "default/web is on a and would fit nowhere today"
    assert document["help"]
