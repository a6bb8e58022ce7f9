"""`moorage plan` as a process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from moorage.cli.main import app

ROOT = Path(__file__).parent.parent.parent
FLEET = ("--from", "examples/fleet.yaml")
CATALOGUE = ("--catalogue", "examples/catalogue.yaml")
COMMAND = [sys.executable, "-m", "moorage", "plan"]


@pytest.fixture(autouse=True)
def _in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands run in this process, which keeps its garbage collector as it is."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("moorage.cli.plan.long_running", lambda command: None)


def run(*words: str, status: int = 0) -> Result:
    ended = CliRunner().invoke(app, ["plan", *words])
    assert ended.exit_code == status, ended.output
    return ended


@pytest.mark.parametrize(
    ("words", "kind", "status"),
    [
        (("fit", "examples/pod.yaml", "--from", "examples/cluster.yaml"), "FitPlan", 0),
        (("nodes", *CATALOGUE, "--workload", "examples/backlog.yaml"), "NodePlan", 0),
        (("drain", "west", *FLEET), "DrainPlan", 1),
        (("consolidate", *FLEET), "ConsolidationPlan", 0),
        (("failures", *FLEET, "--by", "node"), "FailurePlan", 0),
    ],
)
def test_each_plan_is_json_of_its_kind(words: tuple[str, ...], kind: str, status: int) -> None:
    ended = run(*words, "-o", "json", status=status)
    result = json.loads(ended.stdout)
    assert (result["apiVersion"], result["kind"], result["complete"]) == ("moorage.io/v1alpha1", kind, True)
    assert ended.stderr == ""


def documented() -> list[tuple[str, str]]:
    """The commands of the page, each with the output that it shows."""
    blocks = (ROOT / "docs/how-to/planning.md").read_text().split("```console\n$ moorage plan ")[1:]
    shown = []
    for block in blocks:
        command, _, rest = block.partition("\n")
        shown.append((command, rest.partition("```")[0].rstrip()))
    return shown


@pytest.mark.parametrize(("command", "output"), documented(), ids=[command for command, _ in documented()])
def test_the_page_shows_what_commands_print(command: str, output: str) -> None:
    ended = CliRunner().invoke(app, ["plan", *command.split()])
    assert ended.exit_code in (0, 1), ended.output
    assert ended.stdout.rstrip() == output


@pytest.mark.parametrize("name", ["fit", "nodes", "drain", "consolidate", "failures"])
def test_the_example_of_each_help_is_shown_on_the_page(name: str) -> None:
    said = " ".join(run(name, "--help").stdout.split())
    example = (
        said.partition("For example: moorage plan ")[2].partition(" Arguments:")[0].partition(" Options:")[0]
    )
    assert example.split()[0] == name
    assert example in [command for command, _ in documented()]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("fit", "examples/pod.yaml"), "there are no nodes; give --nodes, --shape, --from or --kubeconfig"),
        (("fit", "none.yaml", "--nodes", "1"), "none.yaml: No such file or directory"),
        (("fit", "examples/cluster.yaml", "--nodes", "1", "--emulated-version", "9"), "--emulated-version: "),
        (("drain", "nowhere", *FLEET), "there is no node and no zone nowhere"),
        (("drain", *FLEET), "name a node or a zone, or give --selector"),
        (("drain", "--selector", "disk", *FLEET), "--selector: 'disk' is not LABEL=VALUE"),
        (("drain", "--selector", "disk=ssd", *FLEET), "--selector: no node has the labels disk=ssd"),
        (
            ("failures", "--by", "rack", *FLEET),
            "no node has the label rack; give --by node, or another label",
        ),
        (("nodes", *CATALOGUE), "there are no pods to place; give --workload"),
        (("consolidate", "--nodes", "1", "--config", "none.yaml"), "none.yaml: "),
        (("consolidate", "--nodes", "1", "--plugin", "none.py"), "none.py: "),
    ],
)
def test_bad_input_is_one_clear_line(words: tuple[str, ...], problem: str) -> None:
    errors = run(*words, status=2).stderr
    assert errors.startswith(f"moorage plan {words[0]}: {problem}")
    assert len(errors.splitlines()) == 1


def test_a_missing_solver_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "highspy.py").write_text("raise ImportError")
    words = [*COMMAND, "nodes", *CATALOGUE, "--workload", "examples/backlog.yaml"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ended = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert ended.returncode == 2
    assert ended.stderr == "moorage plan nodes: the solver HiGHS is missing: pip install 'moorage[plan]'\n"


def test_ctrl_c_leaves_a_plan_that_says_it_is_partial(tmp_path: Path) -> None:
    """The plugin ends the wait: it is asked for the first time when the plan has begun."""
    marker, plugin = tmp_path / "begun", tmp_path / "slow.py"
    os.mkfifo(marker)
    plugin.write_text(
        f"""
import pathlib

class Announces:
    name = "Announces"
    begun = False

    def filter_node(self, cycle, pod, node):
        if not Announces.begun:
            Announces.begun = True
            pathlib.Path({str(marker)!r}).write_text("begun")
            pathlib.Path({str(marker)!r}).read_text()
"""
    )
    words = [
        "fit",
        "examples/pod.yaml",
        "--from",
        "examples/cluster.yaml",
        "--plugin",
        str(plugin),
        "-o",
        "json",
    ]
    process = subprocess.Popen(
        [*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert marker.read_text() == "begun"
    process.send_signal(signal.SIGINT)
    marker.write_text("go on")
    output, errors = process.communicate()
    assert process.returncode == 130, errors
    assert errors == "moorage plan fit: interrupted; the plan is what is known up to then\n"
    result = json.loads(output)
    assert (result["complete"], result["rounds"]) == (False, 1)


def test_a_plugin_decides_in_plans(tmp_path: Path) -> None:
    plugin = tmp_path / "one.py"
    plugin.write_text(
        """
class OnlyOne:
    name = "OnlyOne"

    def filter_node(self, cycle, pod, node):
        return None if node.name == "amsterdam-1" else "not this one"
"""
    )
    words = (
        "fit",
        "examples/pod.yaml",
        "--from",
        "examples/cluster.yaml",
        "--plugin",
        str(plugin),
        "-o",
        "json",
    )
    assert [each["node"] for each in json.loads(run(*words).stdout)["nodes"]] == ["amsterdam-1"]
