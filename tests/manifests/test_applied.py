"""What is printed is applied to an API server with RBAC, and the scheduler works as the account in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from moorage.cli.main import app
from tests.apiserver.running import Kubectl, RunningServer, manifest
from tests.manifests.conftest import Start
from tests.manifests.installing import account_kubeconfig, as_text, start
from tests.manifests.printing import Manifest, printed
from tests.run.running import SHORT_LEASE
from tests.up.objects import pod, priority_class
from tests.up.running import TIMEOUT_SECONDS

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
DEMO, SAMPLE = EXAMPLES / "demo.yaml", EXAMPLES / "sample_plugin"
OURS: dict[str, Any] = {"schedulerName": "moorage"}


@pytest.mark.parametrize("way", [(), ("--server-side",)], ids=["apply", "server-side apply"])
def test_the_api_server_takes_everything_as_it_is(kubectl: Kubectl, way: tuple[str, ...]) -> None:
    objects = printed("--name", "trial", "--namespace", "default")
    output = kubectl("apply", *way, "--dry-run=server", "-f", "-", input=as_text(objects))
    lines = output.splitlines()
    assert len(lines) == len(objects) == 15
    assert all(
        line.endswith(("created (server dry run)", "serverside-applied (server dry run)")) for line in lines
    )
    assert kubectl("get", "clusterrole", "trial", ok=False)


def test_a_second_time_nothing_changes(kubectl: Kubectl, installed: list[Manifest]) -> None:
    output = kubectl("apply", "-f", "-", input=as_text(installed))
    # A budget's selector is replaced as a whole, of which kubectl always thinks that it is a change.
    changed = [line for line in output.splitlines() if not line.endswith(" unchanged")]
    assert changed == ["poddisruptionbudget.policy/moorage configured"]


def test_the_default_scheduler_finds_a_place_for_each_replica(
    kubectl: Kubectl, installed: list[Manifest]
) -> None:
    kubectl("rollout", "status", "deployment/moorage", "--namespace=kube-system", TIMEOUT_SECONDS)
    selector = "app.kubernetes.io/instance=moorage"
    pods = kubectl.json("get", "pods", "--namespace=kube-system", f"--selector={selector}")["items"]
    assert {each["spec"]["schedulerName"] for each in pods} == {"default-scheduler"}
    assert len({each["spec"]["nodeName"] for each in pods}) == len(pods) == 2
    assert {each["spec"]["priority"] for each in pods} == {2_000_000_000}


def in_own_hands(document: Manifest) -> Manifest:
    """A workload of the demo whose pods ask for the installed scheduler."""
    template = document.get("spec", {}).get("template")
    spec = document.get("spec") if document["kind"] == "Pod" else (template or {}).get("spec")
    if spec is not None:
        spec.update(OURS)
    return document


def test_the_demo_runs_under_the_printed_role(kubectl: Kubectl, start_installed: Start) -> None:
    scheduler = start_installed()
    kubectl("create", "namespace", "demo")
    user = kubectl.with_options("--namespace=demo")
    demo = [
        in_own_hands(each)
        for each in yaml.safe_load_all(DEMO.read_text())
        if "namespace" not in each["metadata"]
    ]
    user("apply", "-f", "-", input=manifest(*demo))
    user("rollout", "status", "deployment/web", TIMEOUT_SECONDS)
    user("rollout", "status", "statefulset/store", TIMEOUT_SECONDS)
    user("wait", "pod/too-large", "--for=condition=PodScheduled=False", TIMEOUT_SECONDS)
    volumes = user.json("get", "pvc")["items"]
    assert {each["status"]["phase"] for each in volumes} == {"Bound"}
    events = user.json("get", "events", "--field-selector=involvedObject.name=too-large")["items"]
    assert {each["reportingComponent"] for each in events if each["reason"] == "FailedScheduling"} == {
        "moorage"
    }
    scheduler.stop()
    assert "forbidden" not in scheduler.log, scheduler.log
    kubectl("delete", "namespace", "demo", TIMEOUT_SECONDS)


def test_the_sample_plugin_runs_under_the_printed_role(
    server: RunningServer, kubectl: Kubectl, tmp_path: Path
) -> None:
    config = tmp_path / "converted.yaml"
    CliRunner().invoke(app, ["config", "convert", str(SAMPLE / "old-config.yaml"), "-o", str(config)])
    objects = printed("--name", "sample", "--config", config, "--plugin", SAMPLE / "sample_plugin.py")
    kubectl("apply", "-f", "-", input=as_text(objects))
    kubeconfig = account_kubeconfig(server, kubectl, "sample", tmp_path)
    with start(objects, kubeconfig, tmp_path, name="sample") as scheduler:
        kubectl("create", "namespace", "sample")
        user = kubectl.with_options("--namespace=sample")
        user("apply", "-f", str(SAMPLE / "deployment.yaml"))
        user("rollout", "status", "deployment/sample", TIMEOUT_SECONDS)
    assert "prebind pod: sample-" in scheduler.log, scheduler.log
    assert "forbidden" not in scheduler.log, scheduler.log
    kubectl("delete", "namespace", "sample", TIMEOUT_SECONDS)


def test_room_is_made_under_the_printed_role(kubectl: Kubectl, start_installed: Start) -> None:
    scheduler = start_installed()
    kubectl("create", "namespace", "crowded")
    user = kubectl.with_options("--namespace=crowded")
    user.create(priority_class("urgent", 1000))
    small = [pod(f"small-{number}", cpu="5", terminationGracePeriodSeconds=1, **OURS) for number in range(3)]
    user.create(*small)
    user("wait", "pod", "--all", "--for=condition=Ready", TIMEOUT_SECONDS)
    user.create(pod("large", cpu="6", priorityClassName="urgent", **OURS))
    user("wait", "pod/large", "--for=condition=Ready", TIMEOUT_SECONDS)
    events = user.json("get", "events", "--field-selector=reason=Preempted")["items"]
    assert len(events) == 1
    scheduler.stop()
    assert "forbidden" not in scheduler.log, scheduler.log
    kubectl("delete", "namespace", "crowded", TIMEOUT_SECONDS)


def device_objects() -> list[dict[str, Any]]:
    """One device, which is in a class and stands for a resource."""
    group = {"apiVersion": "resource.k8s.io/v1"}
    pool = {"name": "node-0", "generation": 1, "resourceSliceCount": 1}
    devices = {"driver": "gpu.example.com", "nodeName": "node-0", "pool": pool}
    request = {"name": "one", "exactly": {"deviceClassName": "gpu"}}
    return [
        {**group, "kind": "DeviceClass", "metadata": {"name": "gpu"},
         "spec": {"extendedResourceName": "example.com/gpu"}},
        {**group, "kind": "ResourceSlice", "metadata": {"name": "node-0"},
         "spec": {**devices, "devices": [{"name": "d0"}, {"name": "d1"}]}},
        {**group, "kind": "ResourceClaimTemplate", "metadata": {"name": "a-gpu"},
         "spec": {"spec": {"devices": {"requests": [request]}}}},
    ]  # fmt: skip


def test_devices_are_given_under_the_printed_role(kubectl: Kubectl, start_installed: Start) -> None:
    scheduler = start_installed()
    kubectl("create", "namespace", "devices")
    user = kubectl.with_options("--namespace=devices")
    user.create(*device_objects())
    by_claim = pod("by-claim", **OURS, resourceClaims=[{"name": "it", "resourceClaimTemplateName": "a-gpu"}])
    amounts = {"example.com/gpu": "1"}
    by_resource = pod("by-resource", limits=amounts, **OURS)
    user.create(by_claim, by_resource)
    user("wait", "pod", "--all", "--for=condition=PodScheduled", TIMEOUT_SECONDS)
    assert len(user.json("get", "resourceclaims")["items"]) == 2
    scheduler.stop()
    assert "forbidden" not in scheduler.log, scheduler.log
    kubectl("delete", "namespace", "devices", TIMEOUT_SECONDS)


def test_replicas_take_turns_under_the_printed_role(
    server: RunningServer, kubectl: Kubectl, start_installed: Start, tmp_path: Path
) -> None:
    first = start_installed(*SHORT_LEASE)
    second = start_installed(leads=False)
    reader = account_kubeconfig(server, kubectl, "moorage-metrics", tmp_path)
    token = yaml.safe_load(reader.read_text())["users"][0]["user"]["token"]
    assert 'leader_election_master_status{name="kube-scheduler"} 1' in first.get("/metrics", token).text
    assert second.get("/metrics", token).status == 200
    assert first.get("/configz", token).status == 403
    assert first.get("/metrics").status == 403
    first.kill()
    second.says("Successfully acquired lease")
    kubectl("create", "namespace", "turns")
    user = kubectl.with_options("--namespace=turns")
    user.create(pod("p", **OURS))
    user("wait", "pod/p", "--for=condition=Ready", TIMEOUT_SECONDS)
    lease = kubectl.json("get", "lease", "moorage", "--namespace=kube-system")
    assert lease["spec"]["leaseTransitions"] >= 1
    second.stop()
    for each in (first, second):
        assert "forbidden" not in each.log, each.log
        assert "may not be read" not in each.log, each.log
    kubectl("delete", "namespace", "turns", TIMEOUT_SECONDS)
