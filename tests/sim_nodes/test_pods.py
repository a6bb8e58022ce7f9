from __future__ import annotations

from typing import Any

import pytest

from moorage.client.kinds import CORE_EVENT, PERSISTENT_VOLUME_CLAIM, POD, RESOURCE_CLAIM
from moorage_cluster.nodes.settings import NodeTemplate
from tests.sim_nodes.harness import IMAGE, NodesHarness

NODE = NodeTemplate()


def test_a_pod_starts_after_its_image_was_pulled() -> None:
    with NodesHarness(NODE, start_seconds=1, pull_seconds=2) as harness:
        harness.pod("a")
        status = harness.status("a")
        assert (status["phase"], status["startTime"]) == ("Pending", "2026-03-01T12:00:00Z")
        assert harness.state("a") == {"waiting": {"reason": "ContainerCreating"}}
        assert (status["hostIP"], status["hostIPs"]) == ("10.0.0.1", [{"ip": "10.0.0.1"}])
        assert {name: each["status"] for name, each in harness.conditions("a").items()} == {
            "PodReadyToStartContainers": "False",
            "Initialized": "True",
            "Ready": "False",
            "ContainersReady": "False",
            "PodScheduled": "True",
        }
        assert harness.conditions("a")["Ready"]["message"] == "containers with unready status: [main]"
        harness.advance(2.9, step=0.1)
        assert harness.phase("a") == "Pending"
        harness.advance(0.1)
        status = harness.status("a")
        assert (status["phase"], status["podIP"], status["podIPs"]) == (
            "Running",
            "10.128.0.2",
            [{"ip": "10.128.0.2"}],
        )
        assert {each["status"] for each in harness.conditions("a").values()} == {"True"}
        assert "reason" not in harness.conditions("a")["Ready"]
        assert harness.conditions("a")["Ready"]["lastTransitionTime"] == "2026-03-01T12:00:03Z"
        assert harness.conditions("a")["Initialized"]["lastTransitionTime"] == "2026-03-01T12:00:00Z"
        container = harness.container("a")
        assert container["state"] == {"running": {"startedAt": "2026-03-01T12:00:03Z"}}
        assert (container["ready"], container["started"], container["restartCount"]) == (True, True, 0)
        assert container["image"] == IMAGE
        assert container["imageID"].startswith("registry.example/app@sha256:")
        assert container["containerID"].startswith("containerd://")
        harness.pod("b")
        harness.advance(1)
        assert harness.phase("b") == "Running", "the image is there already"
        assert harness.status("b")["podIP"] == "10.128.0.3"


def test_status_says_which_generation_of_the_spec_it_is_about() -> None:
    with NodesHarness(NODE) as harness:
        harness.pod("a", activeDeadlineSeconds=5000)
        harness.advance(5)
        assert harness.status("a")["observedGeneration"] == 1
        for generation in (2, 3):
            harness.patch(POD, "a", {"spec": {"activeDeadlineSeconds": 5000 - generation}})
            assert harness.status("a")["observedGeneration"] == generation


def test_a_pod_has_the_usual_events() -> None:
    with NodesHarness(NODE) as harness:
        harness.pod("a")
        harness.advance(5)
        assert [reason for reason, _ in harness.events("a")] == ["Pulling", "Pulled", "Created", "Started"]
        harness.delete(POD, "a")
        assert harness.events("a")[-1] == ("Killing", "Stopping container main")
        harness.pod("b")
        harness.advance(5)
        assert harness.events("b")[0] == (
            "Pulled",
            f'Container image "{IMAGE}" already present on machine and can be accessed by the pod',
        )


def test_each_transition_is_one_write() -> None:
    with NodesHarness(NODE, normal_events=False) as harness:
        harness.advance(15)
        pod = harness.pod("a")
        before = int(pod["metadata"]["resourceVersion"])
        harness.advance(3)
        after = int(harness.get(POD, "a")["metadata"]["resourceVersion"])
        assert harness.phase("a") == "Running"
        assert after - before == 2


def test_a_pod_of_the_hosts_network_has_the_hosts_address() -> None:
    with NodesHarness(NODE) as harness:
        harness.pod("a", hostNetwork=True)
        harness.advance(5)
        assert harness.status("a")["podIP"] == "10.0.0.1"


def test_a_job_is_done_after_its_duration() -> None:
    with NodesHarness(NODE) as harness:
        harness.pod("a", says={"duration": "30s"}, restartPolicy="Never")
        harness.advance(32)
        assert harness.phase("a") == "Running"
        harness.advance(1)
        assert harness.phase("a") == "Succeeded"
        state = harness.state("a")["terminated"]
        assert (state["exitCode"], state["reason"]) == (0, "Completed")
        assert (state["startedAt"], state["finishedAt"]) == ("2026-03-01T12:00:03Z", "2026-03-01T12:00:33Z")
        assert harness.conditions("a")["Ready"]["reason"] == "PodCompleted"
        assert harness.conditions("a")["Initialized"]["reason"] == "PodCompleted"


def test_a_job_can_fail() -> None:
    with NodesHarness(NODE) as harness:
        harness.pod("a", says={"duration": "5s", "exit-code": "3"}, restartPolicy="Never")
        harness.advance(10)
        assert harness.phase("a") == "Failed"
        state = harness.state("a")["terminated"]
        assert (state["exitCode"], state["reason"]) == (3, "Error")
        assert harness.conditions("a")["ContainersReady"]["reason"] == "PodFailed"


def test_a_container_that_crashes_starts_again_with_growing_pauses() -> None:
    with NodesHarness(NODE) as harness:
        pod = harness.pod("a", says={"duration": "5s", "exit-code": "1"})
        harness.advance(8)
        assert harness.state("a")["terminated"]["exitCode"] == 1
        assert (harness.phase("a"), harness.ready("a")) == ("Running", "False")
        harness.advance(1)
        assert harness.container("a")["restartCount"] == 1
        assert harness.container("a")["lastState"]["terminated"]["exitCode"] == 1
        harness.advance(5)
        described = f"a_default({pod['metadata']['uid']})"
        assert harness.state("a")["waiting"] == {
            "reason": "CrashLoopBackOff",
            "message": f"back-off 10s restarting failed container=main pod={described}",
        }
        assert harness.phase("a") == "Running"
        assert harness.events("a")[-1] == (
            "BackOff",
            f"Back-off restarting failed container main in pod {described}",
        )
        harness.advance(10)
        assert harness.container("a")["restartCount"] == 2
        assert "running" in harness.state("a")


def test_init_containers_run_one_after_another_and_sidecars_stay() -> None:
    inits: list[dict[str, Any]] = [
        {"name": "first", "image": IMAGE},
        {"name": "side", "image": IMAGE, "restartPolicy": "Always"},
        {"name": "last", "image": IMAGE},
    ]
    with NodesHarness(NODE, pull_seconds=0, init_seconds=2) as harness:
        harness.pod("a", initContainers=inits, says={"duration": "10s"}, restartPolicy="Never")
        assert harness.state("a", "first") == {"waiting": {"reason": "PodInitializing"}}
        assert harness.state("a") == {"waiting": {"reason": "PodInitializing"}}
        harness.advance(1)
        assert "running" in harness.state("a", "first")
        assert "waiting" in harness.state("a", "side")
        initialized = harness.conditions("a")["Initialized"]
        assert initialized["message"] == "containers with incomplete status: [first side last]"
        harness.advance(3)
        assert "terminated" in harness.state("a", "first")
        assert "running" in harness.state("a", "side")
        assert "waiting" in harness.state("a", "last")
        harness.advance(3)
        assert (harness.phase("a"), harness.conditions("a")["Initialized"]["status"]) == ("Pending", "True")
        harness.advance(1)
        assert (harness.phase("a"), harness.ready("a")) == ("Running", "True")
        assert "running" in harness.state("a", "side")
        harness.advance(10)
        assert harness.phase("a") == "Succeeded"
        assert "terminated" in harness.state("a", "side")
        assert harness.container("a", "side")["restartCount"] == 0


def test_a_failed_init_container_fails_the_pod_if_nothing_restarts() -> None:
    with NodesHarness(NODE) as harness:
        harness.pod(
            "a",
            initContainers=[{"name": "first", "image": IMAGE}],
            says={"exit-code.first": "2", "duration.first": "1s"},
            restartPolicy="Never",
        )
        harness.advance(6)
        assert harness.phase("a") == "Failed"
        assert harness.state("a", "first")["terminated"]["exitCode"] == 2
        assert harness.state("a") == {"waiting": {"reason": "PodInitializing"}}


@pytest.mark.parametrize(
    ("says", "container"),
    [
        pytest.param({"ready-after": "20s"}, {}, id="annotation"),
        pytest.param(
            {},
            {"readinessProbe": {"httpGet": {"path": "/", "port": 80}, "initialDelaySeconds": 20}},
            id="probe",
        ),
    ],
)
def test_a_pod_may_become_ready_later(says: dict[str, str], container: dict[str, Any]) -> None:
    with NodesHarness(NODE) as harness:
        harness.pod("a", says=says, container=container)
        harness.advance(22)
        assert (harness.phase("a"), harness.ready("a")) == ("Running", "False")
        harness.advance(1)
        assert harness.ready("a") == "True"
        counts = {event["reason"]: event["count"] for event in harness.list(CORE_EVENT)}
        assert counts["Started"] == 1, "it is told once"


def test_readiness_gates_have_a_say() -> None:
    with NodesHarness(NODE) as harness:
        harness.pod("a", readinessGates=[{"conditionType": "example.com/lb"}])
        harness.advance(5)
        ready = harness.conditions("a")["Ready"]
        assert (ready["status"], ready["reason"]) == ("False", "ReadinessGatesNotReady")
        assert harness.conditions("a")["ContainersReady"]["status"] == "True"
        gate = {"status": {"conditions": [{"type": "example.com/lb", "status": "True"}]}}
        harness.patch(POD, "a", gate, type="strategic", subresource="status")
        assert harness.ready("a") == "True"


def test_a_pod_that_takes_too_long_fails() -> None:
    with NodesHarness(NODE) as harness:
        harness.pod("a", activeDeadlineSeconds=20)
        harness.advance(19)
        assert harness.phase("a") == "Running"
        harness.advance(1)
        status = harness.status("a")
        assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
        assert status["message"] == "Pod was active on the node longer than the specified deadline"
        assert harness.state("a")["terminated"]["exitCode"] == 137


@pytest.mark.parametrize(
    ("grace", "gone_after"),
    [
        pytest.param(30, 4, id="stops-when-asked"),
        pytest.param(2, 2, id="is-killed-at-the-end-of-the-grace-period"),
    ],
)
def test_a_deleted_pod_stops_within_its_grace_period(grace: int, gone_after: int) -> None:
    with NodesHarness(NODE, stop_seconds=4) as harness:
        harness.pod("a", terminationGracePeriodSeconds=grace)
        harness.advance(5)
        harness.delete(POD, "a")
        harness.advance(gone_after - 0.1)
        assert harness.phase("a") == "Running"
        harness.advance(0.1)
        assert harness.find(POD, "a") is None


def test_a_shorter_grace_period_counts_even_if_it_comes_later() -> None:
    with NodesHarness(NODE, stop_seconds=20) as harness:
        harness.pod("a")
        harness.advance(5)
        harness.delete(POD, "a")
        harness.advance(2)
        harness.delete(POD, "a", grace_seconds=1)
        harness.advance(1)
        assert harness.find(POD, "a") is None


def test_a_pod_with_a_finalizer_ends_and_stays() -> None:
    with NodesHarness(NODE) as harness:
        harness.pod("a")
        harness.advance(5)
        harness.patch(POD, "a", {"metadata": {"finalizers": ["example.com/keep"]}})
        harness.delete(POD, "a")
        harness.advance(5)
        assert harness.phase("a") == "Failed"
        assert harness.state("a")["terminated"]["exitCode"] == 143
        harness.patch(POD, "a", {"metadata": {"finalizers": None}})
        assert harness.find(POD, "a") is None


def test_a_pod_that_vanishes_leaves_its_room_to_others() -> None:
    with NodesHarness(NODE) as harness:
        harness.pod("a", requests={"cpu": "7"})
        harness.advance(5)
        harness.delete(POD, "a", grace_seconds=0)
        assert harness.find(POD, "a") is None
        harness.pod("b", requests={"cpu": "7"})
        harness.advance(5)
        assert harness.phase("b") == "Running"


def test_a_pod_that_another_client_declares_ended_is_ended() -> None:
    with NodesHarness(NODE) as harness:
        harness.pod("a", requests={"cpu": "7"})
        harness.advance(5)
        harness.patch(POD, "a", {"status": {"phase": "Failed", "reason": "Lost"}}, subresource="status")
        status = harness.status("a")
        assert (status["phase"], status["reason"]) == ("Failed", "Lost")
        assert "terminated" in harness.state("a")
        harness.pod("b", requests={"cpu": "7"})
        harness.advance(5)
        assert harness.phase("b") == "Running"


def test_a_pod_of_the_same_name_is_another_pod() -> None:
    with NodesHarness(NODE) as harness:
        harness.pod("a", says={"duration": "10s"}, restartPolicy="Never")
        harness.advance(5)
        harness.delete(POD, "a", grace_seconds=0)
        harness.pod("a")
        harness.advance(30)
        assert harness.phase("a") == "Running"


def test_a_pod_waits_for_its_volume() -> None:
    with NodesHarness(NODE) as harness:
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        harness.create(PERSISTENT_VOLUME_CLAIM, {"metadata": {"name": "data"}, "spec": claim})
        harness.pod("a", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
        harness.advance(30)
        assert harness.state("a") == {"waiting": {"reason": "ContainerCreating"}}
        harness.patch(PERSISTENT_VOLUME_CLAIM, "data", {"status": {"phase": "Bound"}}, subresource="status")
        harness.advance(5)
        assert harness.phase("a") == "Running"


def test_a_pod_waits_for_its_devices() -> None:
    with NodesHarness(NODE) as harness:
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
        harness.create(
            RESOURCE_CLAIM, {"metadata": {"name": "gpu"}, "spec": {"devices": {"requests": [request]}}}
        )
        pod = harness.pod("a", resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}])
        harness.advance(10)
        assert harness.phase("a") == "Pending"
        result = {"request": "gpu", "driver": "gpu.example.com", "pool": "pool", "device": "gpu-0"}
        user = {"resource": "pods", "name": "a", "uid": pod["metadata"]["uid"]}
        status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [user]}
        harness.patch(RESOURCE_CLAIM, "gpu", {"status": status}, subresource="status")
        harness.advance(5)
        assert harness.phase("a") == "Running"


def test_memory_above_the_limit_is_killed_and_starts_again() -> None:
    with NodesHarness(NODE) as harness:
        harness.pod("a", limits={"memory": "100Mi"}, says={"usage": "memory=50Mi+10Mi/s"})
        harness.advance(8)
        state = harness.state("a")["terminated"]
        assert (state["exitCode"], state["reason"]) == (137, "OOMKilled")
        harness.advance(1)
        assert harness.container("a")["restartCount"] == 1
        assert harness.container("a")["lastState"]["terminated"]["reason"] == "OOMKilled"


def test_a_limit_of_the_whole_pod_counts_for_containers_without_one() -> None:
    with NodesHarness(NODE) as harness:
        whole = {"limits": {"memory": "100Mi"}, "requests": {"memory": "50Mi"}}
        harness.pod("a", resources=whole, says={"usage": "memory=200Mi"}, restartPolicy="Never")
        harness.advance(5)
        assert harness.state("a")["terminated"]["reason"] == "OOMKilled"


def test_annotations_may_change_while_a_pod_runs() -> None:
    with NodesHarness(NODE) as harness:
        harness.pod("a", restartPolicy="Never")
        harness.advance(20)
        harness.patch(POD, "a", {"metadata": {"annotations": {"moorage.io/duration": "30s"}}})
        harness.advance(12)
        assert harness.phase("a") == "Running"
        harness.advance(1)
        assert harness.phase("a") == "Succeeded"


def test_an_annotation_that_cannot_be_read_is_reported_and_ignored() -> None:
    with NodesHarness(NODE) as harness:
        harness.pod("a", says={"duration": "soon"})
        harness.advance(5)
        assert harness.phase("a") == "Running"
        reason, message = harness.events("a")[0]
        assert reason == "InvalidAnnotation"
        assert message.startswith('moorage.io/duration: invalid duration "soon"')
