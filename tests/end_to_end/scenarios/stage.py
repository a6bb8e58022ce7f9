"""Where a scenario is played: a namespace, kubectl, nodes that a test adds, schedulers that it starts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import yaml

from tests.apiserver.running import Kubectl
from tests.end_to_end.scenarios.watching import Watch
from tests.run.running import RunningScheduler
from tests.up.objects import Manifest, node
from tests.up.running import TIMEOUT_SECONDS

LONG_LEASE = ("--leader-elect-lease-duration=60s", "--leader-elect-renew-deadline=50s")
"""Who takes a lease over within a test's patience has not waited for this one to end."""


class Stage:
    """A cluster in which a test is alone."""

    def __init__(self, kubectl: Kubectl, namespace: str, kubeconfig: Path, folder: Path) -> None:
        self.kubectl = kubectl
        """kubectl of the administrator, without a namespace."""
        self.namespace = namespace
        self.user = kubectl.with_options("--namespace", namespace)
        """kubectl of somebody who works in the namespace."""
        self._kubeconfig = kubeconfig
        self._folder = folder
        self._schedulers: list[RunningScheduler] = []
        self._watches: list[Watch] = []

    def start(self, *options: str) -> RunningScheduler:
        """Start a scheduler that works at once: it leaves it to the test that there are not too many."""
        return self.elect("--leader-elect=false", *options, leads=False)

    def elect(self, *options: str, leads: bool = True) -> RunningScheduler:
        """Start a scheduler that works while it leads; without `leads`, another one still does."""
        self._schedulers.append(RunningScheduler(self._kubeconfig, *options, leads=leads))
        return self._schedulers[-1]

    def configure(self, *profiles: Manifest) -> str:
        """Write a configuration, maybe over the one before; the answer is the flag that names it."""
        path = self._folder / "scheduler.yaml"
        document = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(self._kubeconfig), "qps": -1},
            "profiles": list(profiles),
        }
        path.write_text(yaml.safe_dump(document))
        return f"--config={path}"

    def add_node(self, name: str, *, cpu: str = "4", **labels: str) -> None:
        """Add a node and wait until pods may come."""
        self.kubectl.create(node(name, cpu=cpu, **labels))
        self.kubectl("wait", f"node/{name}", "--for=condition=Ready", TIMEOUT_SECONDS)

    def watch(self, *what: str) -> Watch:
        """All that happens from now on to pods of the namespace, or to what kubectl's arguments say."""
        self._watches.append(Watch(self.user, *what or ("pods",)))
        return self._watches[-1]

    def wait(self, condition: str, *pods: str) -> None:
        """Wait until a condition of all these pods is true, or is what is said: `PodScheduled=False`."""
        self.user("wait", *(f"pod/{name}" for name in pods), f"--for=condition={condition}", TIMEOUT_SECONDS)

    def pod(self, name: str) -> Manifest:
        found: Manifest = self.user.json("get", "pod", name)
        return found

    def pods(self) -> dict[str, Manifest]:
        """All pods by their names."""
        return {each["metadata"]["name"]: each for each in self.user.json("get", "pods")["items"]}

    def events(self, reason: str, name: str = "") -> list[Manifest]:
        """The events of a reason, of one object or of all; oldest first."""
        about = f",regarding.name={name}" if name else ""
        selector = f"--field-selector=reason={reason}{about}"
        found: list[Manifest] = self.user.json("get", "events.events.k8s.io", selector)["items"]
        return sorted(found, key=lambda event: str(event["eventTime"]))

    def scheduled_events(self) -> Counter[str]:
        """How often each pod, by its uid, is said to have been scheduled."""
        counts: Counter[str] = Counter()
        for event in self.events("Scheduled"):
            counts[event["regarding"]["uid"]] += (event.get("series") or {}).get("count", 1)
        return counts

    def close(self) -> None:
        """End what is still there."""
        for scheduler in self._schedulers:
            if scheduler.process.poll() is None:
                scheduler.kill()
        for watch in self._watches:
            watch.close()


def profile(name: str, **more: object) -> Manifest:
    """A profile of a scheduler's name."""
    return {"schedulerName": name, **more}


def without(plugin: str) -> Manifest:
    """What a profile says to leave a plugin out."""
    return {"multiPoint": {"disabled": [{"name": plugin}]}}


def condition(pod: Manifest, type: str) -> Manifest:
    """A condition of a pod that must have it."""
    found: Manifest = next(each for each in pod["status"]["conditions"] if each["type"] == type)
    return found


def lift_gates(stage: Stage, pod: str) -> None:
    """Let a pod be scheduled that was held back."""
    lifted = '[{"op": "remove", "path": "/spec/schedulingGates"}]'
    stage.user("patch", "pod", pod, "--type=json", f"--patch={lifted}")


def node_of(pod: Manifest) -> str:
    """Where a pod is; empty if nowhere."""
    return str(pod["spec"].get("nodeName", ""))


def uids(pods: dict[str, Manifest]) -> set[str]:
    return {each["metadata"]["uid"] for each in pods.values()}


def pods_by_node(pods: dict[str, Manifest]) -> dict[str, int]:
    """How many pods are on each node; those without one are under the empty name."""
    return dict(Counter(map(node_of, pods.values())))
