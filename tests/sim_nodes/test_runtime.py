"""Kubelets with containers that are not simulated: what a runtime reports is what a pod's status says."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from moorage.api.manifests import Manifest
from moorage.client.kinds import NODE, POD
from moorage_cluster.nodes.settings import NodeTemplate
from moorage_cluster.nodes.simulated_program import Program
from moorage_cluster.nodes.workload import Ended, Host, Probed, RecordEvent, Report, StartDelayed, Started
from tests.sim_nodes.harness import NodesHarness

ADDRESS = "127.64.0.2"


class FakeWorkload:
    """Reports what it is told to, and notes what is asked of it."""

    def __init__(self, program: Program, wake: Callable[[], None]) -> None:
        self.program = program
        self.asked: list[object] = []
        self._wake = wake
        self._reports: deque[Report] = deque()

    due = None
    is_simulated = False

    def start(self, now: float) -> None:
        self.asked.append("start")

    def adopt(self, since: float, *, is_ready: bool) -> bool:
        return False

    def next_report(self, now: float) -> Report | None:
        return self._reports.popleft() if self._reports else None

    def stop(self, now: float, grace_seconds: float, *, after_completion: bool = False) -> None:
        self.asked.append(("stop", grace_seconds))

    def discard(self, grace_seconds: float) -> None:
        self.asked.append(("discard", grace_seconds))

    def reports(self, *reports: Report) -> None:
        self._reports.extend(reports)
        self._wake()


class FakeRuntime:
    """Runs the containers called `real`; it is its own sandbox, as there is one pod."""

    def __init__(self) -> None:
        self.address = ADDRESS
        self.is_ready = False
        self.is_prepared = self.is_closed = False
        self.workloads: dict[str, FakeWorkload] = {}
        self.wake: Callable[[], None] = lambda: None

    def sandbox(
        self, pod: Manifest, host: Host, wake: Callable[[], None], record_event: RecordEvent
    ) -> FakeRuntime:
        self.host, self.wake, self.record_event = host, wake, record_event
        return self

    def prepare(self) -> None:
        self.is_prepared = True

    def update(self, pod: Manifest) -> None:
        self.pod = pod

    def workload(self, container: Manifest, program: Program, *, has_readiness: bool) -> FakeWorkload | None:
        if not container["name"].startswith("real"):
            return None
        return self.workloads.setdefault(container["name"], FakeWorkload(program, self.wake))

    def close(self) -> None:
        self.is_closed = True

    @property
    def main(self) -> FakeWorkload:
        return self.workloads["real"]


class RuntimeHarness(NodesHarness):
    """A world with one pod, whose main container is real and has been told to start."""

    def __init__(self, **spec: Any) -> None:
        self.runtime = FakeRuntime()
        super().__init__(NodeTemplate(), runtime=self.runtime)
        self.pod("a", container={"name": "real"}, **spec)
        self.runtime.is_ready = True
        self.runtime.wake()
        self.advance(5)

    def main_reports(self, *reports: Report) -> None:
        self.runtime.main.reports(*reports)
        self.settle()

    @property
    def started(self) -> Started:
        return Started(self.clock.now())


def test_a_pod_waits_for_its_sandbox() -> None:
    runtime = FakeRuntime()
    with NodesHarness(NodeTemplate(), runtime=runtime) as harness:
        harness.pod("a", container={"name": "real"})
        harness.advance(60)
        assert (runtime.is_prepared, runtime.main.asked) == (True, [])
        assert harness.state("a", "real") == {"waiting": {"reason": "ContainerCreating"}}
        runtime.is_ready = True
        runtime.wake()
        harness.advance(5)
        assert runtime.main.asked == ["start"]
        assert runtime.host.name == "node-0"


def test_a_container_runs_once_it_says_so() -> None:
    with RuntimeHarness() as harness:
        assert "podIP" not in harness.status("a")
        harness.main_reports(StartDelayed(0, "CreateContainerConfigError", 'configmap "x" not found'))
        assert harness.state("a", "real")["waiting"]["reason"] == "CreateContainerConfigError"
        harness.main_reports(Started(harness.clock.now(), is_started=False))
        status = harness.container("a", "real")
        assert (status["started"], status["ready"], harness.phase("a")) == (False, False, "Running")
        assert harness.status("a")["podIP"] == ADDRESS
        harness.main_reports(Probed(0, is_started=True, is_ready=False))
        status = harness.container("a", "real")
        assert (status["started"], status["ready"]) == (True, False)
        harness.main_reports(Probed(0, is_started=True, is_ready=True))
        assert harness.ready("a") == "True"
        harness.main_reports(Probed(0, is_started=True, is_ready=False))
        assert harness.ready("a") == "False"


def test_a_container_that_ends_starts_again_after_a_pause() -> None:
    with RuntimeHarness() as harness:
        runtime = harness.runtime
        harness.main_reports(harness.started, Ended(harness.clock.now(), 3, "Error", "said so"))
        terminated = harness.state("a", "real")["terminated"]
        assert (terminated["exitCode"], terminated["reason"], terminated["message"]) == (
            3,
            "Error",
            "said so",
        )
        assert harness.phase("a") == "Running"
        harness.advance(1)
        assert runtime.main.asked == ["start", "start"]
        assert harness.container("a", "real")["restartCount"] == 0
        harness.main_reports(harness.started)
        assert harness.container("a", "real")["restartCount"] == 1
        harness.main_reports(Ended(harness.clock.now(), 3, "Error"))
        assert harness.state("a", "real")["waiting"]["reason"] == "CrashLoopBackOff"
        harness.advance(10)
        assert runtime.main.asked == ["start"] * 3
        assert harness.state("a", "real")["waiting"]["reason"] == "CrashLoopBackOff"


def test_a_container_that_could_not_start_has_no_start_time() -> None:
    with RuntimeHarness(restartPolicy="Never") as harness:
        harness.main_reports(Ended(harness.clock.now(), 128, "StartError", 'exec: "nothing"'))
        terminated = harness.state("a", "real")["terminated"]
        assert terminated["reason"] == "StartError"
        assert "startedAt" not in terminated
        assert harness.phase("a") == "Failed"


def test_a_deleted_pod_goes_when_its_containers_have_ended() -> None:
    with RuntimeHarness(terminationGracePeriodSeconds=30) as harness:
        runtime = harness.runtime
        harness.main_reports(harness.started)
        harness.delete(POD, "a")
        harness.advance(29)
        assert set(runtime.main.asked) == {"start", ("stop", 30)}
        assert harness.phase("a") == "Running"
        harness.main_reports(Ended(harness.clock.now(), 0, "Completed"))
        assert harness.list(POD, "default") == []
        assert runtime.is_closed


def test_sidecars_end_before_their_pod_has() -> None:
    runtime = FakeRuntime()
    with NodesHarness(NodeTemplate(), runtime=runtime) as harness:
        sidecar = {"name": "real", "image": "app", "restartPolicy": "Always"}
        runtime.is_ready = True
        harness.pod("a", initContainers=[sidecar], restartPolicy="Never", says={"duration": "5s"})
        harness.advance(2)
        runtime.main.reports(Started(harness.clock.now()), Probed(0, is_started=True, is_ready=True))
        harness.advance(20)
        assert ("stop", 30) in runtime.main.asked
        assert harness.phase("a") == "Running"
        runtime.main.reports(Ended(harness.clock.now(), 143, "Error"))
        harness.settle()
        assert harness.phase("a") == "Succeeded"
        assert harness.state("a", "real")["terminated"]["exitCode"] == 143


NODE_BEFORE = {
    "metadata": {"name": "old"},
    "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
}


def test_what_is_gone_with_its_kubelet_begins_again_with_init_containers() -> None:
    runtime = FakeRuntime()

    def before(harness: NodesHarness) -> None:
        harness.create(NODE, NODE_BEFORE)
        init = {"name": "real-init", "image": "app"}
        harness.pod("a", "old", container={"name": "real"}, initContainers=[init])
        harness.run_pods()
        ended = {"name": "real-init", "image": "app", "imageID": "", "ready": True, "restartCount": 0}
        ended["state"] = {"terminated": {"exitCode": 0, "reason": "Completed"}}
        status = {"podIP": "127.99.0.9", "podIPs": [{"ip": "127.99.0.9"}], "initContainerStatuses": [ended]}
        harness.patch(POD, "a", {"status": status}, subresource="status")

    with NodesHarness(before=before, runtime=runtime) as harness:
        runtime.is_ready = True
        runtime.wake()
        harness.advance(5)
        assert (runtime.workloads["real-init"].asked, runtime.main.asked) == (["start"], [])
        runtime.workloads["real-init"].reports(
            Started(harness.clock.now()), Ended(harness.clock.now(), 0, "Completed")
        )
        harness.advance(5)
        assert runtime.main.asked == ["start"]
        runtime.main.reports(Started(harness.clock.now()))
        harness.settle()
        assert harness.container("a", "real")["restartCount"] == 1
        assert harness.status("a")["podIPs"] == [{"ip": ADDRESS}]
