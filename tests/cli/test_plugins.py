"""`moorage decide --plugin FILE.py`: a rule of one's own, tried on a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from moorage.cli.main import app

PLUGIN = """
class Only:
    name = "Only"

    def filter_node(self, cycle, pod, node):
        return None if node.name == "b" else "not the one"

    def {point}:
        raise ValueError("broken")
"""


def object_file(path: Path, *objects: dict[str, Any]) -> str:
    path.write_text(yaml.safe_dump_all(objects))
    return str(path)


def node(name: str) -> dict[str, Any]:
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": capacity},
    }


def decide(folder: Path, point: str) -> tuple[int, Any]:
    """Exit status and decision, with a plugin that fails at a point."""
    spec = {"containers": [{"name": "c", "image": "registry.example/app:1"}]}
    metadata = {"name": "p", "namespace": "default", "uid": "p"}
    cluster = object_file(folder / "cluster.yaml", node("a"), node("b"))
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    plugin = folder / "only.py"
    plugin.write_text(PLUGIN.format(point=point))
    words = [cluster, "--pod", object_file(folder / "pod.yaml", pod), "--plugin", str(plugin), "--json"]
    done = CliRunner().invoke(app, ["decide", *words])
    return done.exit_code, json.loads(done.stdout)[0]


def test_the_plugin_has_its_say(tmp_path: Path) -> None:
    status, decided = decide(tmp_path, "unused(self)")
    assert (status, decided["node"]) == (0, "b")
    [refused] = [each for each in decided["nodes"] if each["node"] == "a"]
    assert (refused["refusedBy"], refused["reasons"]) == ("Only", ["not the one"])


WORDS = 'running {} plugin "Only": ValueError: broken (only.py:9)'
FAILURES = {
    "score_node(self, cycle, pod, node)": None,
    "pre_enqueue(self, pod)": WORDS.format("PreEnqueue"),
    "pre_filter(self, cycle, pod, nodes)": WORDS.format("PreFilter"),
    "reserve(self, cycle, pod, node_name)": f"Only: {WORDS.format('Reserve')}",
    "pre_bind(self, cycle, pod, node_name)": f"Only: {WORDS.format('PreBind')}",
}


@pytest.mark.parametrize(("point", "message"), FAILURES.items(), ids=FAILURES.keys())
def test_a_plugin_that_raises_is_no_traceback(point: str, message: str | None, tmp_path: Path) -> None:
    status, decided = decide(tmp_path, point)
    if message is None:
        assert (status, decided["node"]) == (0, "b")  # One node is left: nothing is scored.
    else:
        assert (status, decided["node"], decided["message"]) == (1, None, message)
