"""`moorage decide` with groups of pods: one cycle for each group, and what each gate changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from moorage.cli.main import app

Manifest = dict[str, Any]

TEMPLATE = {"workloadName": "whole", "templateName": "part"}
GENERIC = "GenericWorkload=true"
TOPOLOGY = f"{GENERIC},TopologyAwareWorkloadScheduling=true"
POLICY = f"{GENERIC},PodGroupPreemptionPolicy=true"
COMPOSITE = f"{TOPOLOGY},CompositePodGroup=true"
NO_VICTIMS = "pod group preemption: No preemption victims found for incoming preemptor"
FULL = "0/1 nodes are available: 1 Insufficient cpu."


def node(name: str, cpu: int, **labels: str) -> Manifest:
    resources = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": resources},
    }


def gang(name: str, minimum: int, **spec: Any) -> Manifest:
    policy = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {**policy, **spec},
    }


def part(name: str, minimum: int, parent: str) -> Manifest:
    """A gang that is a part of a composite group."""
    return gang(name, minimum, parentCompositePodGroupName=parent, workloadRef=TEMPLATE)


def composite(name: str, minimum: int) -> Manifest:
    spec = {"schedulingPolicy": {"gang": {"minGroupCount": minimum}}, "workloadRef": TEMPLATE}
    return {"kind": "CompositePodGroup", "metadata": {"name": name}, "spec": spec}


def pod(name: str, group: str = "", **spec: Any) -> Manifest:
    containers = [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}]
    member = {"schedulingGroup": {"podGroupName": group}} if group else {}
    return {"kind": "Pod", "metadata": {"name": name}, "spec": {**member, "containers": containers, **spec}}


def members(group: str, count: int, **spec: Any) -> list[Manifest]:
    return [pod(f"{group}-{index}", group, **spec) for index in range(count)]


class Deciding:
    """`moorage decide` with manifests as files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def run(self, cluster: list[Manifest], asked: list[Manifest], gates: str, *options: str) -> Result:
        for name, manifests in (("cluster.yaml", cluster), ("pods.yaml", asked)):
            (self._folder / name).write_text(yaml.safe_dump_all(manifests))
        files = [str(self._folder / "cluster.yaml"), "--pod", str(self._folder / "pods.yaml")]
        flags = ["--feature-gates", gates] if gates else []
        return CliRunner().invoke(app, ["decide", *files, *flags, *options], env={"COLUMNS": "200"})

    def __call__(self, cluster: list[Manifest], asked: list[Manifest], gates: str = GENERIC) -> list[Any]:
        result = self.run(cluster, asked, gates, "--json")
        assert result.exit_code in (0, 1), result.stderr
        decisions: list[Any] = json.loads(result.stdout)
        return decisions


@pytest.fixture
def decide(tmp_path: Path) -> Deciding:
    return Deciding(tmp_path)


def nodes_of(group: Any) -> list[str | None]:
    return [member["node"] for member in group["members"]]


def test_members_are_decided_about_together_at_the_place_of_the_first(decide: Deciding) -> None:
    first, second = members("g", 2)
    asked = [pod("before"), first, pod("between"), second, gang("g", 2)]
    decided = decide([node("a", 3)], asked)
    assert [each.get("pod") or each["group"] for each in decided] == [
        "default/before",
        "default/g",
        "default/between",
    ]
    assert [member["pod"] for member in decided[1]["members"]] == ["default/g-0", "default/g-1"]
    assert nodes_of(decided[1]) == ["a", "a"]
    assert decided[2]["message"].startswith(FULL)


def test_a_group_that_does_not_fit_leaves_its_room_to_others(decide: Deciding) -> None:
    group, single = decide([node("a", 2)], [gang("g", 3), *members("g", 3), pod("single")])
    assert (group["outcome"], group["scheduled"]) == ("Unschedulable", False)
    text = f"minCount (3) cannot be satisfied: 2 scheduled, 0 remaining, {NO_VICTIMS}"
    assert group["message"] == text
    assert [member["message"] for member in group["members"]] == [
        f"pod group is unschedulable, {text}",
        f"pod group is unschedulable, {text}",
        FULL,
    ]
    assert single["node"] == "a"


def test_members_have_scores_and_refusals_of_their_nodes(decide: Deciding) -> None:
    (group,) = decide([node("a", 1), node("b", 1), node("c", 0)], [gang("g", 2), *members("g", 2)])
    first, second = group["members"]
    scored = {each["node"]: each for each in first["nodes"]}
    assert scored["a"]["total"] == sum(scored["a"]["scores"].values())
    assert scored["c"]["refusedBy"] == "NodeResourcesFit"
    assert [each["node"] for each in second["nodes"] if "reasons" not in each] == [second["node"]]


def test_the_scores_of_a_member_are_those_of_its_own_turn(decide: Deciding) -> None:
    cluster = [node("a", 8), node("b", 6), node("c", 4)]
    (alone,) = decide(cluster, [pod("g-0")])
    (group,) = decide(cluster, [gang("g", 4), *members("g", 4)])
    assert group["members"][0]["nodes"] == alone["nodes"]
    assert group["members"][3]["nodes"] != alone["nodes"]


def test_what_is_left_of_a_scheduled_group_is_tried_again_and_may_preempt(decide: Deciding) -> None:
    urgent = {"kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 1000}
    old = pod("old", nodeName="a")
    group = gang("g", 1, priorityClassName="urgent")
    asked = [group, *members("g", 2, priorityClassName="urgent")]
    first, left = decide([node("a", 2), urgent, old], asked)
    assert (first["cycle"], first["outcome"], nodes_of(first)) == (1, "Scheduled", ["a", None])
    assert (left["cycle"], left["outcome"], left["victims"]) == (2, "WaitingOnPreemption", ["default/old"])
    assert [(each["pod"], each["nominated"]) for each in left["members"]] == [("default/g-1", "a")]
    printed = decide.run([node("a", 2), urgent, old], asked, GENERIC).stdout
    assert (
        "what is left of default/g is not scheduled: pod group is unschedulable, pod group preemption"
        in printed
    )
    assert "evicting default/old would make room" in printed
    assert "nominated to a" in printed


def test_pending_members_in_the_cluster_are_attempted_too(decide: Deciding) -> None:
    cluster = [node("a", 9), gang("g", 3), *members("g", 2)]
    (group,) = decide(cluster, [pod("g-2", "g")])
    assert [member["pod"] for member in group["members"]] == ["default/g-0", "default/g-1", "default/g-2"]
    assert group["scheduled"]


def test_a_member_that_runs_counts_and_one_that_is_asked_about_is_taken_out(decide: Deciding) -> None:
    running = members("g", 2, nodeName="a")
    cluster = [node("a", 3), gang("g", 3), *running]
    (late,) = decide(cluster, [pod("g-2", "g")])
    assert nodes_of(late) == ["a"]
    (again,) = decide([node("a", 3), gang("g", 2), *running], running[:1])
    assert [(each["pod"], each["node"]) for each in again["members"]] == [("default/g-0", "a")]


def test_an_ended_member_is_no_member_and_one_being_deleted_is_not_attempted(decide: Deciding) -> None:
    ended, leaving, waiting = members("g", 3)
    ended["status"] = {"phase": "Succeeded"}
    leaving["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/x"]}
    asked = [gang("g", 2), ended, leaving, waiting]
    first, second, group = decide([node("a", 3)], asked)
    assert (first["message"], second["message"]) == (
        "the pod has ended (Succeeded)",
        "the pod is being deleted",
    )
    text = "pod group is unschedulable, minCount (2) cannot be satisfied: 0 scheduled, 1 remaining"
    assert group["message"] == f"{text}, {NO_VICTIMS}"


def test_a_running_member_that_is_being_deleted_stays_on_its_node(decide: Deciding) -> None:
    leaving, waiting = members("g", 2)
    leaving["spec"]["nodeName"] = "a"
    leaving["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/x"]}
    _, group = decide([node("a", 1), leaving], [gang("g", 2), leaving, waiting])
    assert group["message"].startswith("minCount (2) cannot be satisfied: 1 scheduled, 0 remaining")


def test_without_nodes_no_member_fits(decide: Deciding) -> None:
    asked = [gang("g", 1), *members("g", 1)]
    (group,) = decide([], asked)
    assert group["members"][0]["message"] == "no nodes available to schedule pods"
    printed = decide.run([], asked, GENERIC).stdout
    assert "default/g-0 does not fit: no nodes available to schedule pods" in printed
    assert "not tried" not in printed


BROKEN = """
class Broken:
    name = "Broken"

    def %s(self, cycle, pod, nodes):
        raise ValueError("no such luck")
"""


def test_the_error_of_a_plugin_is_shown_with_its_member(decide: Deciding, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(BROKEN % "filter")
    asked = [gang("g", 1), *members("g", 2)]
    option = ("--plugin", str(tmp_path / "broken.py"))
    (group,) = json.loads(decide.run([node("a", 3)], asked, GENERIC, "--json", *option).stdout)
    assert group["outcome"] == "Error"
    assert group["message"].startswith("failed to schedule other pod from a pod group: ")
    assert "no such luck" in group["members"][0]["message"]
    printed = decide.run([node("a", 3)], asked, GENERIC, *option).stdout
    assert "default/g-0 does not fit: " in printed
    assert "no such luck" in printed


def test_a_member_that_cannot_be_bound_is_left(decide: Deciding, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(BROKEN % "pre_bind")
    asked = [gang("g", 1), *members("g", 1)]
    option = ("--plugin", str(tmp_path / "broken.py"))
    (group,) = json.loads(decide.run([node("a", 3)], asked, GENERIC, "--json", *option).stdout)
    (member,) = group["members"]
    assert (member["node"], member["found"]) == (None, None)
    assert "no such luck" in member["message"]


def test_a_gang_that_is_not_complete_waits(decide: Deciding) -> None:
    asked = [gang("g", 3), *members("g", 2)]
    (group,) = decide([node("a", 3)], asked)
    waiting = "waiting for minCount pods from a gang to appear in scheduling queue"
    assert (group["outcome"], group["message"]) == ("Gated", waiting)
    result = decide.run([node("a", 3)], asked, GENERIC)
    assert result.exit_code == 1
    assert f"default/g waits: {waiting}" in result.stdout


def test_a_scheduling_gate_of_one_member_keeps_the_group(decide: Deciding) -> None:
    asked = [
        gang("g", 1),
        pod("free", "g"),
        pod("gated", "g", schedulingGates=[{"name": "example.com/quota"}]),
    ]
    (group,) = decide([node("a", 3)], asked)
    assert group["outcome"] == "Gated"
    assert "example.com/quota" in group["message"]


def test_a_missing_group_is_named(decide: Deciding) -> None:
    result = decide.run([node("a", 3)], members("g", 1), GENERIC)
    assert result.exit_code == 1
    assert "default/g waits, incomplete: there is no PodGroup default/g\n" in result.stdout


def test_a_missing_parent_is_named(decide: Deciding) -> None:
    asked = [part("g", 1, "whole"), *members("g", 1)]
    (group,) = decide([node("a", 3)], asked, COMPOSITE)
    assert (group["outcome"], group["message"]) == (
        "Incomplete",
        "there is no CompositePodGroup default/whole, the parent of default/g",
    )


@pytest.mark.parametrize("gates", ["", "GenericWorkload=false"])
def test_without_the_gate_pods_are_decided_alone_and_a_line_says_so(decide: Deciding, gates: str) -> None:
    asked = [gang("g", 3), *members("g", 2)]
    result = decide.run([node("a", 1)], asked, gates, "--json")
    assert [each["node"] for each in json.loads(result.stdout)] == ["a", None]
    assert result.stderr == (
        "warning: PodGroup default/g is not honoured, its pods are decided one by one; "
        "--emulated-version 1.37 --feature-gates GenericWorkload=true would honour it\n"
    )


def test_groups_are_those_of_the_newer_version(decide: Deciding) -> None:
    asked = [gang("g", 3), *members("g", 1)]
    result = decide.run([node("a", 1)], asked, "GenericWorkload=true", "--emulated-version", "1.36", "--json")
    assert [each["node"] for each in json.loads(result.stdout)] == ["a"]
    assert "--emulated-version 1.37 --feature-gates GenericWorkload=true would honour it" in result.stderr


@pytest.mark.parametrize(
    ("spec", "field", "gates"),
    [
        (
            {"schedulingConstraints": {"topology": [{"key": "rack"}]}},
            "schedulingConstraints",
            "GenericWorkload=true,TopologyAwareWorkloadScheduling=true",
        ),
        (
            {"preemptionPolicy": "Never"},
            "preemptionPolicy",
            "GenericWorkload=true,PodGroupPreemptionPolicy=true",
        ),
        (
            {"parentCompositePodGroupName": "whole", "workloadRef": TEMPLATE},
            "parentCompositePodGroupName",
            "GenericWorkload=true,TopologyAwareWorkloadScheduling=true,CompositePodGroup=true",
        ),
    ],
)
def test_a_field_without_its_gate_is_named(decide: Deciding, spec: Manifest, field: str, gates: str) -> None:
    result = decide.run([node("a", 1)], [gang("g", 1, **spec), *members("g", 1)], GENERIC)
    assert result.exit_code == 0
    assert result.stderr == (
        f"warning: {field} of PodGroup default/g is not honoured; "
        f"--emulated-version 1.37 --feature-gates {gates} would honour it\n"
    )
    assert "is not honoured" not in decide.run([], [gang("g", 1, **spec), *members("g", 1)], gates).stderr


def test_placements_are_shown_with_their_scores(decide: Deciding) -> None:
    racks = [node("a", 2, rack="1"), node("b", 4, rack="2"), node("c", 1, rack="3"), node("d", 9)]
    asked = [gang("g", 2, schedulingConstraints={"topology": [{"key": "rack"}]}), *members("g", 2)]
    (group,) = decide(racks, asked, TOPOLOGY)
    assert (group["placement"], nodes_of(group)) == ("1", ["a", "a"])
    assert group["placements"] == [
        {
            "placement": "1",
            "nodes": 1,
            "feasible": True,
            "chosen": True,
            "scores": {"NodeResourcesFit": 50, "PodGroupPodsCount": 100},
            "total": 150,
        },
        {
            "placement": "2",
            "nodes": 1,
            "feasible": True,
            "chosen": False,
            "scores": {"NodeResourcesFit": 25, "PodGroupPodsCount": 100},
            "total": 125,
        },
        {
            "placement": "3",
            "nodes": 1,
            "feasible": False,
            "chosen": False,
            "message": "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining",
        },
    ]


def test_a_group_without_placements_says_so_although_preemption_was_tried(decide: Deciding) -> None:
    asked = [gang("g", 1, schedulingConstraints={"topology": [{"key": "rack"}]}), *members("g", 1)]
    (group,) = decide([node("a", 2)], asked, TOPOLOGY)
    assert group["message"].startswith("no feasible placements found")
    assert (group["placements"], group["members"][0]["nodes"]) == ([], [])


def test_a_composite_group_has_its_parts(decide: Deciding) -> None:
    parts = [part(name, 2, "whole") for name in ("x", "y")]
    asked = [composite("whole", 1), *parts, *members("x", 2), *members("y", 2)]
    whole, left = decide([node("a", 3)], asked, COMPOSITE)
    assert (whole["kind"], whole["scheduled"]) == ("CompositePodGroup", True)
    by_outcome = {each["outcome"]: each for each in whole["groups"]}
    assert nodes_of(by_outcome["Scheduled"]) == ["a", "a"]
    assert by_outcome["Unschedulable"]["message"].endswith(
        "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining"
    )
    assert (left["cycle"], left["scheduled"]) == (2, False)


def test_a_composite_group_that_is_not_complete_waits(decide: Deciding) -> None:
    asked = [composite("whole", 2), part("x", 1, "whole"), *members("x", 1)]
    (whole,) = decide([node("a", 3)], asked, COMPOSITE)
    assert whole["message"] == 'waiting for composite pod group "whole" tree to meet quorum'
    assert [each["pod"] for each in whole["members"]] == ["default/x-0"]


def test_a_group_gets_the_priority_of_its_class_or_is_refused(decide: Deciding) -> None:
    urgent = {"kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 1000}
    cluster = [node("a", 3), urgent]
    (group,) = decide(cluster, [gang("g", 1, priorityClassName="urgent"), *members("g", 1)])
    assert (group["outcome"], group["message"]) == (
        "Error",
        "all pods in a single pod group should have the same priority as the pod group's priority, "
        "got 0 and 1000",
    )
    result = decide.run(cluster, [gang("g", 1, priorityClassName="none"), *members("g", 1)], GENERIC)
    assert result.exit_code == 2
    assert "no PriorityClass with name none was found" in result.stderr


def test_a_class_that_never_preempts_has_to_be_repeated(decide: Deciding) -> None:
    """The server fills in the default before it looks at the class."""
    modest = {
        "kind": "PriorityClass",
        "metadata": {"name": "modest"},
        "value": 10,
        "preemptionPolicy": "Never",
    }
    asked = members("g", 1, priorityClassName="modest")
    spec = {"priorityClassName": "modest"}
    refused = decide.run([node("a", 3), modest], [gang("g", 1, **spec), *asked], POLICY)
    assert refused.exit_code == 2
    assert "PreemptionPolicy (PreemptLowerPriority) must not be provided in pod group spec" in refused.stderr
    spec |= {"preemptionPolicy": "Never"}
    (group,) = decide([node("a", 3), modest], [gang("g", 1, **spec), *asked], POLICY)
    assert group["scheduled"]


@pytest.mark.parametrize(
    ("group", "line"),
    [
        (gang("g", 1, minCount=3), 'unknown field "spec.minCount"'),
        (
            {**gang("g", 1), "apiVersion": "scheduling.k8s.io/v1alpha2"},
            'no matches for kind "PodGroup" in version "scheduling.k8s.io/v1alpha2"',
        ),
        (gang("g", "three"), "cannot be handled as a PodGroup"),  # type: ignore[arg-type]
        (
            gang("g", 0),
            'PodGroup.scheduling.k8s.io "g" is invalid: spec.schedulingPolicy.gang.minCount: Required value',
        ),
        (gang("g", -1), "Invalid value: -1: must be greater than or equal to 1"),
        (gang("g", 1, schedulingPolicy={}), "must specify one of: `basic`, `gang`"),
        (gang("G", 1), "metadata.name"),
    ],
)
def test_a_group_that_a_server_would_not_accept_gives_one_line(
    decide: Deciding, group: Manifest, line: str
) -> None:
    result = decide.run([node("a", 3)], [group, *members("g", 1)], GENERIC)
    assert result.exit_code == 2
    assert line in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_stored_group_is_used_as_it_is(decide: Deciding) -> None:
    stored = gang("g", 1, priority=7)
    stored["metadata"]["uid"] = "1"
    (group,) = decide([node("a", 3)], [stored, *members("g", 1)])
    assert group["message"].endswith("got 0 and 7")
