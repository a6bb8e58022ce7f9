from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from tests.apiserver.running import Kubectl


class Case(NamedTuple):
    """A command, what it makes and one of that object's fields."""

    command: str
    resource: str
    field: str
    value: Any


RBAC = "rbac.authorization.k8s.io"
CASES = {
    "configmap": Case("configmap NAME --from-literal=a=b", "configmaps", "data", {"a": "b"}),
    "secret": Case("secret generic NAME --from-literal=a=b", "secrets", "data", {"a": "Yg=="}),
    "service account": Case("serviceaccount NAME", "serviceaccounts", "kind", "ServiceAccount"),
    "role": Case(
        "role NAME --verb=get,list --resource=pods,deployments.apps",
        f"roles.{RBAC}",
        "rules",
        [
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
            {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list"]},
        ],
    ),
    "role binding": Case(
        "rolebinding NAME --clusterrole=system:kube-scheduler --serviceaccount=here:one",
        f"rolebindings.{RBAC}",
        "subjects",
        [{"kind": "ServiceAccount", "name": "one", "namespace": "here"}],
    ),
    "cluster role": Case(
        "clusterrole NAME --verb=get --resource=nodes --resource-name=n1",
        f"clusterroles.{RBAC}",
        "rules",
        [{"apiGroups": [""], "resources": ["nodes"], "resourceNames": ["n1"], "verbs": ["get"]}],
    ),
    "cluster role binding": Case(
        "clusterrolebinding NAME --clusterrole=cluster-admin --user=somebody",
        f"clusterrolebindings.{RBAC}",
        "roleRef",
        {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
    ),
    "quota": Case(
        "quota NAME --hard=secrets=3,requests.storage=2Gi",
        "resourcequotas",
        "spec",
        {"hard": {"secrets": "3", "requests.storage": "2Gi"}},
    ),
    "disruption budget": Case(
        "poddisruptionbudget NAME --selector=a=b --min-available=50%",
        "poddisruptionbudgets.policy",
        "spec",
        {"minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}}},
    ),
    "priority class": Case(
        "priorityclass NAME --value=7 --preemption-policy=Never",
        "priorityclasses.scheduling.k8s.io",
        "preemptionPolicy",
        "Never",
    ),
    "namespace": Case("namespace NAME", "namespaces", "spec", {"finalizers": ["kubernetes"]}),
    "service": Case(
        "service externalname NAME --external-name=example.com", "services", "status", {"loadBalancer": {}}
    ),
    "deployment": Case(
        "deployment NAME --image=x", "deployments.apps", "metadata.labels", {"app": "a-deployment"}
    ),
}


@pytest.fixture(scope="module")
def creating(anywhere: Kubectl) -> Kubectl:
    anywhere("create", "namespace", "creating")
    return anywhere.with_options("--namespace=creating")


@pytest.mark.parametrize(("kind", "case"), CASES.items(), ids=CASES)
def test_create(creating: Kubectl, kind: str, case: Case) -> None:
    name = f"a-{kind.replace(' ', '-')}"
    command = case.command.replace("NAME", name).split()
    assert creating("create", *command).endswith(f"/{name} created\n")
    value = creating.json("get", case.resource, name)
    for field in case.field.split("."):
        value = value[field]
    assert value == case.value
    assert f'{case.resource} "{name}" already exists' in creating("create", *command, ok=False)


def test_jobs(kubectl: Kubectl) -> None:
    kubectl("create", "job", "now", "--image=busybox", "--", "date")
    kubectl("create", "cronjob", "later", "--image=busybox", "--schedule=*/5 * * * *")
    assert kubectl("create", "job", "by-hand", "--from=cronjob/later") == "job.batch/by-hand created\n"
    now, by_hand = kubectl.json("get", "jobs", "now", "by-hand")["items"]
    uid = now["metadata"]["uid"]
    assert now["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert now["spec"]["template"]["metadata"]["labels"]["job-name"] == "now"
    assert by_hand["metadata"]["annotations"] == {"cronjob.kubernetes.io/instantiate": "manual"}
    assert by_hand["metadata"]["ownerReferences"][0]["name"] == "later"
    assert "*/5 * * * *   <none>     False     0        <none>" in kubectl("get", "cronjobs")
    wrong = kubectl("create", "cronjob", "wrong", "--image=x", "--schedule=often", ok=False)
    assert 'spec.schedule: Invalid value: "often"' in wrong


def test_services(kubectl: Kubectl) -> None:
    kubectl("create", "service", "clusterip", "inner", "--tcp=80:8080")
    kubectl("create", "service", "nodeport", "outer", "--tcp=80")
    inner, outer = (item["spec"] for item in kubectl.json("get", "services", "inner", "outer")["items"])
    assert inner["clusterIP"] != outer["clusterIP"]
    assert inner["ports"] == [{"name": "80-8080", "port": 80, "protocol": "TCP", "targetPort": 8080}]
    assert 30000 <= outer["ports"][0]["nodePort"] < 32768
    changed = kubectl("patch", "service", "inner", "-p", '{"spec":{"clusterIP":"10.96.0.77"}}', ok=False)
    assert 'spec.clusterIPs[0]: Invalid value: ["10.96.0.77"]: may not change once set' in changed


def test_run(kubectl: Kubectl) -> None:
    command = ("run", "task", "--image=busybox", "--restart=Never", "--env=A=b", "--labels=team=x")
    assert kubectl(*command, "--dry-run=server", "-o", "name") == "pod/task\n"
    assert kubectl("get", "pods") == ""
    assert kubectl(*command, "--", "sleep", "1") == "pod/task created\n"
    (task,) = kubectl.json("get", "pods", "-l", "team=x")["items"]
    spec = task["spec"]
    assert spec["restartPolicy"] == "Never"
    assert spec["containers"][0]["env"] == [{"name": "A", "value": "b"}]
    assert spec["containers"][0]["args"] == ["sleep", "1"]
    assert spec["containers"][0]["imagePullPolicy"] == "Always"
