"""What the scheduler's package does alone, and what it says where it needs the laptop cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from moorage.cli.main import app
from tests.bench.files import MEASURED, NODES, Files
from tests.packages.base_installation import CALLS

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
POLICIES = """
apiVersion: v1
kind: Node
metadata: {name: small}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Node
metadata: {name: large}
status: {allocatable: {cpu: "8", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: memory, namespace: default}
spec: {limits: [{type: Container, max: {memory: 9Gi}}]}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000
"""
LIMITED = "{name: c, image: 'registry.example/x:1', resources: {limits: {cpu: '%s', memory: 1Gi}}}"
NEW = f"""
apiVersion: v1
kind: Pod
metadata: {{name: limits-without-requests}}
spec: {{containers: [{LIMITED % 6}]}}
---
apiVersion: v1
kind: Pod
metadata: {{name: urgent}}
spec: {{priorityClassName: urgent, containers: [{LIMITED % 5}]}}
---
apiVersion: v1
kind: Pod
metadata: {{name: without-limits}}
spec: {{containers: [{{name: c, image: 'registry.example/x:1'}}]}}
"""
REFUSED = f"""
apiVersion: v1
kind: Pod
metadata: {{name: refused}}
spec: {{restartPolicy: Sometimes, containers: [{LIMITED % 1}]}}
"""


class Called(NamedTuple):
    """How a command ended."""

    status: int
    output: str
    errors: str


class Base(NamedTuple):
    """What commands do where the laptop cluster is not installed."""

    words: dict[str, list[str]]
    commands: dict[str, Called]
    loaded: list[str]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Base:
    folder = tmp_path_factory.mktemp("base")
    texts = {"stored": STORED, "policies": POLICIES, "new": NEW, "refused": REFUSED}
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text)
    stored, policies, new, refused = (str(folder / f"{name}.yaml") for name in texts)
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
        "decide new": ["decide", policies, "--pod", new, "--json"],
        "decide refused": ["decide", policies, "--pod", refused],
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
    answers, loaded = json.loads(done.stdout)
    return Base(commands, dict(zip(commands, (Called(*each) for each in answers), strict=True)), loaded)


@pytest.mark.parametrize("name", ["up", "up --help", "apiserver", "bench --http"])
def test_a_command_that_needs_the_cluster_says_what_to_install(name: str, base: Base) -> None:
    what = name.removesuffix(" --help")
    messages = f"moorage {what} needs the laptop cluster: pip install 'moorage[cluster]'\n"
    assert base.commands[name] == (1, "", messages)


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
    listed = " ".join(base.commands["help"].output.split())
    assert " up Run a cluster" in listed
    assert " apiserver Run a Kubernetes API server" in listed


def test_new_pods_get_the_defaults_and_the_admission_of_an_api_server(base: Base) -> None:
    decided = base.commands["decide new"]
    assert decided.errors == ""
    first, urgent, last = json.loads(decided.output)
    assert first["node"] == "large", "its limit is its request, and only one node has so much"
    assert (urgent["node"], urgent["nominated"]) == (None, "large")
    assert urgent["victims"] == ["default/limits-without-requests"], "it has the priority of its class"
    assert last["message"].startswith("0/2 nodes are available: 2 Insufficient memory."), "of the LimitRange"


def test_new_pods_are_refused_as_by_an_api_server(base: Base) -> None:
    status, output, errors = base.commands["decide refused"]
    assert (status, output) == (2, "")
    assert errors.endswith(
        'Pod "refused" is invalid: spec.restartPolicy: Unsupported value: "Sometimes": '
        'supported values: "Always", "OnFailure", "Never"\n'
    )


@pytest.mark.parametrize("name", ["decide", "decide new", "decide refused", "decide stored"])
def test_decisions_are_the_same_with_the_cluster(name: str, base: Base) -> None:
    result = CliRunner().invoke(app, base.words[name])
    assert base.commands[name] == (result.exit_code, result.stdout, result.stderr)
