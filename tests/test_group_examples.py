"""The examples of groups do what their first line says; docs/how-to/groups.md shows what commands print."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from moorage.cli.main import app
from moorage.emulation.kubernetes_version import DEFAULT_VERSION

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples" / "groups"
METRICS = ROOT / "src" / "moorage" / "services" / "metrics.txt"
GENERIC = "GenericWorkload=true"
TOPOLOGY = f"{GENERIC},TopologyAwareWorkloadScheduling=true"
COMPOSITE = f"{TOPOLOGY},CompositePodGroup=true"
SHOWN = re.compile(r"```console\n\$ moorage (decide [^\n]*)\n```\n```text\n(.*?)```", re.DOTALL)


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"})


def decide(cluster: str, pods: str, gates: str, *options: str) -> list[Any]:
    files = (str(EXAMPLES / cluster), "--pod", str(EXAMPLES / pods))
    result = run("decide", *files, "--feature-gates", gates, "--json", *options)
    assert result.exit_code in (0, 1), result.stderr
    decided: list[Any] = json.loads(result.stdout)
    return decided


def nodes_of(group: Any) -> list[str]:
    return [member["node"] for member in group["members"] if member["node"]]


@pytest.mark.parametrize("gates", [GENERIC, TOPOLOGY])
def test_of_five_pods_of_which_three_are_needed_four_run_on_four_slots(gates: str) -> None:
    group, left = decide("four-slots.yaml", "gang.yaml", gates)
    assert group["scheduled"]
    assert sorted(nodes_of(group)) == ["oslo-1", "oslo-1", "oslo-2", "oslo-2"]
    assert group["members"][4]["message"] == "0/2 nodes are available: 2 Insufficient cpu."
    assert [member["pod"] for member in left["members"]] == ["default/train-4"]


def test_none_of_them_runs_on_two_slots() -> None:
    no_victims = "pod group preemption: No preemption victims found for incoming preemptor"
    text = "minCount (3) cannot be satisfied: 2 scheduled, 0 remaining"
    (group,) = decide("two-slots.yaml", "gang.yaml", GENERIC)
    assert (group["scheduled"], nodes_of(group)) == (False, [])
    assert group["message"] == f"{text}, {no_victims}"
    (group,) = decide("two-slots.yaml", "gang.yaml", TOPOLOGY)
    assert group["message"] == (
        "pod group is unschedulable, 0/1 placements are available, first placement status: "
        f"{text}, {no_victims}"
    )


def test_of_two_gangs_exactly_one_runs_whole() -> None:
    blue, green = decide("eight-slots.yaml", "two-gangs.yaml", GENERIC)
    assert (len(nodes_of(blue)), len(nodes_of(green))) == (6, 0)
    assert green["message"].startswith("minCount (6) cannot be satisfied: 2 scheduled, 3 remaining")


def test_a_gang_with_a_topology_key_runs_in_one_rack() -> None:
    (group,) = decide("racks.yaml", "topology.yaml", TOPOLOGY)
    assert group["placement"] == "east"
    assert set(nodes_of(group)) == {"bergen-1", "bergen-2"}
    assert {each["placement"]: each["total"] for each in group["placements"]} == {"east": 137, "west": 130}


def test_members_that_are_alike_have_their_scores_in_the_chosen_placement() -> None:
    (group,) = decide("racks.yaml", "topology.yaml", TOPOLOGY)
    for member in group["members"]:
        scored = {each["node"] for each in member["nodes"] if each.get("scores")}
        assert member["node"] in {each["node"] for each in member["nodes"]}
        assert scored <= {"bergen-1", "bergen-2"}
    assert {each["node"] for each in group["members"][0]["nodes"] if each["scores"]} == {
        "bergen-1",
        "bergen-2",
    }


def test_a_composite_group_runs_with_two_of_its_parts_in_one_rack() -> None:
    whole, left = decide("racks.yaml", "composite.yaml", COMPOSITE)
    assert (whole["group"], whole["placement"]) == ("default/simulation", "east")
    placed = [len(nodes_of(part)) for part in whole["groups"]]
    assert sorted(placed) == [0, 1, 3]
    assert {node for part in whole["groups"] for node in nodes_of(part)} <= {"bergen-1", "bergen-2"}
    assert not left["scheduled"]


def test_a_gang_evicts_less_important_pods() -> None:
    (group,) = decide("busy.yaml", "urgent-gang.yaml", GENERIC)
    assert (group["outcome"], group["victims"]) == (
        "WaitingOnPreemption",
        ["default/batch-2", "default/batch-3"],
    )
    assert {member["nominated"] for member in group["members"]} == {"oslo-1", "oslo-2"}


PLUGIN = ("--plugin", str(EXAMPLES / "neighbours.py"), "--config", str(EXAMPLES / "neighbours-config.yaml"))


def test_the_plugin_generates_and_scores_placements() -> None:
    (group,) = decide("row.yaml", "pair.yaml", TOPOLOGY, *PLUGIN)
    assert {each["placement"]: each["scores"]["Neighbours"] for each in group["placements"]} == {
        "row-1+row-2": 99,
        "row-2+row-3": 98,
        "row-3+row-4": 97,
    }
    assert group["placement"] == "row-1+row-2"


def test_the_plugin_judges_placements() -> None:
    group, *_ = decide("row.yaml", "gang.yaml", TOPOLOGY, *PLUGIN)
    assert group["placement"] == "row-3+row-4"
    assert [each.get("message") for each in group["placements"]] == [
        "pod group is unschedulable, pods come in pairs: 3 scheduled",
        "pod group is unschedulable, pods come in pairs: 3 scheduled",
        None,
    ]


def test_two_plugins_that_generate_placements_are_one_too_many() -> None:
    files = (str(EXAMPLES / "row.yaml"), "--pod", str(EXAMPLES / "pair.yaml"))
    result = run("decide", *files, "--feature-gates", TOPOLOGY, *PLUGIN[:2])
    assert result.exit_code == 2
    assert "at most one placement generate plugin is allowed" in result.stderr


PAGE = (ROOT / "docs/how-to/groups.md").read_text()


@pytest.mark.parametrize(("command", "shown"), SHOWN.findall(PAGE))
def test_the_page_shows_what_commands_really_print(command: str, shown: str) -> None:
    printed = run(*shlex.split(command)).output
    assert "".join(f"{line.rstrip()}\n" for line in printed.splitlines()) == shown


def test_the_page_shows_the_warning() -> None:
    files = (str(EXAMPLES / "four-slots.yaml"), "--pod", str(EXAMPLES / "gang.yaml"))
    assert run("decide", *files).stderr in PAGE


def test_the_page_has_commands_and_the_plugin() -> None:
    assert len(SHOWN.findall(PAGE)) == 6
    assert (EXAMPLES / "neighbours.py").read_text() in PAGE
    assert (EXAMPLES / "neighbours-config.yaml").read_text() in PAGE


def test_the_page_names_metrics_and_gates_that_there_are() -> None:
    metrics = set(re.findall(r"`(scheduler_\w+)`", PAGE))
    assert metrics
    assert metrics - {line.split()[0] for line in METRICS.read_text().splitlines() if line} == set()
    gates = re.findall(
        r"^\| `(\w+)` \|", PAGE.partition("## Feature gates")[2].partition("##")[0], re.MULTILINE
    )
    assert len(gates) == 5
    assert set(gates) <= DEFAULT_VERSION.gates.known.keys()
