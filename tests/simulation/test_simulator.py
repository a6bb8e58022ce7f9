"""What happens to pods and nodes in a simulation, and when."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.api.decode import InputError
from moorage.client.kinds import POD as _POD
from moorage.emulation.kubernetes_version import DEFAULT_VERSION
from moorage.sim.admission import Admission
from moorage.simulation.generator import Generator
from moorage.simulation.records import Outcome
from moorage.simulation.results import result_of
from moorage.simulation.script import ScriptEvent
from moorage.simulation.simulator import Simulation
from tests.scheduler.running import SchedulerHarness, in_harness
from tests.simulation.simulating import arrivals, by_name, manifest, nodes, simulated


def test_pods_wait_until_others_have_completed() -> None:
    ended = simulated(
        nodes(1, "2"),
        arrivals(
            manifest("first", "2", duration="10m"),
            manifest("second", "2", at="1m", duration="5m"),
            manifest("third", "2", at="2m", duration="5m"),
        ),
    )
    pods = by_name(ended)
    assert [each.outcome for each in pods.values()] == [Outcome.COMPLETED] * 3
    assert pods["first"].ended_at == pytest.approx(600)
    assert pods["second"].bound_at == pytest.approx(600, abs=2)
    assert pods["third"].bound_at == pytest.approx(900, abs=4)
    assert pods["second"].attempts == 3  # Unschedulable pods are tried again after five minutes.
    assert ended.seconds == pytest.approx(1200, abs=6)
    assert ended.is_complete


def test_a_simulation_ends_although_pods_are_pending_and_says_why_they_are() -> None:
    ended = simulated(nodes(2), arrivals(manifest("fits"), manifest("large", "5")))
    result = result_of(ended.records, 0, is_complete=ended.is_complete)
    assert result.pods["Running"] == result.pods["Pending"] == 1
    assert [(each.pods, each.message) for each in result.pending] == [
        (
            1,
            "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: "
            "2 Preemption is not helpful for scheduling.",
        )
    ]


def test_it_ends_although_a_group_that_does_not_fit_is_tried_for_ever() -> None:
    gang = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    }
    member: Any = {"schedulingGroup": {"podGroupName": "g"}}
    version = DEFAULT_VERSION.with_gates({"GenericWorkload": True})
    groups = Admission([], version.features).objects([(gang, "test")])
    workload = arrivals(manifest("g-0", "3", **member), manifest("g-1", "3", at="30s", **member))
    ended = simulated([*nodes(1), *groups], workload, version=version)
    assert [each.outcome for each in ended.records.pods] == [Outcome.PENDING] * 2
    assert ended.seconds < 60
    fits = simulated([*nodes(2), *groups], workload, version=version)
    assert [each.outcome for each in fits.records.pods] == [Outcome.RUNNING] * 2


def test_it_ends_at_a_given_time() -> None:
    workload = arrivals(manifest("a", duration="1h"), manifest("late", at="2h", duration="1h"))
    ended = simulated(nodes(1), workload, until_seconds=1800.0)
    assert ended.seconds == 1800
    assert [each.outcome for each in ended.records.pods] == [Outcome.RUNNING]


def test_a_preempted_pod_is_created_again_and_runs_for_its_whole_time() -> None:
    ended = simulated(
        nodes(1),
        arrivals(
            manifest("low", "4", duration="10m", priority=0),
            manifest("high", "4", at="5m", duration="5m", priorityClassName="system-node-critical"),
        ),
    )
    pods = by_name(ended)
    assert pods["low"].outcome is Outcome.PREEMPTED
    assert pods["high"].outcome is Outcome.COMPLETED
    assert pods["high"].bound_at == pytest.approx(301, abs=2)
    (again,) = (each for name, each in pods.items() if name.startswith("low-"))
    assert again.outcome is Outcome.COMPLETED
    assert again.bound_at is not None
    assert again.ended_at == again.bound_at + 600


def test_without_restarts_a_preempted_pod_is_gone() -> None:
    workload = arrivals(
        manifest("low", "4"), manifest("high", "4", at="5m", priorityClassName="system-node-critical")
    )
    ended = simulated(nodes(1), workload, restarts_pods=False)
    assert [each.name for each in ended.records.pods] == ["low", "high"]


def test_a_pod_that_is_created_twice_is_named() -> None:
    with pytest.raises(InputError, match=r"pod default/a: pods .a. already exists"):
        simulated(nodes(1), arrivals(manifest("a"), manifest("a", at="1m")))


def test_a_name_that_is_taken_is_not_given_again() -> None:
    low, high = manifest("low", "4"), manifest("high", "4", at="1m", priorityClassName="system-node-critical")
    taken = [manifest(f"low-{number:05d}", "100m") for number in range(12)]
    ended = simulated(nodes(1, "5"), arrivals(low, *taken, high))
    assert sum(each.outcome is Outcome.PREEMPTED for each in ended.records.pods) >= 1
    assert len({each.name for each in ended.records.pods}) == len(ended.records.pods)


def test_a_script_drains_fails_recovers_adds_and_removes_nodes() -> None:
    def event(at_seconds: float, action: str, target: str) -> ScriptEvent:
        return ScriptEvent(at_seconds, action, target, "test")

    ended = simulated(
        nodes(2, "1"),
        arrivals(manifest("a"), manifest("b")),
        [
            event(100, "drain", "node-0"),
            event(200, "add", "name=new,count=1,cpu=1,memory=1Gi"),
            event(300, "fail", "node-1"),
            event(400, "recover", "node-0"),
            event(500, "recover", "node-1"),
            event(600, "remove", "new-0"),
        ],
    )
    found = [(each.name.partition("-")[0], each.node, each.outcome) for each in ended.records.pods]
    drained = next(each for each in ended.records.pods if each.node == "node-0").name
    failed = "b" if drained == "a" else "a"
    assert set(found[:2]) == {
        (drained, "node-0", Outcome.EVICTED),
        (failed, "node-1", Outcome.EVICTED),
    }
    assert found[2:] == [
        (drained, "new-0", Outcome.EVICTED),
        (failed, "node-0", Outcome.RUNNING),
        (drained, "node-1", Outcome.RUNNING),
    ]
    bound_at = [each.bound_at for each in ended.records.pods]
    assert bound_at[2:] == pytest.approx([200, 400, 600], abs=12)


def test_an_event_for_a_node_that_is_not_there_names_the_event() -> None:
    with pytest.raises(InputError, match="event 3: drain: there is no node and no zone node-9"):
        simulated(
            nodes(1), arrivals(manifest("a")), [ScriptEvent(1, "drain", "node-9", "nodes.yaml: event 3")]
        )


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others() -> None:
    def encoded(seed: int) -> bytes:
        ended = simulated(nodes(5), Generator(60, 1.0, 60.0).arrivals(seed), seed=seed)
        return msgspec.json.encode(result_of(ended.records, seed, is_complete=True))

    assert encoded(7) == encoded(7)
    assert encoded(7) != encoded(8)


@pytest.mark.parametrize("seed", range(4))
def test_a_simulation_equals_a_scheduler_with_an_api_server(seed: int) -> None:
    """The same pods, one after another, the cluster at rest in between; with preemption."""
    critical = {"priorityClassName": "system-node-critical"}
    pods = [
        manifest(f"pod-{number}", cpu, at=f"{number * 30}s", **(critical if number > 13 else {}))
        for number, cpu in enumerate(("1", "500m", "2", "250m", "1500m") * 3 + ("3", "3", "4"))
    ]
    placed: dict[str, str] = {}

    async def scenario(harness: SchedulerHarness) -> None:
        for number in range(5):
            zone = {"topology.kubernetes.io/zone": f"zone-{number % 3}"}
            await harness.add_node(f"node-{number}", **zone)
        harness.scheduler(seed=seed)
        for each in pods:
            await harness.client.create(_POD, "default", each)
            await harness.passes(30)
            for item in await harness.client.list(_POD):
                if item["metadata"].get("deletionTimestamp"):
                    await harness.delete_pod(item["metadata"]["name"])
            await harness.passes(15)
        for item in await harness.client.list(_POD):
            placed[item["metadata"]["name"]] = item["spec"].get("nodeName", "")

    in_harness(scenario)
    ended = simulated(nodes(5), arrivals(*pods), seed=seed, restarts_pods=False)
    assert _standing(ended) == placed
    assert len(placed) < len(pods)


def _standing(ended: Simulation) -> dict[str, str]:
    """The pods that are still there, with their nodes."""
    return {each.name: each.node for each in ended.records.pods if each.ended_at is None}


def test_pods_of_jobs_end_although_there_is_no_job_controller() -> None:
    pod = manifest("work", duration="1m")
    pod["metadata"] |= {"finalizers": ["batch.kubernetes.io/job-tracking"]}
    located = [({**pod, "spec": {**pod["spec"], "nodeName": "node-0"}}, "test")]
    ended = simulated([*nodes(1), *Admission(located).objects(located)], arrivals(manifest("after", "4")))
    assert by_name(ended)["after"].bound_at == pytest.approx(60, abs=2)
