"""Explanations of recorded decisions: their numbers and texts are kube-scheduler's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.explain.document import as_document
from moorage.explain.explanation import explain
from moorage.plugins import default_registry
from moorage.sim.difference import Difference
from moorage.sim.recording import PodStep, load_recording
from moorage.sim.replay import Replay

FOLDER = Path(__file__).parent.parent / "recordings"
RECORDINGS = sorted([*FOLDER.glob("*.json.gz"), *(FOLDER / "1.37").glob("*.json.gz")])


class ExplainedReplay(Replay):
    """Explains each pod before the recorded decision is applied."""

    explained = 0

    def _compare(self, step: PodStep) -> Iterator[Difference]:
        self.check(step)
        return super()._compare(step)

    def check(self, step: PodStep) -> None:
        document = as_document(explain(self.cluster, step.pod))
        self.explained += 1
        if "nodes" not in document:
            assert document["verdict"].startswith(f"{step.pod.key} is not scheduled: ")
            assert step.expect.node is None
            return
        self.check_scores(document, step)
        self.check_rejections(document, step)

    def check_scores(self, document: dict[str, Any], step: PodStep) -> None:
        recorded = step.expect.scores
        if recorded is None or step.expect.nomination is not None or step.expect.message is not None:
            return
        explained = {row["node"]: row for row in document["feasible"]}
        assert explained.keys() == recorded.keys()
        for node, scores in recorded.items():
            parts = explained[node]["scores"]
            assert {plugin: part["weighted"] for plugin, part in parts.items()} == scores
            assert explained[node]["total"] == sum(scores.values())
            assert all(part["normalised"] * part["weight"] == part["weighted"] for part in parts.values())
        lead = document["lead"]
        assert sum(lead["byPlugin"].values()) == lead["total"]

    def check_rejections(self, document: dict[str, Any], step: PodStep) -> None:
        nodes, rejected = document["nodes"], document.get("rejected", [])
        assert sum(group["count"] for group in rejected) == nodes["total"] - nodes["feasible"]
        everything = {
            (group["plugin"], tuple(group["reasons"]), node)
            for group in document.get("allRejections", [])
            for node in group.get("nodes", ["*"])
        }
        for group in rejected:
            for node in group["nodes"]:
                reason = (group["plugin"], tuple(group["reasons"]))
                is_narrowed = not group["plugin"]
                assert is_narrowed or {(*reason, node), (*reason, "*")} & everything
        if not nodes["feasible"] and step.expect.message and not step.expect.nominated:
            assert document["message"] == step.expect.message


@pytest.mark.parametrize("file", RECORDINGS, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_numbers_and_texts_are_the_recording_s(file: Path) -> None:
    replay = ExplainedReplay(load_recording(file), default_registry())
    assert not [difference for step in replay.run() for difference in step]
    assert replay.explained
