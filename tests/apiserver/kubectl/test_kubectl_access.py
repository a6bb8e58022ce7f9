from __future__ import annotations

import json

from tests.apiserver.certificate_requests import a_request
from tests.apiserver.kubectl.objects import binding, configmap, node, pod
from tests.apiserver.running import Kubectl

SCHEDULER = "--as=system:kube-scheduler"


def test_the_owner_of_the_kubeconfig_may_do_all(anywhere: Kubectl) -> None:
    assert anywhere("auth", "can-i", "*", "*", "--all-namespaces") == "yes\n"
    assert "Username    kubernetes-admin" in anywhere("auth", "whoami")
    stranger = anywhere("get", "nodes", "--token=wrong", ok=False)
    assert "You must be logged in to the server" in stranger
    assert anywhere("get", "nodes", "--as=bob", ok=False) == (
        'Error from server (Forbidden): nodes is forbidden: User "bob" cannot list resource "nodes" '
        'in API group "" at the cluster scope\n'
    )


def test_a_service_account_is_refused_and_then_allowed(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "serviceaccount", "robot")
    kubectl.create(configmap("one"))
    user = f"system:serviceaccount:{namespace}:robot"
    token = kubectl("create", "token", "robot", "--duration=10m").strip()
    robot = kubectl.with_options(f"--token={token}")
    assert user in robot("auth", "whoami")
    assert robot("get", "configmaps", ok=False) == (
        f'Error from server (Forbidden): configmaps is forbidden: User "{user}" cannot list resource '
        f'"configmaps" in API group "" in the namespace "{namespace}"\n'
    )
    assert kubectl("auth", "can-i", "list", "configmaps", f"--as={user}", ok=False) == "no\n"
    kubectl("create", "role", "reader", "--verb=get,list", "--resource=configmaps")
    kubectl("create", "rolebinding", "reader", "--role=reader", f"--serviceaccount={namespace}:robot")
    assert "one" in robot("get", "configmaps")
    assert kubectl("auth", "can-i", "list", "configmaps", f"--as={user}") == "yes\n"
    rules = [line.split() for line in robot("auth", "can-i", "--list", "--no-headers").splitlines()]
    assert ["configmaps", "[]", "[]", "[get", "list]"] in rules
    assert "cannot delete resource" in robot("delete", "configmap", "one", ok=False)
    assert "cannot list resource" in robot("get", "configmaps", "-n", "kube-system", ok=False)
    # Who has few rights cannot give away more.
    kubectl("create", "role", "giver", "--verb=create", "--resource=roles.rbac.authorization.k8s.io")
    kubectl("create", "rolebinding", "giver", "--role=giver", f"--serviceaccount={namespace}:robot")
    escalation = robot("create", "role", "more", "--verb=delete", "--resource=pods", ok=False)
    assert "is attempting to grant RBAC permissions not currently held" in escalation
    kubectl("delete", "serviceaccount", "robot")
    assert "You must be logged in to the server" in robot("get", "configmaps", ok=False)


def test_the_bootstrap_roles_of_a_scheduler(kubectl: Kubectl) -> None:
    listed = kubectl("auth", "can-i", "--list", SCHEDULER, "--no-headers")
    rules = {line.split()[0]: line.rsplit("[", 1)[1].rstrip("]\n").split() for line in listed.splitlines()}
    assert rules["pods/binding"] == ["create"]
    assert rules["bindings"] == ["create"]
    assert set(rules["pods/status"]) == {"patch", "update"}
    assert set(rules["pods"]) == {"delete", "get", "list", "watch"}
    assert set(rules["nodes"]) == {"get", "list", "watch"}
    assert set(rules["events.events.k8s.io"]) == {"create", "patch", "update"}
    # These come from system:volume-scheduler.
    assert set(rules["persistentvolumes"]) == {"get", "list", "patch", "update", "watch"}
    assert set(rules["storageclasses.storage.k8s.io"]) == {"get", "list", "watch"}
    may = ("auth", "can-i", SCHEDULER, "-q")
    assert kubectl.run(*may, "create", "pods", "--subresource=binding").returncode == 0
    assert kubectl.run(*may, "create", "pods").returncode == 1
    assert kubectl.run(*may, "update", "nodes").returncode == 1


def test_the_rbac_of_a_deployed_scheduler(kubectl: Kubectl, namespace: str) -> None:
    kubectl.create(pod("web"), node(f"node-of-{namespace}"))
    kubectl("create", "serviceaccount", "moorage")
    scheduler = kubectl.with_options(f"--token={kubectl('create', 'token', 'moorage').strip()}")
    path = f"/api/v1/namespaces/{namespace}/pods/web/binding"
    bound = json.dumps(binding("web", f"node-of-{namespace}"))
    refused = scheduler("create", "--raw", path, "-f", "-", input=bound, ok=False)
    assert 'cannot create resource "pods/binding" in API group ""' in refused
    for role in ("system:kube-scheduler", "system:volume-scheduler"):
        name = f"{namespace}-{role.removeprefix('system:')}"
        subject = f"--serviceaccount={namespace}:moorage"
        kubectl("create", "clusterrolebinding", name, f"--clusterrole={role}", subject)
    kinds = "pods,nodes,persistentvolumes,persistentvolumeclaims,storageclasses,csinodes,poddisruptionbudgets"
    scheduler("get", kinds, "--all-namespaces", "-o", "name")
    scheduler("create", "--raw", path, "-f", "-", input=bound)
    assert kubectl("get", "pod", "web", "-o", "jsonpath={.spec.nodeName}") == f"node-of-{namespace}"
    assert "cannot delete resource" in scheduler("delete", "node", f"node-of-{namespace}", ok=False)


def test_requests_for_certificates_are_approved_and_denied(anywhere: Kubectl) -> None:
    for name in ("good", "evil"):
        anywhere.create(a_request(name))
    anywhere("certificate", "approve", "good")
    anywhere("certificate", "deny", "evil")
    rows = [line.split() for line in anywhere("get", "csr", "--no-headers").splitlines()]
    assert [(row[0], row[-1]) for row in rows] == [("evil", "Denied"), ("good", "Approved")]
    reason = anywhere("get", "csr", "good", "-o", "jsonpath={.status.conditions[0].reason}")
    assert reason == "KubectlApprove"
    assert "already Approved" in anywhere("certificate", "deny", "good", ok=False)


def test_the_address_of_the_server_is_shown_in_the_cluster(anywhere: Kubectl) -> None:
    address = "jsonpath={.endpoints[0].addresses[0]}:{.ports[0].port}"
    shown = anywhere("get", "endpointslice", "kubernetes", "-o", address)
    assert f"https://{shown}" in anywhere("cluster-info")
