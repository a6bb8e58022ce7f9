from __future__ import annotations

import json

import pytest

from tests.apiserver.kubectl.objects import binding, node, pod
from tests.apiserver.running import Kubectl


@pytest.fixture
def named_node(kubectl: Kubectl, namespace: str) -> str:
    """A node of this test's own."""
    name = f"node-of-{namespace}"
    kubectl.create(node(name))
    return name


def taints(kubectl: Kubectl, name: str) -> set[str]:
    template = "{range .spec.taints[*]}{.key}={.value}:{.effect} {end}"
    return set(kubectl("get", "node", name, "-o", f"jsonpath={template}").split())


def test_taint_and_cordon(kubectl: Kubectl, named_node: str) -> None:
    unready = "node.kubernetes.io/not-ready=:NoSchedule"
    assert taints(kubectl, named_node) == {unready}
    assert kubectl("taint", "node", named_node, "gpu=yes:NoSchedule", "gpu=yes:NoExecute").endswith(
        " tainted\n"
    )
    assert taints(kubectl, named_node) == {unready, "gpu=yes:NoSchedule", "gpu=yes:NoExecute"}
    assert "already has gpu taint" in kubectl("taint", "node", named_node, "gpu=no:NoSchedule", ok=False)
    kubectl("taint", "node", named_node, "gpu:NoExecute-")
    assert taints(kubectl, named_node) == {unready, "gpu=yes:NoSchedule"}
    assert kubectl("cordon", named_node).endswith(" cordoned\n")
    assert "Ready,SchedulingDisabled" in kubectl("get", "node", named_node)
    assert kubectl("uncordon", named_node).endswith(" uncordoned\n")
    assert "SchedulingDisabled" not in kubectl("get", "node", named_node)
    assert kubectl("label", "node", named_node, "node-role.kubernetes.io/worker=").endswith(" labeled\n")
    wide = kubectl("get", "node", named_node, "-o", "wide").splitlines()[1].split()
    assert wide[1:3] == ["Ready", "worker"]


def bind(kubectl: Kubectl, namespace: str, name: str, target: str, *, ok: bool = True) -> str:
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/binding"
    return kubectl("create", "--raw", path, "-f", "-", input=json.dumps(binding(name, target)), ok=ok)


def test_bind(kubectl: Kubectl, namespace: str, named_node: str) -> None:
    gated = pod("gated", schedulingGates=[{"name": "example.com/gate"}])
    kubectl.create(pod("web"), gated)
    assert json.loads(bind(kubectl, namespace, "web", named_node))["status"] == "Success"
    assert named_node in kubectl("get", "pod", "web", "-o", "wide")
    scheduled = kubectl.json("get", "pod", "web")["status"]["conditions"][0]
    assert (scheduled["type"], scheduled["status"]) == ("PodScheduled", "True")
    assert (
        'Error from server (Conflict): Operation cannot be fulfilled on pods/binding "web": '
        f'pod web is already assigned to node "{named_node}"'
        in bind(kubectl, namespace, "web", named_node, ok=False)
    )
    assert (
        'Operation cannot be fulfilled on pods/binding "gated": '
        "pod gated has non-empty .spec.schedulingGates"
        in bind(kubectl, namespace, "gated", named_node, ok=False)
    )
    assert 'pods "none" not found' in bind(kubectl, namespace, "none", named_node, ok=False)
    by_node = ("--field-selector", f"spec.nodeName={named_node}", "-o", "name")
    assert kubectl("get", "pods", *by_node) == "pod/web\n"


def lines_until_retry(kubectl: Kubectl, *arguments: str) -> list[str]:
    """The lines of a command up to where it says that it will try again."""
    lines: list[str] = []
    draining = kubectl.start(*arguments)
    assert draining.stdout is not None
    try:
        for line in draining.stdout:
            lines.append(line)
            if "will retry" in line:
                break
    finally:
        draining.kill()
        draining.communicate()
    return lines


def test_drain(kubectl: Kubectl, namespace: str, named_node: str) -> None:
    kubectl.create(pod("web", nodeName=named_node), pod("elsewhere", nodeName="another"))
    kubectl("create", "poddisruptionbudget", "web", "--selector=app=web", "--min-available=1")
    kubectl("patch", "pod", "web", "--subresource=status", "-p", json.dumps({"status": {
        "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}))  # fmt: skip

    def budget(allowed: int) -> None:
        status = {"observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": 1,
                  "desiredHealthy": 1, "expectedPods": 1}  # fmt: skip
        patch = json.dumps({"status": status})
        kubectl("patch", "pdb", "web", "--subresource=status", "--type=merge", "-p", patch)

    drain = ("drain", named_node, "--grace-period=0", "--timeout=20s")
    assert "cannot delete Pods that declare no controller" in kubectl(*drain, ok=False)
    budget(0)
    assert (
        f'error when evicting pods/"web" -n "{namespace}" (will retry after 5s): '
        "Cannot evict pod as it would violate the pod's disruption budget.\n"
    ) in lines_until_retry(kubectl, *drain, "--force")
    budget(1)
    assert f"node/{named_node} drained" in kubectl(*drain, "--force")
    assert kubectl("get", "pods", "-o", "name") == "pod/elsewhere\n"
    assert "SchedulingDisabled" in kubectl("get", "node", named_node)
    assert kubectl.json("get", "pdb", "web")["status"]["disruptionsAllowed"] == 0
