from __future__ import annotations

import pytest

from tests.apiserver.kubectl.objects import configmap, pod, replica_set
from tests.apiserver.running import Kubectl

CASCADES = {
    "background": [],
    "foreground": [],
    "orphan": ["replicaset.apps/owned"],
}


@pytest.mark.parametrize(("cascade", "left"), CASCADES.items(), ids=CASCADES)
def test_dependents(kubectl: Kubectl, cascade: str, left: list[str]) -> None:
    kubectl("create", "deployment", "owner", "--image=x")
    kubectl.create(replica_set("owned", kubectl.json("get", "deployment", "owner")))
    deleted = kubectl("delete", "deployment", "owner", f"--cascade={cascade}", "--timeout=20s")
    assert deleted.startswith('deployment.apps "owner" deleted')
    if not left:
        kubectl("wait", "--for=delete", "replicaset/owned", "--timeout=20s")
    assert kubectl("get", "deployments,replicasets", "-o", "name").split() == left
    if left:
        assert "ownerReferences" not in kubectl.json("get", "replicaset", "owned")["metadata"]


def test_finalizers_hold_an_object(kubectl: Kubectl) -> None:
    held = configmap("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    kubectl.create(held)
    kubectl("delete", "configmap", "held", "--wait=false")
    metadata = kubectl.json("get", "configmap", "held")["metadata"]
    assert metadata["deletionTimestamp"]
    more = '{"metadata":{"finalizers":["example.com/hold","example.com/more"]}}'
    refused = kubectl("patch", "configmap", "held", "--type=merge", "-p", more, ok=False)
    assert "no new finalizers can be added if the object is being deleted" in refused
    kubectl("patch", "configmap", "held", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    assert 'configmaps "held" not found' in kubectl("get", "configmap", "held", ok=False)


def test_a_bound_pod_has_its_grace_period(kubectl: Kubectl) -> None:
    kubectl.create(pod("bound", nodeName="somewhere"), pod("unbound"))
    kubectl("delete", "pods", "bound", "unbound", "--wait=false")
    (bound,) = kubectl.json("get", "pods")["items"]
    assert bound["metadata"]["deletionGracePeriodSeconds"] == 30
    assert "bound   0/1     Terminating" in kubectl("get", "pods")
    kubectl("delete", "pod", "bound", "--force")
    assert kubectl("get", "pods", "-o", "name") == ""


def test_delete_many(kubectl: Kubectl) -> None:
    kubectl.create(*(configmap(f"map-{number}", {"odd": str(number % 2)}) for number in range(6)))
    deleted = kubectl("delete", "configmaps", "-l", "odd=1")
    assert [line.split('"')[1] for line in deleted.splitlines()] == ["map-1", "map-3", "map-5"]
    kubectl("delete", "configmaps", "--all")
    assert "map-" not in kubectl("get", "configmaps", "-o", "name")


def test_a_namespace_goes_with_its_content(kubectl: Kubectl, namespace: str) -> None:
    held = pod("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    kubectl.create(held, configmap("one"))
    kubectl("create", "deployment", "shop", "--image=x")
    kubectl("delete", "namespace", namespace, "--wait=false")
    assert f"{namespace}   Terminating" in kubectl("get", "namespace", namespace)
    refused = kubectl("create", "configmap", "late", ok=False)
    assert f"unable to create new content in namespace {namespace} because it is being terminated" in refused
    kubectl("get", "deployment/shop", "configmap/one")  # They go after the pods.
    kubectl("patch", "pod", "held", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    kubectl("wait", "--for=delete", f"namespace/{namespace}", "--timeout=20s")
    assert f'namespaces "{namespace}" not found' in kubectl("create", "configmap", "later", ok=False)
    forbidden = kubectl("delete", "namespace", "kube-system", ok=False)
    assert 'namespaces "kube-system" is forbidden: this namespace may not be deleted' in forbidden


def test_wait(kubectl: Kubectl) -> None:
    kubectl.create(pod("web"))
    late = kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=50ms", ok=False)
    assert "timed out waiting for the condition on pods/web" in late
    waiting = kubectl.start("wait", "--for=condition=Ready", "pod/web", "--timeout=100s")
    kubectl(
        "patch", "pod", "web", "--subresource=status",
        "-p", '{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}',
    )  # fmt: skip
    output, _ = waiting.communicate(timeout=40)
    assert (output, waiting.returncode) == ("pod/web condition met\n", 0)
    kubectl("wait", "--for=jsonpath={.status.phase}=Running", "pod/web", "--timeout=20s")
