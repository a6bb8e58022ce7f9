"""NodeRequest in a running scheduler: what is asked for, what users are told, and what comes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from moorage import Handle, default_registry
from moorage.client.client import Client
from moorage.client.kinds import NODE, POD, POD_GROUP
from moorage.config.load import parse_config
from moorage.emulation.kubernetes_version import V1_37
from moorage.framework.loading.registry import Registry
from moorage.optional_plugins.node_request.arguments import NodeRequestArgs
from moorage.optional_plugins.node_request.plugin import NodeRequest
from moorage.optional_plugins.node_request.provisioning import (
    Answer,
    NodesWanted,
    Provisioner,
    ProvisioningError,
)
from moorage.scheduler.observers import MetricsObserver
from moorage.scheduler.shadow.report import ShadowReport
from moorage.scheduler.shadow.scheduler import ShadowScheduler
from moorage.services.metrics import Metrics
from tests.optional_plugins.shown_examples import ROOT, check_examples
from tests.scheduler.running import SchedulerHarness, in_harness, pod

EXAMPLE = yaml.safe_load((ROOT / "examples/node-request/scheduler.yaml").read_text())
SMALL = {"name": "small", "pricePerHour": 1, "resources": {"cpu": "4", "memory": "32Gi"}}
DEAR = {**SMALL, "name": "dear", "pricePerHour": 9}
GROUPS = V1_37.with_gates({"GenericWorkload": True})


def config(*shapes: Any, **args: Any) -> Any:
    """The configuration of the example with other arguments."""
    changed = deepcopy(EXAMPLE)
    given = {"shapes": list(shapes) or [SMALL], "provisioningDelay": "60s", "coolDown": "60s", **args}
    changed["profiles"][0]["pluginConfig"][0]["args"] = given
    return changed


class Asking(Provisioner):
    """Answers in turn, as a web service might; it makes no nodes."""

    def __init__(self, *answers: Answer | str) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, int, list[str]]] = []

    async def ask(self, wanted: NodesWanted) -> Answer:
        pods = [pod.name for pod, _ in wanted.pods]
        self.asked.append((wanted.offer.prefix, len(wanted.nodes), pods))
        answer = self.answers.pop(0) if self.answers else Answer(len(wanted.nodes))
        if isinstance(answer, str):
            raise ProvisioningError(answer)
        return answer

    async def complete(self, nodes: Iterable[Any]) -> None:
        pass

    def registry(self) -> Registry:
        """A registry whose NodeRequest asks here."""
        asking = self

        class Replaced(NodeRequest):
            def __init__(self, args: NodeRequestArgs, handle: Handle) -> None:
                super().__init__(args, handle)

            def new_provisioner(self) -> Provisioner:
                return asking

        return default_registry().replacing("NodeRequest", Replaced)


async def nodes(harness: SchedulerHarness) -> list[str]:
    return sorted(item["metadata"]["name"] for item in await harness.client.list(NODE))


async def make_ready(harness: SchedulerHarness) -> None:
    """What kubelets do: nodes lose the taint that every new node gets."""
    for name in await nodes(harness):
        await harness.client.patch(NODE, "", name, {"spec": {"taints": None}}, "merge")


async def told(harness: SchedulerHarness, name: str) -> str:
    """What a pod's condition says of the request."""
    message: str = (await harness.condition(name))["message"]
    return message.partition("node request: ")[2]


async def notes(harness: SchedulerHarness, reason: str) -> set[str]:
    return {event["message"] for event in await harness.events(reason)}


def shown(metrics: Metrics) -> list[str]:
    lines = metrics.text().decode().splitlines()
    return sorted(line for line in lines if line.startswith("moorage_node_request"))


def test_a_burst_asks_for_as_many_nodes_as_it_needs() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        await harness.add_node("n0", cpu="4")
        metrics = Metrics()
        scheduler = harness.scheduler(config=config(), observer=MetricsObserver(metrics))
        for number in range(42):
            await harness.add_pod(f"p{number}")
        await harness.passes(5)
        await harness.add_pod("late")
        await harness.passes(50)
        assert await nodes(harness) == ["n0"]
        assert "moorage_node_request_expected_nodes 10" in shown(metrics)
        await harness.passes(20)
        assert len(await nodes(harness)) == 11
        await make_ready(harness)
        await harness.passes(20)
        assert all(item["spec"].get("nodeName") for item in await harness.client.list(POD))
        assert len(await nodes(harness)) == 11
        assert await notes(harness, "TriggeredScaleUp") == {"pod triggered scale-up: [{small 0->10}]"}
        assert shown(metrics) == [
            "moorage_node_request_expected_nodes 0",
            'moorage_node_request_nodes_total{result="ready",shape="small"} 10',
            'moorage_node_request_nodes_total{result="requested",shape="small"} 10',
        ]
        await harness.check(scheduler)

    in_harness(scenario)


def test_what_users_are_told() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        await harness.add_node("n0", cpu="1")
        harness.scheduler(config=config())
        await harness.add_pod("fits-later", cpu="2")
        await harness.add_pod("giant", cpu="5")
        await harness.passes(0.5)
        assert await told(harness, "fits-later") == "a node is being looked for."
        await harness.passes(5)
        await harness.passes(60)
        assert await told(harness, "fits-later") == "waiting for small-0."
        await make_ready(harness)
        await harness.passes(5)
        assert await harness.node_of("fits-later") == "small-0"
        await harness.passes(330, step=5)
        assert await told(harness, "giant") == "no node is requested: 1 Insufficient cpu."
        assert await notes(harness, "NotTriggerScaleUp") == {
            "pod didn't trigger scale-up: 1 Insufficient cpu"
        }

    in_harness(scenario)


def test_a_pod_that_can_preempt_asks_for_nothing() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        await harness.add_priority("high", 1000)
        await harness.add_node("n0", cpu="4")
        asking = Asking()
        harness.scheduler(config=config(), registry=asking.registry())
        await harness.add_pod("low", cpu="3")
        await harness.passes(2)
        await harness.add_pod("high", cpu="3", priorityClassName="high")
        await harness.passes(40)
        assert asking.asked == []

    in_harness(scenario)


def test_a_request_that_fails_is_made_again_after_a_backoff_that_grows() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        await harness.add_node("n0", cpu="0")
        asking = Asking("no answer", "no answer")
        harness.scheduler(config=config(initialBackoff="20s", maxBackoff="40s"), registry=asking.registry())
        await harness.add_pod("p")
        await harness.passes(3)
        assert len(asking.asked) == 1
        assert await notes(harness, "FailedToScaleUp") == {"node request failed: no answer"}
        await harness.passes(10)
        assert await told(harness, "p") == "a node is being looked for."
        await harness.passes(15)
        assert len(asking.asked) == 2
        await harness.passes(30)
        assert len(asking.asked) == 2
        await harness.passes(20)
        assert asking.asked == [("small", 1, ["p"])] * 3

    in_harness(scenario)


def test_a_refusal_leads_to_the_next_shape() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        await harness.add_node("n0", cpu="0")
        asking = Asking(Answer(1, ("own-name",), "sold out"))
        harness.scheduler(config=config(SMALL, DEAR), registry=asking.registry())
        for number in range(8):
            await harness.add_pod(f"p{number}")
        await harness.passes(8)
        assert [(offer, count, len(pods)) for offer, count, pods in asking.asked] == [
            ("small", 2, 8),
            ("dear", 1, 4),
        ]
        await harness.add_node("own-name", cpu="4")
        await harness.add_node("other", cpu="4", **{"node.kubernetes.io/instance-type": "dear"})
        await harness.passes(10)
        assert all(item["spec"].get("nodeName") for item in await harness.client.list(POD))
        assert len(asking.asked) == 2

    in_harness(scenario)


def test_a_node_that_does_not_come_is_given_up() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        await harness.add_node("n0", cpu="0")
        asking = Asking()
        harness.scheduler(config=config(SMALL, DEAR, provisioningTimeout="60s"), registry=asking.registry())
        await harness.add_pod("p")
        await harness.passes(110)
        assert [offer for offer, _, _ in asking.asked] == ["small"]
        await harness.passes(40)
        assert [offer for offer, _, _ in asking.asked] == ["small", "dear"]
        assert await notes(harness, "FailedToScaleUp") == {"node request failed: no node came within 1m0s"}

    in_harness(scenario)


def test_a_pod_that_does_not_fit_on_its_node_waits_before_it_asks_again() -> None:
    """The catalogue says more than the nodes have."""

    async def scenario(harness: SchedulerHarness) -> None:
        await harness.add_node("n0", cpu="0")
        asking = Asking(Answer(1, ("a",)), Answer(1, ("b",)))
        harness.scheduler(config=config(), registry=asking.registry())
        await harness.add_pod("p", cpu="4")
        await harness.passes(3)
        await harness.add_node("a", cpu="3")
        await harness.passes(40)
        assert len(asking.asked) == 1
        assert (await told(harness, "p")).endswith("looked for.")
        await harness.passes(40)
        assert len(asking.asked) == 2
        await harness.add_node("b", cpu="3")
        await harness.passes(100)
        assert len(asking.asked) == 2
        await harness.passes(40)
        assert len(asking.asked) == 3

    in_harness(scenario)


def test_a_group_asks_for_what_its_members_need_together() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        await harness.add_node("n0", cpu="4")
        harness.scheduler(config=config(), version=GROUPS)
        group = {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}}
        body = {"apiVersion": POD_GROUP.api_version, "kind": "PodGroup", **group}
        await harness.client.create(POD_GROUP, "default", body)
        for number in range(3):
            made = pod(f"g{number}", "3", schedulingGroup={"podGroupName": "g"})
            await harness.client.create(POD, "default", made)
        await harness.passes(65)
        assert len(await nodes(harness)) == 3
        await harness.client.patch(NODE, "", "small-0", {"spec": {"taints": None}}, "merge")
        await harness.passes(30)
        assert [await harness.node_of(f"g{number}") for number in range(3)] == ["", "", ""]
        await make_ready(harness)
        await harness.passes(30)
        assert {await harness.node_of(f"g{number}") for number in range(3)} == {"n0", "small-0", "small-1"}
        assert len(await nodes(harness)) == 3

    in_harness(scenario)


def test_a_group_that_can_preempt_asks_for_nothing() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        await harness.add_priority("high", 1000)
        await harness.add_node("n0", cpu="4")
        asking = Asking()
        harness.scheduler(config=config(), version=GROUPS, registry=asking.registry())
        await harness.add_pod("low", cpu="3")
        await harness.passes(2)
        spec = {"schedulingPolicy": {"gang": {"minCount": 2}}, "priorityClassName": "high"}
        group = {"metadata": {"name": "g"}, "spec": spec}
        body = {"apiVersion": POD_GROUP.api_version, "kind": "PodGroup", **group}
        await harness.client.create(POD_GROUP, "default", body)
        for number in range(2):
            made = pod(f"g{number}", "2", schedulingGroup={"podGroupName": "g"}, priorityClassName="high")
            await harness.client.create(POD, "default", made)
        await harness.passes(20)
        assert await harness.events("Preempted")
        assert asking.asked == []

    in_harness(scenario)


def test_pods_that_fit_meanwhile_make_room_on_the_nodes_on_their_way() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        await harness.add_node("n0", cpu="4")
        asking = Asking()
        harness.scheduler(config=config(), registry=asking.registry())
        await harness.add_pod("first", cpu="4")
        await harness.passes(1)
        await harness.add_pod("second", cpu="4")
        await harness.passes(5)
        await harness.delete_pod("first")
        await harness.passes(5)
        assert await harness.node_of("second") == "n0"
        await harness.add_pod("third", cpu="4")
        await harness.passes(5)
        assert [pods for _, _, pods in asking.asked] == [["second"]]
        assert await told(harness, "third") == "a node is being looked for."

    in_harness(scenario)


class Cloud(Asking):
    """Accepts, refuses, fails, and forgets some of what was accepted, at random; at last it is reliable."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self.random = random
        self.is_reliable = False
        self.coming: list[str] = []

    async def ask(self, wanted: NodesWanted) -> Answer:
        for _ in range(self.random.randrange(4)):
            await asyncio.sleep(0)
        names = [node.name for node in wanted.nodes]
        if self.is_reliable:
            self.coming += names
            return Answer(len(names), tuple(names))
        if self.random.random() < 0.2:
            raise ProvisioningError("out of order")
        names = names[: self.random.randint(0, len(names))]
        self.coming += [name for name in names if self.random.random() < 0.7]
        return Answer(len(names), tuple(names), "sold out")

    async def provide(self, harness: SchedulerHarness, share: float) -> None:
        """Have a share of the nodes come."""
        for name in list(self.coming):
            if self.random.random() < share:
                self.coming.remove(name)
                await harness.add_node(name, cpu="4", **{"node.kubernetes.io/instance-type": "small"})


@pytest.mark.parametrize("seed", range(3))
def test_whatever_happens_pods_get_nodes_in_the_end(seed: int) -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        random = Random(seed)
        cloud = Cloud(random)
        await harness.add_node("n0", cpu="4")
        limits = {"maxNodes": 45, "provisioningTimeout": "20s", "provisioningDelay": "0s"}
        pauses = {"coolDown": "5s", "initialBackoff": "3s", "maxBackoff": "10s", "batchWindow": "0s"}
        scheduler = harness.scheduler(config=config(**limits, **pauses), registry=cloud.registry())
        pods: list[str] = []
        for step in range(30):
            for number in range(random.randrange(4)):
                pods.append(f"p{step}-{number}")
                await harness.add_pod(pods[-1], cpu=f"{random.randint(1, 4)}")
            if pods and random.random() < 0.5:
                await harness.delete_pod(pods.pop(random.randrange(len(pods))))
            await cloud.provide(harness, 0.4)
            await harness.passes(random.choice([0.5, 2.0]), step=0.5)
            assert len(await nodes(harness)) + len(cloud.coming) <= 45
        cloud.is_reliable = True
        for _ in range(60):
            await cloud.provide(harness, 1.0)
            await harness.passes(20, step=2.0)
            if all([await harness.node_of(name) for name in pods]):
                break
        assert all([await harness.node_of(name) for name in pods])
        assert len(await nodes(harness)) <= 45
        await harness.check(scheduler)

    in_harness(scenario)


def test_after_a_change_of_the_configuration_only_the_new_plugin_asks() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        await harness.add_node("n0", cpu="1")
        before, after = Asking(), Asking()
        scheduler = harness.scheduler(config=config(batchWindow="2s"), registry=before.registry())
        await harness.add_pod("p", cpu="3")
        await harness.passes(1)
        await scheduler.reconfigure(parse_config(config(), "test"), after.registry())
        await harness.passes(10)
        assert before.asked == []
        assert after.asked == [("small", 1, ["p"])]

    in_harness(scenario)


def test_a_scheduler_that_only_compares_asks_for_nothing(tmp_path: Path) -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        await harness.add_node("n0", cpu="1")
        asking, report = Asking(), ShadowReport(Metrics(), tmp_path / "report")
        scheduler = ShadowScheduler(
            Client(harness.line, harness.server.token),
            parse_config(config(), "test"),
            asking.registry(),
            harness.clock,
            Random(1),
            "host",
            plugin_threads=0,
            report=report,
        )
        harness.runs(scheduler.run())
        await harness.passes(1)
        made = await harness.add_pod("p", cpu="3")
        await harness.passes(1)
        metadata = {"name": "p", "uid": made["metadata"]["uid"]}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": {"name": "n0"}}
        await harness.client.create_part(POD, "default", "p", "binding", binding)
        await harness.passes(0.5)
        assert scheduler.background_task_count == 0
        await harness.passes(10)
        report.close()
        assert "rejects n0: Insufficient cpu" in (tmp_path / "report").read_text()
        assert asking.asked == []

    in_harness(scenario)


def test_the_page_shows_what_is_printed(tmp_path: Path) -> None:
    assert check_examples("docs/optional-plugins/node-request.md", tmp_path) == 2


@pytest.mark.parametrize(
    ("given", "writes"),
    [
        pytest.param({}, True, id="nodes are created"),
        pytest.param({"webhook": {"url": "http://nodes.example/"}}, False, id="a service is asked"),
    ],
)
def test_only_who_creates_nodes_may_do_so(given: dict[str, Any], writes: bool) -> None:
    args = config(**given)["profiles"][0]["pluginConfig"][0]["args"]
    made = default_registry().make("NodeRequest", args, Handle())
    assert isinstance(made, NodeRequest)
    assert bool(made.write_permissions) == writes
