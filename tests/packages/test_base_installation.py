"""What the scheduler's package does alone, and what it says where it needs the laptop cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.bench.files import MEASURED, NODES, Files
from tests.packages.base_installation import CALLS

ENOUGH = ("run", "bench", "decide", "decide stored", "replay", "config", "plugin", "manifests", "extender")
WITHIN_SECONDS = 120
ROOT = Path(__file__).parents[2]
CLUSTER = str(ROOT / "examples" / "cluster.yaml")
POD = str(ROOT / "examples" / "pod.yaml")
STORED = """
apiVersion: v1
kind: Node
metadata: {name: a, uid: "0"}
status: {allocatable: {pods: "1"}}
---
apiVersion: v1
kind: Pod
metadata: {name: stored, namespace: default, uid: "1"}
spec: {containers: [{name: c}]}
"""
AS_WRITTEN = (
    "pods without a uid are taken as written: what an API server would fill in or refuse needs the laptop "
    "cluster: pip install 'moorage[cluster]'"
)


class Called(NamedTuple):
    """How a command ended."""

    status: int
    output: str
    errors: str


class Base(NamedTuple):
    """What commands do where the laptop cluster is not installed."""

    commands: dict[str, Called]
    warnings: list[str]
    loaded: list[str]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Base:
    folder = tmp_path_factory.mktemp("base")
    stored = str(folder / "stored.yaml")
    Path(stored).write_text(STORED)
    workloads = str(Files(folder).case(NODES, MEASURED))
    recording = min((ROOT / "tests" / "recordings").glob("*.json.gz"), key=lambda path: path.stat().st_size)
    commands = {
        "help": ["--help"],
        "up": ["up", "--nodes", "3"],
        "up --help": ["up", "--help"],
        "apiserver": ["apiserver", "--port=0"],
        "bench --http": ["bench", "--http", workloads],
        "bench": ["bench", "--engine", workloads],
        "decide": ["decide", CLUSTER, "--pod", POD],
        "decide stored": ["decide", stored, "--pod", stored],
        "replay": ["replay", str(recording)],
        "config": ["config", "defaults"],
        "plugin": ["plugin", "new", "tide"],
        "manifests": ["manifests"],
        "extender": ["extender", "--help"],
        "run": ["run", "--help"],
    }
    words = [sys.executable, "-c", CALLS, json.dumps(list(commands.values()))]
    done = subprocess.run(
        words, capture_output=True, text=True, check=True, cwd=folder, timeout=WITHIN_SECONDS
    )
    answers, warnings, loaded = json.loads(done.stdout)
    return Base(dict(zip(commands, (Called(*each) for each in answers), strict=True)), warnings, loaded)


@pytest.mark.parametrize("name", ["up", "up --help", "apiserver", "bench --http"])
def test_a_command_that_needs_the_cluster_says_what_to_install(name: str, base: Base) -> None:
    what = name.removesuffix(" --help")
    said = f"moorage {what} needs the laptop cluster: pip install 'moorage[cluster]'\n"
    assert base.commands[name] == (1, "", said)


@pytest.mark.parametrize(
    "name",
    [
        "help",
        "run",
        "bench",
        "decide",
        "decide stored",
        "replay",
        "config",
        "plugin",
        "manifests",
        "extender",
    ],
)
def test_the_other_commands_do_without_it(name: str, base: Base) -> None:
    called = base.commands[name]
    assert called.status == 0, called
    assert called.output
    assert base.loaded == []


def test_all_commands_are_listed(base: Base) -> None:
    listed = base.commands["help"].output
    assert "up         Run a cluster" in listed
    assert "apiserver  Run a Kubernetes API server" in listed


def test_new_pods_are_decided_about_as_written_and_this_is_said(base: Base) -> None:
    decided = base.commands["decide"]
    assert decided.errors == f"moorage decide: {AS_WRITTEN}\n"
    assert "default/shop-3 goes to bergen-1" in decided.output
    assert base.commands["decide stored"].errors == ""
    assert base.warnings == [AS_WRITTEN]
