"""Following a pod in the log: kube-scheduler's lines, at the verbosity at which it writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from moorage import klog
from moorage.client.kinds import POD
from moorage.engine import engine
from moorage.framework.interface.status import unschedulable
from moorage.http.transport import Request, Response
from moorage.plugins import default_binder
from moorage.plugins.default_preemption import plugin as default_preemption
from moorage.queue import queue_log
from moorage.scheduler import event_handlers as handlers
from moorage.scheduler import pod_status_writer as statuses
from moorage.scheduler import schedule_one as cycles
from moorage.scheduler.debugging import plugins_view
from tests.builders import make_framework
from tests.client.faults import refusal
from tests.logs import LogFormat, without_heads, written
from tests.scheduler.plugins import Diary, profile, registry_with
from tests.scheduler.running import SchedulerHarness, in_harness

Line = tuple[int, str]
"""The verbosity from which a line is written, and the line; errors and warnings are written at any."""


class Scenario:
    """What happens, and what the log says of it at `-v=10`."""

    def __init__(
        self,
        happens: Callable[[SchedulerHarness], Awaitable[None]],
        *lines: Line,
        nodes: int = 1,
        scheduler: Callable[[SchedulerHarness], dict[str, Any]] = lambda harness: {},
    ) -> None:
        self.happens = happens
        self.lines = lines
        self.nodes = nodes
        self.scheduler = scheduler

    def logged(self, verbosity: int, format: LogFormat = "text") -> str:
        """What the log says from when the scheduler knows the nodes."""
        logged = []

        async def scenario(harness: SchedulerHarness) -> None:
            with written(verbosity, format) as stream:
                harness.scheduler(**self.scheduler(harness))
                for number in range(self.nodes):
                    await harness.add_node(f"n{number + 1}")
                await harness.passes(1)
                begin = len(stream.getvalue())
                await self.happens(harness)
                logged.append(stream.getvalue()[begin:])

        in_harness(scenario)
        return logged[0]


def comes(name: str) -> tuple[Line, ...]:
    return (
        (3, f'I "Add event for unscheduled pod" pod="default/{name}"'),
        (5, moved(name, "UnscheduledPodAdd", "Active")),
        *tried(name),
    )


def moved(name: str, event: str, queue: str, why: str = "") -> str:
    message = f'I "Pod moved to an internal scheduling queue{why}"'
    return f'{message} pod="default/{name}" event="{event}" queue="{queue}"'


def tried(name: str) -> tuple[Line, ...]:
    return (
        (4, f'I "About to try and schedule pod" pod="default/{name}"'),
        (3, f'I "Attempting to schedule pod" pod="default/{name}"'),
    )


def bound(name: str, *, node: str = "n1", evaluated: int = 1, feasible: int = 1) -> tuple[Line, ...]:
    where = f'pod="default/{name}" node="{node}"'
    return (
        (3, f'I "Attempting to bind pod to node" logger="Bind.DefaultBinder" {where}'),
        (
            2,
            f'I "Successfully bound pod to node" {where} evaluatedNodes={evaluated} feasibleNodes={feasible}',
        ),
        (3, f'I "Add event for scheduled pod" pod="default/{name}"'),
        (3, f'I "Delete event for unscheduled pod" pod="default/{name}"'),
    )


def put_back(name: str, queue: str, cycle: int, hint: int, plugins: str) -> str:
    more = f"schedulingCycle={cycle} hint={hint} unschedulable plugins={plugins}"
    return f"{moved(name, 'ScheduleAttemptFailure', queue)} {more}"


def updated(name: str, reason: str, nominated: str = "") -> str:
    return (
        f'I "Updating pod condition and nominated node name" pod="default/{name}" '
        f'conditionType="PodScheduled" conditionStatus="False" conditionReason="{reason}" '
        f'nominatedNodeName="{nominated}" nominatingMode=1'
    )


def missed(name: str, plugins: str) -> str:
    return (
        f'I "Checking events for in-flight pod" pod="default/{name}" unschedulablePlugins={plugins} '
        "inFlightEventsSize=1 inFlightPodsSize=1"
    )


PREEMPTION = 'logger="PostFilter.DefaultPreemption"'
FIT = '{"NodeResourcesFit":{}}'
FOUND = "preemption: found a potential placement for pod on node n1, preempting 1 victims"
NOT_HELPFUL = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."


def no_fit(name: str) -> tuple[Line, ...]:
    why = f"0/1 nodes are available: 1 Insufficient cpu. {NOT_HELPFUL}"
    pod = f'pod="default/{name}"'
    return (
        (3, f'I "Preemption will not help schedule pod on any node" {PREEMPTION} {pod}'),
        (
            2,
            'I "No preemption candidate is found; preemption is not helpful for scheduling" '
            f"{PREEMPTION} {pod}",
        ),
        (5, f'I "Status after running PostFilter plugins for pod" {pod} status="{NOT_HELPFUL}"'),
        (2, f'I "Unable to schedule pod; no fit; waiting" {pod} err="{why}"'),
        (5, missed(name, FIT)),
        (3, put_back(name, "Unschedulable", 1, 0, FIT)),
        (3, updated(name, "Unschedulable")),
        (4, f'I "Update event for unscheduled pod" {pod}'),
    )


async def fits(harness: SchedulerHarness) -> None:
    await harness.add_pod("web")
    await harness.passes(1)


async def too_big(harness: SchedulerHarness) -> None:
    await harness.add_pod("big", cpu="64")
    await harness.passes(1)


async def add_and_remove(harness: SchedulerHarness) -> None:
    await too_big(harness)
    await harness.delete_pod("big")
    await harness.passes(1)


async def add_node(harness: SchedulerHarness) -> None:
    await too_big(harness)
    await harness.add_node("n2", cpu="128")
    await harness.passes(1)


async def is_gated(harness: SchedulerHarness) -> None:
    await harness.add_pod("gated", schedulingGates=[{"name": "example.com/wait"}])
    await harness.passes(1)
    await harness.client.patch(POD, "default", "gated", {"spec": {"schedulingGates": None}}, "merge")
    await harness.passes(1)


async def preempts(harness: SchedulerHarness) -> None:
    await harness.add_priority("high", 1000)
    await harness.add_pod("low", cpu="3", terminationGracePeriodSeconds=0)
    await harness.passes(1)
    await harness.add_pod("high", cpu="4", priorityClassName="high")
    await harness.passes(3)


async def is_tried_once(harness: SchedulerHarness) -> None:
    await harness.add_pod("web")
    await harness.passes(0.25)


class Unbinding:
    """The way to an API server that refuses bindings."""

    def __init__(self, harness: SchedulerHarness) -> None:
        self._harness = harness

    async def handle(self, request: Request) -> Response:
        return refusal(409) if request.path.endswith("/binding") else await self._harness.line.handle(request)


def with_plugin(plugin: Any) -> Callable[[SchedulerHarness], dict[str, Any]]:
    return lambda harness: {"config": profile(plugin.name), "registry": registry_with(plugin)}


def scored(node: str) -> list[Line]:
    plugins = {
        "TaintToleration": 300,
        "NodeResourcesFit": 87,
        "VolumeBinding": 0,
        "DynamicResources": 0,
        "NodeResourcesBalancedAllocation": 68,
        "ImageLocality": 0,
    }
    message = 'I "Plugin scored node for pod" pod="default/web"'
    return [(10, f'{message} plugin="{name}" node="{node}" score={score}') for name, score in plugins.items()]


def total(node: str) -> Line:
    message = "Calculated node's final score for pod"
    return 10, f'I "{message}" pod="default/web" node="{node}" score=455'


def error(name: str, reason: str = "SchedulerError") -> tuple[Line, ...]:
    """A pod is to be tried again after a pause."""
    return (
        (5, moved(name, "ScheduleAttemptFailure", "Backoff")),
        (3, put_back(name, "Backoff", 1, 1, "{}")),
        (3, updated(name, reason)),
        (4, f'I "Update event for unscheduled pod" pod="default/{name}"'),
    )


ELIMINATED = "TargetPodUpdatePodSchedulingGatesEliminated"
SCENARIOS = {
    "fits": Scenario(
        fits,
        *comes("web"),
        *scored("n1"),
        *scored("n2"),
        total("n1"),
        total("n2"),
        *bound("web", evaluated=2, feasible=2),
        nodes=2,
    ),
    "too big": Scenario(too_big, *comes("big"), *no_fit("big")),
    "deleted": Scenario(
        add_and_remove,
        *comes("big"),
        *no_fit("big"),
        (3, 'I "Delete event for unscheduled pod" pod="default/big"'),
    ),
    "a node comes": Scenario(
        add_node,
        *comes("big"),
        *no_fit("big"),
        (3, 'I "Add event for node" node="n2"'),
        (
            5,
            'I "node was added and it might fit the pod\'s resource requests" pod="default/big" node="n2"',
        ),
        (5, moved("big", "NodeAdd", "Backoff")),
        (4, 'I "Update event for node" node="n2"'),
        *tried("big"),
        *bound("big", node="n2", evaluated=2, feasible=1),
    ),
    "gated": Scenario(
        is_gated,
        (3, 'I "Add event for unscheduled pod" pod="default/gated"'),
        (
            4,
            'I "Status after running PreEnqueue plugin" pod="default/gated" plugin="SchedulingGates" '
            'status="waiting for scheduling gates: [example.com/wait]"',
        ),
        (5, moved("gated", "UnscheduledPodAdd", "Unschedulable", ", because the pod is gated")),
        (4, 'I "Update event for unscheduled pod" pod="default/gated"'),
        (5, moved("gated", ELIMINATED, "Active")),
        (5, moved("gated", ELIMINATED, "Active", " because the Pod is updated")),
        *tried("gated"),
        *bound("gated"),
    ),
    "preempts": Scenario(
        preempts,
        *comes("low"),
        *bound("low"),
        *comes("high"),
        (
            5,
            f'I "Dry run the preemption" {PREEMPTION} pod="default/high" '
            "potentialNodesNumber=1 pdbsNumber=0 offset=0 candidatesNumber=1",
        ),
        (5, f'I "Check the potential node for preemption" {PREEMPTION} pod="default/high" node="n1"'),
        (5, f'I "Pod is a potential preemption victim on node" {PREEMPTION} pod="default/low" node="n1"'),
        (
            2,
            f'I "the target node for the preemption is determined" {PREEMPTION} pod="default/high" node="n1"',
        ),
        (5, f'I "Status after running PostFilter plugins for pod" pod="default/high" status="{FOUND}"'),
        (
            2,
            'I "Unable to schedule pod; no fit; waiting" pod="default/high" '
            f'err="0/1 nodes are available: 1 Insufficient cpu. {FOUND}"',
        ),
        (5, missed("high", FIT)),
        (3, put_back("high", "Unschedulable", 2, 0, FIT)),
        (3, updated("high", "Unschedulable", "n1")),
        (
            2,
            'I "Start the preemption asynchronously" preemptor="default/high" node="n1" '
            "numVictims=1 numVictimsToDelete=1",
        ),
        (
            2,
            'I "Preemptor Pod preempted victim Pod" preemptor="default/high" victim="default/low" node="n1"',
        ),
        (
            2,
            'I "Async Preemption finished completely" preemptor="default/high" node="n1" result="success"',
        ),
        (4, 'I "Update event for unscheduled pod" pod="default/high"'),
        (4, 'I "Update event for scheduled pod" pod="default/low"'),
        (5, 'I "Event is not making pod schedulable" pod="default/high" event="AssignedPodUpdate"'),
        (3, 'I "Delete event for scheduled pod" pod="default/low"'),
        (
            5,
            'I "another scheduled pod was deleted, and it may make the unscheduled pod schedulable" '
            'pod="default/high" deletedPod="default/low"',
        ),
        (5, moved("high", "AssignedPodDelete", "Backoff")),
        *tried("high"),
        *bound("high"),
    ),
    "the binding is refused": Scenario(
        is_tried_once,
        *comes("web"),
        bound("web")[0],
        (
            0,
            'E "Plugin Failed" err="injected 409" logger="Bind" pod="default/web" '
            + 'plugin="DefaultBinder" node="n1"',
        ),
        (1, 'I "Failed to bind pod" pod="default/web"'),
        (
            0,
            'E "Error scheduling pod; retrying" '
            r'err="running Bind plugin \"DefaultBinder\": RequestError: injected 409" '
            'logger="UnhandledError" pod="default/web"',
        ),
        *error("web"),
        scheduler=lambda harness: {"transport": Unbinding(harness)},
    ),
    "a plugin refuses the node": Scenario(
        is_tried_once,
        *comes("web"),
        (
            4,
            'I "Pod rejected by plugin" logger="Reserve" pod="default/web" node="n1" '
            'plugin="A" status="full"',
        ),
        (
            2,
            'I "Unable to schedule pod; no fit; waiting" pod="default/web" '
            'err="0/1 nodes are available: 1 full."',
        ),
        (5, missed("web", '{"A":{}}')),
        (3, put_back("web", "Unschedulable", 1, 0, '{"A":{}}')),
        (3, updated("web", "Unschedulable")),
        (4, 'I "Update event for unscheduled pod" pod="default/web"'),
        scheduler=with_plugin(Diary("A", [], {"reserve": unschedulable("full")})),
    ),
    "there are no nodes": Scenario(
        is_tried_once,
        *comes("web"),
        (
            2,
            'I "Unable to schedule pod; no nodes are registered to the cluster; waiting" pod="default/web"',
        ),
        *error("web", "Unschedulable"),
        nodes=0,
    ),
}


def seen_at(verbosity: int, lines: tuple[Line, ...]) -> list[str]:
    """What is to be read of a story; plugins are named from `-v=4` on."""
    seen = [line for least, line in lines if least <= verbosity]
    named = re.compile(r' logger="(?!UnhandledError)[^"]*"')
    return seen if verbosity >= 4 else [named.sub("", line) for line in seen]


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_what_is_reported_and_from_which_verbosity_on(scenario: Scenario) -> None:
    assert without_heads(scenario.logged(10)) == [line for _, line in scenario.lines]
    levels = [json.loads(line).get("v", 0) for line in scenario.logged(10, "json").splitlines()]
    assert levels == [least for least, _ in scenario.lines]


@pytest.mark.parametrize("verbosity", range(6))
def test_what_is_reported_at_each_verbosity(verbosity: int) -> None:
    scenario = SCENARIOS["too big"]
    assert without_heads(scenario.logged(verbosity)) == seen_at(verbosity, scenario.lines)


def test_lines_are_objects_in_json() -> None:
    lines = [
        json.loads(line) for line in SCENARIOS["a plugin refuses the node"].logged(4, "json").splitlines()
    ]
    rejected, no_fit = (
        next(line for line in lines if line["msg"].startswith(begin))
        for begin in ("Pod rejected", "Unable to schedule")
    )
    pod = {"name": "web", "namespace": "default"}
    assert [*rejected] == ["ts", "logger", "caller", "msg", "v", "pod", "node", "plugin", "status"]
    assert (rejected["logger"], rejected["pod"], rejected["v"]) == ("Reserve", pod, 4)
    assert rejected["caller"].startswith("scheduler/attempt_log.py:")
    assert [*no_fit] == ["ts", "caller", "msg", "v", "pod", "err"]
    assert no_fit["err"] == "0/1 nodes are available: 1 full."


def test_errors_are_objects_in_json() -> None:
    lines = [json.loads(line) for line in SCENARIOS["the binding is refused"].logged(0, "json").splitlines()]
    assert [line["msg"] for line in lines] == ["Plugin Failed", "Error scheduling pod; retrying"]
    assert [*lines[0]] == ["ts", "caller", "msg", "pod", "plugin", "node", "err"]
    assert [*lines[1]] == ["ts", "logger", "caller", "msg", "pod", "err"]


def test_nothing_is_formatted_that_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise AssertionError("made in vain")

    monkeypatch.setattr(klog, "Message", fail)
    for module in (handlers, cycles, engine, queue_log, default_binder, default_preemption, statuses):
        monkeypatch.setattr(module, "kobj", fail)
    for scenario in ("fits", "gated", "too big"):
        assert SCENARIOS[scenario].logged(0) == ""


def test_no_line_shows_a_token() -> None:
    logged = []

    async def scenario(harness: SchedulerHarness) -> None:
        with written(10) as stream:
            harness.scheduler()
            await harness.add_node("n1")
            await fits(harness)
            logged.append((harness.server.token, stream.getvalue()))

    in_harness(scenario)
    [(token, said)] = logged
    assert "Successfully bound" in said
    assert token not in said


def test_the_list_of_plugins_has_the_weights_of_scores_and_placement_scores() -> None:
    shown = plugins_view(make_framework("NodeResourcesFit", "NodeName"))
    weighted, unweighted = (
        {"Name": "NodeResourcesFit", "Weight": 1},
        {"Name": "NodeResourcesFit", "Weight": 0},
    )
    assert shown["Score"]["Enabled"] == shown["PlacementScore"]["Enabled"] == [weighted]
    assert unweighted in shown["Filter"]["Enabled"]
