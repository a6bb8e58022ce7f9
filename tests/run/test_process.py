"""`moorage run` against a server in another process, with no more rights than kube-scheduler has."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from tests.apiserver.running import Kubectl
from tests.run.running import SHORT_LEASE, RunningScheduler
from tests.up.objects import pod

Start = Callable[..., RunningScheduler]

TIMEOUT_SECONDS = "--timeout=100s"
SCHEDULED = "--for=condition=PodScheduled"
LEASE = ("lease/kube-scheduler", "--namespace=kube-system")


def create(kubectl: Kubectl, *pods: dict[str, Any]) -> None:
    kubectl.create(*pods)


def configuration(path: Path, kubeconfig: Path, *profiles: Any) -> str:
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "parallelism": 4,
        "profiles": list(profiles),
    }
    path.write_text(yaml.safe_dump(document))
    return f"--config={path}"


def profile(name: str) -> dict[str, Any]:
    return {"schedulerName": name}


def events_of(kubectl: Kubectl, reason: str) -> set[str]:
    items = kubectl.json("get", "events", f"--field-selector=reason={reason}")["items"]
    return {event["involvedObject"]["name"] for event in items}


def test_pods_are_bound_and_told_of_with_only_the_bootstrap_roles(kubectl: Kubectl, start: Start) -> None:
    scheduler = start("--logging-format=json")
    create(kubectl, pod("fits", cpu="100m"), pod("too-big", cpu="999"))
    kubectl("wait", "pod/fits", SCHEDULED, TIMEOUT_SECONDS)
    kubectl("wait", "pod/too-big", f"{SCHEDULED}=False", TIMEOUT_SECONDS)
    scheduler.stop()
    fits = kubectl("describe", "pod", "fits")
    assert re.search(r"Node: +n1", fits), fits
    assert re.search(r"Normal +Scheduled .*default-scheduler +Successfully assigned default/fits to n1", fits)
    too_big = kubectl("describe", "pod", "too-big")
    assert re.search(r"Warning +FailedScheduling .*0/1 nodes are available: 1 Insufficient cpu", too_big)
    assert re.search(r"PodScheduled +False", too_big)
    assert "forbidden" not in scheduler.log, scheduler.log
    assert all(set(json.loads(line)) >= {"ts", "msg"} for line in scheduler.log.splitlines())
    kubectl("delete", "pod", "fits", "too-big", "--grace-period=0", "--force")


def test_a_leader_that_ends_hands_over_at_once_and_one_that_is_killed_after_its_lease(
    kubectl: Kubectl, start: Start
) -> None:
    first = start()
    second = start(*SHORT_LEASE, leads=False)
    second.says("New leader elected")
    assert second.get("/readyz").status == 200  # It knows the cluster, and is ready to take over.
    first.stop()
    second.says("Successfully acquired lease")
    third = start(leads=False)
    second.kill()
    third.says("Successfully acquired lease")
    create(kubectl, pod("after", cpu="10m"))
    kubectl("wait", "pod/after", SCHEDULED, TIMEOUT_SECONDS)
    third.stop()
    lease = kubectl.json("get", *LEASE)["spec"]
    assert lease["holderIdentity"] == ""
    kubectl("delete", "pod", "after", "--grace-period=0", "--force")


def test_a_lost_lease_ends_the_process_with_status_1(kubectl: Kubectl, start: Start) -> None:
    scheduler = start()
    stolen = {"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 1}}
    kubectl("patch", *LEASE, "--type=merge", f"--patch={json.dumps(stolen)}")
    scheduler.says("Leaderelection lost")
    assert scheduler.ended() == 1


def test_profiles_are_reloaded_without_losing_the_queue(
    kubectl: Kubectl, start: Start, kubeconfig: Path, tmp_path: Path
) -> None:
    path = tmp_path / "scheduler.yaml"
    scheduler = start(configuration(path, kubeconfig, profile("default-scheduler")))
    create(kubectl, pod("waits", cpu="999"), pod("others", cpu="10m", schedulerName="second"))
    kubectl("wait", "pod/waits", f"{SCHEDULED}=False", TIMEOUT_SECONDS)
    path.write_text("kind: Nonsense")
    scheduler.send(signal.SIGHUP)
    scheduler.says("Failed to reload the configuration")
    configuration(path, kubeconfig, profile("default-scheduler"), profile("second"))
    scheduler.send(signal.SIGHUP)
    assert 'profiles=["default-scheduler","second"]' in scheduler.says("Reloaded the configuration")
    kubectl("wait", "pod/others", SCHEDULED, TIMEOUT_SECONDS)
    scheduler.send(signal.SIGUSR2)
    queue = json.loads(scheduler.says("Dump of scheduling queue").partition("pods=")[2])
    waiting = {entry["pod"] for entries in queue.values() for entry in entries}
    assert waiting == {"default/waits"}
    scheduler.says("Cache matches the API server")
    scheduler.stop()
    assert '"Configuration field has no effect" field="parallelism: plugins are asked' in scheduler.log
    events = kubectl.json("get", "events", "--field-selector=reason=Scheduled,involvedObject.name=others")
    assert [event["reportingComponent"] for event in events["items"]] == ["second"]
    kubectl("delete", "pod", "waits", "others", "--grace-period=0", "--force")


def test_bindings_under_way_are_finished_and_told_of_before_the_process_ends(
    kubectl: Kubectl, start: Start
) -> None:
    scheduler = start("--kube-api-qps=30", "--kube-api-burst=20")
    names = [f"many-{number}" for number in range(30)]
    create(kubectl, *(pod(name, cpu="10m") for name in names))
    kubectl("wait", "pod/many-0", SCHEDULED, TIMEOUT_SECONDS)
    scheduler.stop()
    pods = kubectl.json("get", "pods")["items"]
    bound = {each["metadata"]["name"] for each in pods if each["spec"].get("nodeName")}
    assert bound
    assert events_of(kubectl, "Scheduled") >= bound
    kubectl("delete", "pods", "--all", "--grace-period=0", "--force", "--wait=false")
