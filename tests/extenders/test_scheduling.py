"""A scheduler with extenders under virtual time: it waits for them, and all else goes on meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from moorage.api.as_sent import NodeAsSent
from moorage.client.client import Client
from moorage.client.kinds import NODE, PERSISTENT_VOLUME_CLAIM, POD
from moorage.config.load import default_config, parse_config
from moorage.http.transport import Response
from moorage.plugins import default_registry
from moorage.queue.scheduling_queue import Place
from moorage.scheduler.debugging import cache_view
from moorage.scheduler.scheduler import Scheduler
from tests.extenders.extender_responses import Service, configuration_with, keeping, names_in, scoring
from tests.scheduler.plugins import Hold, profile, registry_with
from tests.scheduler.running import SchedulerHarness, in_harness

FILTERING = {"urlPrefix": "http://one", "nodeCacheCapable": True, "filterVerb": "filter"}
LATE = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"


def started(
    harness: SchedulerHarness, service: Service, *extenders: dict[str, Any], plugins: tuple[Any, ...] = ()
) -> Scheduler:
    """A scheduler with extenders, at work."""
    names = profile(*(plugin.name for plugin in plugins))
    scheduler = Scheduler(
        Client(harness.line, harness.server.token),
        parse_config({**names, "extenders": list(extenders)}, "test"),
        registry_with(*plugins) if plugins else default_registry(),
        harness.clock,
        harness.random,
        "host",
        connect_extender=service.connect,
    )
    harness.runs(scheduler.run())
    return scheduler


async def two_nodes(harness: SchedulerHarness) -> None:
    await harness.add_node("n1")
    await harness.add_node("n2")


def test_pods_go_where_the_extender_lets_them_go() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        service = Service(filter=keeping("n2"))
        scheduler = started(harness, service, FILTERING)
        await two_nodes(harness)
        await harness.add_pod("p")
        await harness.add_pod("q")
        await harness.passes(1)
        assert [await harness.node_of(name) for name in "pq"] == ["n2", "n2"]
        assert [sorted(names_in(question)) for question in service.questions("filter")] == [["n1", "n2"]] * 2
        await harness.check(scheduler)

    in_harness(scenario)


def test_whole_objects_are_those_of_the_api_server() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        service = Service(filter=keeping("n1"), prioritize=scoring())
        started(harness, service, {**FILTERING, "nodeCacheCapable": False})
        await harness.add_node("n1")
        stored = await harness.client.create(
            POD,
            "default",
            {
                "metadata": {"name": "p"},
                "spec": {"containers": [{"name": "c", "image": "i:1", "command": ["never", "read"]}]},
            },
        )
        node = await harness.client.get(NODE, "", "n1")
        await harness.passes(1)
        (question,) = service.questions("filter")
        for sent, expected in ((question["Pod"], stored), (question["Nodes"]["items"][0], node)):
            sent, expected = dict(sent), dict(expected)
            for each in (sent, expected):
                each.pop("kind", None)
                each.pop("apiVersion", None)
                each["metadata"].pop("managedFields", None)
            assert sent == expected

    in_harness(scenario)


def test_objects_are_kept_whole_only_where_extenders_need_them() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        await harness.add_node("n1")
        with_extender = started(harness, Service(), FILTERING)
        binder_only = started(harness, Service(), {"urlPrefix": "http://one", "bindVerb": "bind"})
        await harness.passes(1)
        assert [isinstance(node, NodeAsSent) for node in with_extender.cache.nodes()] == [True]
        assert [isinstance(node, NodeAsSent) for node in binder_only.cache.nodes()] == [False]

    in_harness(scenario)


def test_while_an_extender_is_waited_for_the_cluster_goes_on_but_the_cycle_does_not_see_it() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        hold = Hold()
        service = Service(filter=keeping("n1", "n2", "n3"), prioritize=scoring(n1=10, n3=10))
        scoring_too = {**FILTERING, "prioritizeVerb": "prioritize", "weight": 50}
        scheduler = started(harness, service, scoring_too, plugins=(hold,))
        await two_nodes(harness)
        await harness.add_pod("held")
        await harness.passes(1)
        service.may_answer.clear()
        await harness.add_pod("p")
        await harness.add_pod("q")
        await harness.settles()
        assert len(service.questions("filter")) == 2
        # The first pod is let go on, and bound; a node comes, and the debugging pages are looked at.
        (held,) = list(hold.handle.waiting)
        held.allow("Hold")
        await harness.add_node("n3")
        await harness.settles()
        assert await harness.node_of("held")
        assert cache_view(scheduler.cache)["nodes"].keys() == {"n1", "n2", "n3"}
        assert scheduler.prioritizing == 0
        assert scheduler.cache.latest_snapshot().row_of.keys() == {"n1", "n2"}
        # Only one pod is in its cycle: the other waits for its turn.
        assert len(service.questions("filter")) == 2
        service.may_answer.set()
        await harness.settles()
        assert await harness.node_of("p") == "n1"
        assert sorted(names_in(service.questions("filter")[2])) == ["n1", "n2", "n3"]
        assert await harness.node_of("q") in ("n1", "n3")
        await harness.passes(1)
        await harness.check(scheduler)

    in_harness(scenario)


def test_an_extender_that_takes_too_long_fails_the_attempt_and_the_pod_is_tried_again() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        service = Service(filter=keeping("n1"))
        service.may_answer.clear()
        scheduler = started(harness, service, {**FILTERING, "httpTimeout": "2s"})
        await harness.add_node("n1")
        await harness.add_pod("p")
        await harness.passes(1.5)
        assert await harness.condition_or_none("p") is None
        await harness.passes(1)
        condition = await harness.condition("p")
        assert (condition["reason"], condition["message"]) == (
            "SchedulerError",
            f'Post "http://one/filter": {LATE}',
        )
        service.may_answer.set()
        await harness.passes(3)
        assert await harness.node_of("p") == "n1"
        await harness.check(scheduler)

    in_harness(scenario)


def test_an_ignorable_extender_that_takes_too_long_is_gone_on_without() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        service = Service()
        service.may_answer.clear()
        started(harness, service, {**FILTERING, "ignorable": True})
        await harness.add_node("n1")
        await harness.add_pod("p")
        await harness.passes(4.5)
        assert await harness.node_of("p") == ""
        await harness.passes(1)
        assert await harness.node_of("p") == "n1"

    in_harness(scenario)


_CONTAINER = {"name": "c", "image": "i:1"}
_CLAIMED = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1Gi"}},
    "storageClassName": "",
}
EVENTS = {
    "a node that is no better": lambda harness: harness.add_node("n9", cpu="1m"),
    "somebody else's pod": lambda harness: harness.client.create(
        POD, "default", {"metadata": {"name": "x"}, "spec": {"nodeName": "n1", "containers": [_CONTAINER]}}
    ),
    "a volume claim": lambda harness: harness.client.create(
        PERSISTENT_VOLUME_CLAIM, "default", {"metadata": {"name": "c"}, "spec": _CLAIMED}
    ),
}


@pytest.mark.parametrize("happens", EVENTS.values(), ids=EVENTS)
def test_a_pod_that_an_extender_refused_is_tried_again_whatever_happens(happens: Any) -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        service = Service(filter=keeping(why="not today"))
        scheduler = started(harness, service, FILTERING)
        await harness.add_node("n1")
        pod = await harness.add_pod("p")
        await harness.passes(15)
        message = (await harness.condition("p"))["message"]
        assert message.startswith("0/1 nodes are available: 1 not today.")
        uid = pod["metadata"]["uid"]
        assert scheduler.queue.place_of(uid) is Place.UNSCHEDULABLE
        (queued,) = scheduler.queue.pods_in(Place.UNSCHEDULABLE)
        assert set(queued.rejector_plugins()) == {"Extender"}
        asked = len(service.asked)
        service.answers["filter"] = keeping("n1")
        await happens(harness)
        await harness.passes(15)
        assert len(service.asked) == asked + 1
        assert await harness.node_of("p") == "n1"

    in_harness(scenario)


def test_an_extender_binds_in_place_of_the_plugins() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        bound = asyncio.Event()

        def bind(question: Any) -> Any:
            async def write() -> None:
                target = {"kind": "Node", "name": question["Node"]}
                binding = {"metadata": {"name": question["PodName"]}, "target": target}
                await harness.client.create_part(POD, "default", question["PodName"], "binding", binding)
                bound.set()

            harness.runs(write())
            return {}

        service = Service(bind=bind)
        scheduler = started(harness, service, {"urlPrefix": "http://one", "bindVerb": "bind"})
        await harness.add_node("n1")
        pod = await harness.add_pod("p")
        await harness.passes(1)
        assert bound.is_set()
        assert service.questions("bind") == [
            {
                "PodName": "p",
                "PodNamespace": "default",
                "PodUID": pod["metadata"]["uid"],
                "Node": "n1",
            }
        ]
        assert not harness.line.bound  # The scheduler itself has written no binding,
        assert [
            event["note" if "note" in event else "message"] for event in await harness.events("Scheduled")
        ] == ["Successfully assigned default/p to n1"]  # but says that there is one.
        assert scheduler.cache.assumed_count == 0

    in_harness(scenario)


BINDERS = {
    "refuses": ({}, {"Error": "not my node"}, "not my node"),
    "fails": ({}, Response(503, b""), "failed bind with extender at URL http://one/bind, code 503"),
    "fails, and is ignorable": ({"ignorable": True}, Response(503, b""), None),
    "manages something else": ({"managedResources": [{"name": "example.com/gpu"}]}, {}, None),
}


@pytest.mark.parametrize(("fields", "answer", "message"), BINDERS.values(), ids=BINDERS)
def test_an_extender_that_does_not_bind(fields: dict[str, Any], answer: Any, message: str | None) -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        service = Service(bind=lambda question: answer)
        scheduler = started(harness, service, {"urlPrefix": "http://one", "bindVerb": "bind", **fields})
        await harness.add_node("n1")
        await harness.add_pod("p")
        await harness.passes(0.5)
        if message is None:
            assert await harness.node_of("p") == "n1"
            await harness.check(scheduler)
            return
        condition = await harness.condition("p")
        assert (condition["reason"], condition["message"]) == ("SchedulerError", message)
        assert scheduler.cache.assumed_count == 0
        service.answers["bind"] = lambda question: Response(503, b"")
        await harness.passes(2)
        assert len(service.asked) > 1  # It is tried again.

    in_harness(scenario)


def test_a_pod_that_goes_while_an_extender_is_waited_for_is_dropped() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        service = Service(filter=keeping("n1"))
        service.may_answer.clear()
        scheduler = started(harness, service, FILTERING)
        await harness.add_node("n1")
        await harness.add_pod("p")
        await harness.settles()
        assert len(service.asked) == 1
        await harness.delete_pod("p")
        await harness.add_pod("p")
        await harness.settles()
        service.may_answer.set()
        await harness.passes(1)
        assert await harness.node_of("p") == "n1"
        assert len(service.asked) == 2
        await harness.check(scheduler)

    in_harness(scenario)


def test_a_pod_that_another_client_binds_while_an_extender_is_waited_for_stays_there() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        service = Service(filter=keeping("n1"))
        service.may_answer.clear()
        scheduler = started(harness, service, FILTERING)
        await two_nodes(harness)
        await harness.add_pod("p")
        await harness.settles()
        target = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n2"}}
        await harness.client.create_part(POD, "default", "p", "binding", target)
        await harness.settles()
        service.may_answer.set()
        await harness.passes(1)
        assert await harness.node_of("p") == "n2"
        await harness.check(scheduler)

    in_harness(scenario)


def test_a_scheduler_that_has_to_end_does_not_wait_for_an_extender() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        service = Service(filter=keeping("n1"))
        service.may_answer.clear()
        scheduler = started(harness, service, FILTERING)
        await harness.add_node("n1")
        await harness.add_pod("p")
        await harness.settles()
        assert len(service.asked) == 1
        await asyncio.wait_for(scheduler.drain(20), 5)  # No time passes: the clock is not moved.
        service.may_answer.set()
        await harness.passes(1)
        assert await harness.node_of("p") == ""
        assert scheduler.cache.assumed_count == 0

    in_harness(scenario)


def test_preemption_waits_for_extenders_and_spares_their_pods() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        def preempt(question: Any) -> Any:
            victims = question["NodeNameToVictims"]["n1"]["Pods"]
            spared = [{"UID": pod["metadata"]["uid"]} for pod in victims if pod["metadata"]["name"] != "low1"]
            return {"NodeNameToMetaVictims": {"n1": {"Pods": spared, "NumPDBViolations": 0}}}

        service = Service(preempt=preempt)
        started(harness, service, {"urlPrefix": "http://one", "preemptVerb": "preempt"})
        await harness.add_priority("high", 100)
        await harness.add_node("n1", cpu="2")
        await harness.add_pod("low1")
        await harness.add_pod("low2")
        await harness.passes(1)
        service.may_answer.clear()
        await harness.add_pod("p", cpu="2", priorityClassName="high")
        await harness.passes(1)
        (question,) = service.questions("preempt")
        sent = question["NodeNameToVictims"]["n1"]["Pods"]
        assert sorted((pod["metadata"]["name"], pod["spec"]["nodeName"]) for pod in sent) == [
            ("low1", "n1"),
            ("low2", "n1"),
        ]
        service.may_answer.set()
        await harness.passes(1)
        assert await harness.exists(POD, "default", "low1")
        assert (await harness.pod("low2"))["metadata"].get("deletionTimestamp")
        assert (await harness.pod("p"))["status"]["nominatedNodeName"] == "n1"

    in_harness(scenario)


def test_extenders_come_and_go_with_the_configuration() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        service = Service(filter=keeping("n2"))
        scheduler = started(harness, service)
        await two_nodes(harness)
        await harness.add_pod("early")
        await harness.passes(1)
        assert not service.asked
        wanting_all = configuration_with({"extenders": [{**FILTERING, "nodeCacheCapable": False}]})
        reloading = asyncio.ensure_future(scheduler.reconfigure(parse_config(wanting_all, "test")))
        await harness.passes(1)
        assert reloading.done()
        reloading.result()
        await harness.add_pod("p")
        await harness.passes(1)
        assert await harness.node_of("p") == "n2"
        (question,) = service.questions("filter")
        node = question["Nodes"]["items"][0]
        assert node["metadata"]["resourceVersion"]
        assert node["status"]["capacity"]  # Of which scheduling reads nothing.
        await harness.check(scheduler)
        reloading = asyncio.ensure_future(scheduler.reconfigure(default_config()))
        await harness.passes(1)
        reloading.result()
        await harness.add_pod("q")
        await harness.passes(1)
        assert await harness.node_of("q")
        assert len(service.asked) == 1
        assert service.closed == 1
        assert not any(isinstance(node, NodeAsSent) for node in scheduler.cache.nodes())
        await harness.check(scheduler)

    in_harness(scenario)


def test_another_configuration_while_an_extender_is_waited_for() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        service = Service(filter=keeping("n1"))
        service.may_answer.clear()
        scheduler = started(harness, service, FILTERING)
        await two_nodes(harness)
        await harness.add_pod("p")
        await harness.settles()
        reloading = asyncio.ensure_future(scheduler.reconfigure(default_config()))
        await harness.passes(1)
        reloading.result()
        assert service.closed == 0  # It is still being asked.
        service.may_answer.set()
        await harness.passes(1)
        assert await harness.node_of("p") == "n1"
        assert service.closed == 1
        await harness.check(scheduler)

    in_harness(scenario)
