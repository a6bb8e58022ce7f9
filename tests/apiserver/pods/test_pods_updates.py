from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moorage.api.manifests import Manifest, copy
from tests.apiserver.pods.pod_builders import a_container, a_pod, created, strategy, update_complaints

OTHERS = (
    "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to "
    "existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it "
    "was previously "
    "negative)\n"
)
TOLERATION = {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
TERMS = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"

Change = Callable[[Manifest], Any]


def set_field(key: str, value: Any) -> Change:
    return lambda spec: spec.__setitem__(key, value)


def node_affinity(*terms: Manifest) -> Manifest:
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def expression(key: str) -> Manifest:
    return {"key": key, "operator": "Exists"}


GATED = a_pod(
    schedulingGates=[{"name": "a"}, {"name": "b"}],
    nodeSelector={"x": "1"},
    affinity=node_affinity({"matchExpressions": [expression("k")]}),
)
PLAIN = a_pod(initContainers=[a_container(name="init")], tolerations=[TOLERATION], activeDeadlineSeconds=60)

CHANGES: dict[str, tuple[Manifest, Change, list[str]]] = {
    "nothing": (PLAIN, lambda spec: None, []),
    "image": (PLAIN, lambda spec: spec["containers"][0].update(image="other:1"), []),
    "image of init container": (PLAIN, lambda spec: spec["initContainers"][0].update(image="other:1"), []),
    "image gone": (
        PLAIN,
        lambda spec: spec["containers"][0].pop("image"),
        ["spec.containers[0].image: Required value"],
    ),
    "container more": (
        PLAIN,
        lambda spec: spec["containers"].append(a_container(name="more")),
        ["spec.containers: Forbidden: pod updates may not add or remove containers"],
    ),
    "deadline sooner": (PLAIN, set_field("activeDeadlineSeconds", 30), []),
    "deadline new": (a_pod(), set_field("activeDeadlineSeconds", 30), []),
    "deadline later": (
        PLAIN,
        set_field("activeDeadlineSeconds", 61),
        ["spec.activeDeadlineSeconds: Invalid value: 61: must be less than or equal to previous value"],
    ),
    "deadline gone": (
        PLAIN,
        lambda spec: spec.pop("activeDeadlineSeconds"),
        [
            "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil "
            "value"
        ],
    ),
    "toleration more": (PLAIN, lambda spec: spec["tolerations"].append({"operator": "Exists"}), []),
    "toleration's seconds": (PLAIN, lambda spec: spec["tolerations"][0].update(tolerationSeconds=9), []),
    "toleration gone": (
        PLAIN,
        lambda spec: spec.pop("tolerations"),
        ["spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"],
    ),
    "grace period": (
        PLAIN,
        set_field("terminationGracePeriodSeconds", 1),
        [f"{OTHERS}- spec.terminationGracePeriodSeconds: 30\n+ spec.terminationGracePeriodSeconds: 1"],
    ),
    "grace period that was negative": (
        a_pod(terminationGracePeriodSeconds=-5),
        set_field("terminationGracePeriodSeconds", 1),
        [],
    ),
    "command": (
        PLAIN,
        lambda spec: spec["containers"][0].update(command=["sh"]),
        [f'{OTHERS}- spec.containers[0].command: <absent>\n+ spec.containers[0].command: ["sh"]'],
    ),
    "node selector": (
        PLAIN,
        set_field("nodeSelector", {"a": "b"}),
        [f'{OTHERS}- spec.nodeSelector: <absent>\n+ spec.nodeSelector: {{"a":"b"}}'],
    ),
    "node name": (
        PLAIN,
        set_field("nodeName", "n1"),
        [f'{OTHERS}- spec.nodeName: <absent>\n+ spec.nodeName: "n1"'],
    ),
    "empty is as good as absent": (PLAIN, set_field("nodeSelector", {}), []),
    "gate gone": (GATED, set_field("schedulingGates", [{"name": "b"}]), []),
    "all gates gone": (GATED, lambda spec: spec.pop("schedulingGates"), []),
    "gate more": (
        GATED,
        lambda spec: spec["schedulingGates"].append({"name": "c"}),
        [
            "spec.schedulingGates[2].name: Forbidden: only deletion is allowed, but found new "
            "scheduling gate "
            "'c'"
        ],
    ),
    "gated: node selector more": (GATED, lambda spec: spec["nodeSelector"].update(y="2"), []),
    "gated: node selector other": (
        GATED,
        set_field("nodeSelector", {"x": "2"}),
        [
            'spec.nodeSelector: Invalid value: {"x":"2"}: only additions to spec.nodeSelector are '
            "allowed (no "
            "mutations or deletions)"
        ],
    ),
    "gated: expression more": (
        GATED,
        set_field("affinity", node_affinity({"matchExpressions": [expression("k"), expression("l")]})),
        [],
    ),
    "gated: expression other": (
        GATED,
        set_field("affinity", node_affinity({"matchExpressions": [expression("l")]})),
        [
            f'{TERMS}[0]: Invalid value: {{"matchExpressions":[{{"key":"l","operator":"Exists"}}]}}: only '
            "additions are allowed (no mutations or deletions)"
        ],
    ),
    "gated: affinity gone": (
        GATED,
        lambda spec: spec.pop("affinity"),
        [
            f"{TERMS}: Invalid value: null: no additions/deletions to non-empty NodeSelectorTerms list are "
            "allowed"
        ],
    ),
    "gated: affinity new": (
        a_pod(schedulingGates=[{"name": "a"}]),
        set_field("affinity", node_affinity({"matchExpressions": [expression("k")]})),
        [],
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_of_the_spec(name: str) -> None:
    start, change, expected = CHANGES[name]
    old = created(start)
    new = copy(old)
    change(new["spec"])
    assert update_complaints(new, old) == expected


def test_metadata_is_free_but_for_mirror_pods() -> None:
    old = created(a_pod(meta={"labels": {"a": "b"}}, nodeName="n1"))
    new = copy(old)
    new["metadata"] |= {"labels": {"c": "d"}, "annotations": {"e": "f"}}
    assert update_complaints(new, old) == []
    new["metadata"]["annotations"]["kubernetes.io/config.mirror"] = "x"
    assert update_complaints(new, old) == [
        "metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not add mirror pod annotation"
    ]


def test_an_update_keeps_the_status_and_counts_changes_of_the_spec() -> None:
    old = created(a_pod())
    new = copy(old)
    new["status"] = {"phase": "Running"}
    new["metadata"]["generation"] = 99
    strategy().prepare_update(new, old)
    assert (new["status"], new["metadata"]["generation"]) == (old["status"], 1)
    new["spec"]["containers"][0]["image"] = "other:2"
    strategy().prepare_update(new, old)
    assert new["metadata"]["generation"] == 2


def with_status(**status: Any) -> Manifest:
    pod = created(a_pod(restartPolicy="Never"))
    pod["status"] |= status
    return pod


ENDED = [{"name": "main", "state": {"terminated": {"exitCode": 0}}}]
RUNNING = [{"name": "main", "state": {"running": {}}}]

STATUS: dict[str, tuple[Manifest, Manifest, list[str]]] = {
    "phase": (with_status(phase="Running"), with_status(), []),
    "conditions": (
        with_status(conditions=[{"type": "PodScheduled"}, {"type": "example.com/mine"}]),
        with_status(),
        [],
    ),
    "condition's type": (
        with_status(conditions=[{"type": "-"}]),
        with_status(),
        ["status.conditions[0].Type"],
    ),
    "condition's generation": (
        with_status(conditions=[{"type": "Ready", "observedGeneration": -1}]),
        with_status(),
        ["status.conditions[0].observedGeneration"],
    ),
    "nomination": (with_status(nominatedNodeName="n1"), with_status(), []),
    "nomination's name": (
        with_status(nominatedNodeName="N"),
        with_status(),
        ["status.nominatedNodeName"],
    ),
    "no nomination": (with_status(), with_status(nominatedNodeName="n1"), []),
    "QoS class": (with_status(qosClass="Burstable"), with_status(), ["status.qosClass"]),
    "container that ended": (
        with_status(containerStatuses=RUNNING),
        with_status(containerStatuses=ENDED),
        ["status.containerStatuses[0].state"],
    ),
    "container that ends": (
        with_status(containerStatuses=ENDED),
        with_status(containerStatuses=RUNNING),
        [],
    ),
    "address": (with_status(podIPs=[{"ip": "x"}]), with_status(), ["status.podIPs[0]"]),
    "two addresses of a family": (
        with_status(podIPs=[{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]),
        with_status(),
        ["status.podIPs"],
    ),
    "dual stack": (with_status(podIPs=[{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]), with_status(), []),
    "claim that is not there": (
        with_status(resourceClaimStatuses=[{"name": "gpu"}]),
        with_status(),
        ["status.resourceClaimStatuses[0].name"],
    ),
}


@pytest.mark.parametrize("name", STATUS)
def test_changes_of_the_status(name: str) -> None:
    new, old, paths = STATUS[name]
    assert [error.path for error in strategy().validate_status(new, old)] == paths


def test_a_bound_pod_is_not_nominated() -> None:
    old = created(a_pod(nodeName="n1"))
    new = copy(old)
    new["status"]["nominatedNodeName"] = "n2"
    (error,) = strategy().validate_status(new, old)
    assert str(error) == (
        "status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node"
    )


@pytest.mark.parametrize(
    ("policy", "exit_code", "rules", "fine"),
    [
        ("Always", 0, [], True),
        ("OnFailure", 1, [], True),
        ("OnFailure", 0, [], False),
        ("Never", 1, [], False),
        ("Never", 42, [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}], True),
        ("Never", 41, [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}], False),
    ],
)
def test_which_containers_may_run_again(
    policy: str, exit_code: int, rules: list[Manifest], fine: bool
) -> None:
    container = a_container(**({"restartPolicy": policy, "restartPolicyRules": rules} if rules else {}))
    old = created(a_pod(container, restartPolicy=policy))
    new = copy(old)
    old["status"]["containerStatuses"] = [{"name": "main", "state": {"terminated": {"exitCode": exit_code}}}]
    new["status"]["containerStatuses"] = RUNNING
    assert (strategy().validate_status(new, old) == []) == fine


def test_a_status_update_changes_the_status_and_labels_only() -> None:
    old = created(a_pod(meta={"ownerReferences": [{"name": "rs"}]}))
    old["status"] |= {
        "observedGeneration": 3,
        "conditions": [{"type": "Ready", "status": "False", "observedGeneration": 2}],
    }
    new = copy(old)
    new["spec"]["nodeName"] = "n1"
    new["metadata"] |= {"ownerReferences": [], "labels": {"a": "b"}, "generation": 8}
    new["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    strategy().prepare_status(new, old)
    assert new["spec"] == old["spec"]
    assert new["metadata"] == {**old["metadata"], "labels": {"a": "b"}}
    assert new["status"] == {
        "phase": "Running",
        "qosClass": "BestEffort",
        "observedGeneration": 3,
        "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 2}],
    }
