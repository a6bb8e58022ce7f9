from __future__ import annotations

import json
from typing import Any

import pytest

from tests.apiserver.kubectl.objects import pod
from tests.apiserver.running import Kubectl

CONTAINER = {"name": "main", "image": "x"}
LIMITED = {**CONTAINER, "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}

BAD_PODS: dict[str, tuple[dict[str, Any], str]] = {
    "name": (
        pod("Bad_Name"),
        'The Pod "Bad_Name" is invalid: metadata.name: Invalid value: "Bad_Name": '
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
        "and must start and end with an alphanumeric character",
    ),
    "no containers": (pod("web", containers=[]), 'The Pod "web" is invalid: spec.containers: Required value'),
    "no image": (
        pod("web", containers=[{"name": "main"}]),
        "spec.containers[0].image: Required value",
    ),
    "same name twice": (
        pod("web", containers=[CONTAINER, CONTAINER]),
        'spec.containers[1].name: Duplicate value: "main"',
    ),
    "restart policy": (
        pod("web", restartPolicy="Sometimes"),
        'spec.restartPolicy: Unsupported value: "Sometimes": '
        'supported values: "Always", "OnFailure", "Never"',
    ),
    "more than the limit": (
        pod("web", containers=[LIMITED]),
        'spec.containers[0].resources.requests: Invalid value: "2": '
        "must be less than or equal to cpu limit of 1",
    ),
    "unknown volume": (
        pod("web", containers=[{**CONTAINER, "volumeMounts": [{"name": "data", "mountPath": "/d"}]}]),
        'spec.containers[0].volumeMounts[0].name: Not found: "data"',
    ),
    "priority class": (
        pod("web", priorityClassName="none"),
        'pods "web" is forbidden: no PriorityClass with name none was found',
    ),
    "service account": (
        pod("web", serviceAccountName="none"),
        'error looking up service account refusals/none: serviceaccount "none" not found',
    ),
    "type of a field": (
        pod("web", priority="high"),
        'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal string into Go struct field '
        "PodSpec.spec.priority of type int32",
    ),
    "quantity": (
        pod("web", containers=[{**CONTAINER, "resources": {"limits": {"cpu": "one"}}}]),
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    ),
    "toleration": (
        pod("web", tolerations=[{"operator": "Exists", "value": "x"}]),
        "value must be empty when `operator` is 'Exists'",
    ),
}


@pytest.fixture(scope="module")
def refusals(anywhere: Kubectl) -> Kubectl:
    anywhere("create", "namespace", "refusals")
    return anywhere.with_options("--namespace=refusals")


@pytest.mark.parametrize(("bad", "message"), BAD_PODS.values(), ids=BAD_PODS)
def test_bad_pod(refusals: Kubectl, bad: dict[str, Any], message: str) -> None:
    assert message in refusals("create", "-f", "-", input=json.dumps(bad), ok=False)


BAD_COMMANDS = {
    "missing object": ("get configmap none", 'Error from server (NotFound): configmaps "none" not found'),
    "missing object of a group": (
        "delete deployment none",
        'Error from server (NotFound): deployments.apps "none" not found',
    ),
    "unknown kind": ("get nothings", 'error: the server doesn\'t have a resource type "nothings"'),
    "missing namespace": (
        "create configmap one --namespace=none",
        'failed to create configmap: namespaces "none" not found',
    ),
    "field of a kind without fields": (
        "get configmaps --field-selector=data.key=x",
        'Error from server (BadRequest): Unable to find "/v1, Resource=configmaps" that match '
        'label selector "", '
        'field selector "data.key=x": "data.key" is not a known field selector: only "metadata.name", '
        '"metadata.namespace"',
    ),
    "field of a kind with fields": (
        "get pods --field-selector=spec.image=x",
        'field selector "spec.image=x": field label not supported: spec.image',
    ),
    "field of jobs": (
        "get jobs --field-selector=spec.suspend=x",
        'field label "spec.suspend" not supported for Job',
    ),
    "label selector": (
        "get pods -l app+in+x",
        "unable to parse requirement: found 'x' expected: '('",
    ),
    "value of a label": (
        "get pods -l app=-",
        'Invalid value: "-": a valid label must be an empty string or consist of alphanumeric characters',
    ),
    "token of nobody": (
        "create token nobody",
        'error: failed to create token: serviceaccounts "nobody" not found',
    ),
    "system priority class": (
        "delete priorityclass system-node-critical",
        'priorityclasses.scheduling.k8s.io "system-node-critical" is forbidden: '
        "this is a system priority class and cannot be deleted",
    ),
    "scale of what has none": (
        "scale configmap kube-root-ca.crt --replicas=2",
        "could not find the requested resource",
    ),
}


@pytest.mark.parametrize(("command", "message"), BAD_COMMANDS.values(), ids=BAD_COMMANDS)
def test_bad_command(refusals: Kubectl, command: str, message: str) -> None:
    arguments = [word.replace("+", " ") for word in command.split()]
    assert message in refusals(*arguments, ok=False)


def test_logs_without_a_kubelet(kubectl: Kubectl) -> None:
    kubectl.create(pod("web"))
    assert (
        'Error from server (BadRequest): container "main" in pod "web" is waiting to start: ContainerCreating'
        in kubectl("logs", "web", ok=False)
    )


def test_immutable_selector(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "shop", "--image=x")
    patch = {
        "spec": {"selector": {"matchLabels": {"x": "y"}}, "template": {"metadata": {"labels": {"x": "y"}}}}
    }
    assert (
        'The Deployment "shop" is invalid: spec.selector: Invalid value: '
        '{"matchLabels":{"app":"shop","x":"y"}}: field is immutable'
        in kubectl("patch", "deployment", "shop", "-p", json.dumps(patch), ok=False)
    )
    mismatch = '{"spec":{"template":{"metadata":{"labels":{"app":"other"}}}}}'
    assert "`selector` does not match template `labels`" in kubectl(
        "patch", "deployment", "shop", "-p", mismatch, ok=False
    )


def test_quota(kubectl: Kubectl) -> None:
    kubectl("create", "quota", "small", "--hard=pods=1,requests.cpu=1")
    requesting = {**CONTAINER, "resources": {"requests": {"cpu": "600m"}}}
    without = kubectl("create", "-f", "-", input=json.dumps(pod("web")), ok=False)
    assert 'pods "web" is forbidden: failed quota: small: must specify requests.cpu for: main' in without
    kubectl.create(pod("first", containers=[requesting]))
    second = kubectl("create", "-f", "-", input=json.dumps(pod("second", containers=[requesting])), ok=False)
    assert (
        'pods "second" is forbidden: exceeded quota: small, requested: pods=1,requests.cpu=600m, '
        "used: pods=1,requests.cpu=600m, limited: pods=1,requests.cpu=1" in second
    )


def test_limits(kubectl: Kubectl) -> None:
    limits = {"type": "Container", "default": {"cpu": "500m"}, "max": {"cpu": "1"}}
    spec = {"limits": [limits]}
    kubectl.create({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "bounds"}, "spec": spec})
    kubectl.create(pod("modest"))
    resources = kubectl.json("get", "pod", "modest")["spec"]["containers"][0]["resources"]
    assert resources == {"limits": {"cpu": "500m"}, "requests": {"cpu": "500m"}}
    greedy = {**CONTAINER, "resources": {"limits": {"cpu": "2"}}}
    assert 'pods "greedy" is forbidden: maximum cpu usage per Container is 1, but limit is 2' in kubectl(
        "create", "-f", "-", input=json.dumps(pod("greedy", containers=[greedy])), ok=False
    )
