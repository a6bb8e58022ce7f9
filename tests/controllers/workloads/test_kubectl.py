"""What users do with workloads, with the kubectl they know."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.running import Kubectl
from tests.controllers.workloads.live import LiveCluster
from tests.controllers.workloads.objects import workload


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    folder: Path = tmp_path_factory.mktemp("live")
    with LiveCluster(folder) as live:
        yield Kubectl(live, folder)  # type: ignore[arg-type]  # only its kubeconfig is asked for


def created(kubectl: Kubectl, api_version: str, kind: str, **spec: Any) -> str:
    name = kind.lower()
    obj = {"apiVersion": api_version, "kind": kind, **workload(name, {"app": name}, **spec)}
    kubectl.create(obj)
    return f"{name}/{name}"


def image(kubectl: Kubectl, target: str) -> str:
    return kubectl("get", target, "-o", "jsonpath={.spec.template.spec.containers[0].image}")


def pod_images(kubectl: Kubectl, app: str) -> set[str]:
    path = "jsonpath={.items[*].spec.containers[0].image}"
    return set(kubectl("get", "pods", "-l", f"app={app}", "-o", path).split())


NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "one"},
    "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}},
}


def test_rolling_out_a_deployment_and_going_back(kubectl: Kubectl) -> None:
    target = created(kubectl, "apps/v1", "Deployment", replicas=4)
    assert "successfully rolled out" in kubectl("rollout", "status", target, "--timeout=100s")
    kubectl("set", "image", target, "main=app:2")
    kubectl("annotate", target, "kubernetes.io/change-cause=second")
    assert "successfully rolled out" in kubectl("rollout", "status", target, "--timeout=100s")
    assert pod_images(kubectl, "deployment") == {"app:2"}
    history = kubectl("rollout", "history", target).split("\n")
    assert [line.split() for line in history if line[:1].isdigit()] == [["1", "<none>"], ["2", "second"]]
    assert "app:1" in kubectl("rollout", "history", target, "--revision=1")
    kubectl("rollout", "undo", target)
    assert "successfully rolled out" in kubectl("rollout", "status", target, "--timeout=100s")
    assert pod_images(kubectl, "deployment") == {"app:1"}
    kubectl("rollout", "restart", target)
    assert "successfully rolled out" in kubectl("rollout", "status", target, "--timeout=100s")
    revisions = [line.split()[0] for line in kubectl("rollout", "history", target).split("\n")[2:] if line]
    assert revisions == ["2", "3", "4"]
    kubectl("scale", target, "--replicas=7")
    kubectl("wait", target, "--for=jsonpath={.status.availableReplicas}=7", "--timeout=100s")
    shown = kubectl("describe", target)
    assert "Scaled up replica set" in shown
    assert "NewReplicaSetAvailable" in shown


def test_a_paused_deployment(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "paused", "--image=app:1", "--replicas=2")
    kubectl("rollout", "status", "deployment/paused", "--timeout=100s")
    kubectl("rollout", "pause", "deployment/paused")
    kubectl("set", "image", "deployment/paused", "app=app:2")
    kubectl("wait", "deployment/paused", "--for=jsonpath={.status.observedGeneration}=3", "--timeout=100s")
    assert pod_images(kubectl, "paused") == {"app:1"}
    kubectl("rollout", "resume", "deployment/paused")
    kubectl("rollout", "status", "deployment/paused", "--timeout=100s")
    assert pod_images(kubectl, "paused") == {"app:2"}


def test_a_rollout_that_fails(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "failing", "--image=broken:1")
    kubectl("patch", "deployment/failing", "-p", '{"spec":{"progressDeadlineSeconds":1}}')
    output = kubectl("rollout", "status", "deployment/failing", "--timeout=100s", ok=False)
    assert "exceeded its progress deadline" in output


@pytest.mark.parametrize(
    ("kind", "spec"), [("StatefulSet", {"replicas": 3, "serviceName": "s"}), ("DaemonSet", {})]
)
def test_rolling_out_a_set_and_going_back(kubectl: Kubectl, kind: str, spec: dict[str, Any]) -> None:
    if kind == "DaemonSet":
        kubectl.create(NODE)
        kubectl("taint", "nodes", "one", "node.kubernetes.io/not-ready:NoSchedule-")
    target = created(kubectl, "apps/v1", kind, **spec)
    kubectl("rollout", "status", target, "--timeout=100s")
    kubectl("set", "image", target, "main=app:2")
    kubectl("rollout", "status", target, "--timeout=100s")
    assert pod_images(kubectl, kind.lower()) == {"app:2"}
    assert "app:1" in kubectl("rollout", "history", target, "--revision=1")
    kubectl("rollout", "undo", target)
    kubectl("rollout", "status", target, "--timeout=100s")
    assert image(kubectl, target) == "app:1"
    assert pod_images(kubectl, kind.lower()) == {"app:1"}
    revisions = [line.split()[0] for line in kubectl("rollout", "history", target).split("\n")[2:] if line]
    assert revisions == ["2", "3"]
    kubectl("delete", target, "--timeout=100s", "--cascade=foreground")
    assert pod_images(kubectl, kind.lower()) == set()


def test_a_job(kubectl: Kubectl) -> None:
    kubectl("create", "job", "sum", "--image=app:1", "--", "true")
    kubectl("wait", "job/sum", "--for=condition=complete", "--timeout=100s")
    assert kubectl("get", "job/sum", "--no-headers").split()[1:3] == ["Complete", "1/1"]
    kubectl("delete", "job/sum", "--timeout=100s")
    kubectl("wait", "pods", "-l", "job-name=sum", "--for=delete", "--timeout=100s")
