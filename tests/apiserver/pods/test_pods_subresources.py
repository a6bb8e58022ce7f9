from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moorage.api.manifests import Manifest, copy
from moorage.apimachinery.errors import ApiError
from moorage_cluster.apiserver.kinds.pods.binding import bind
from moorage_cluster.apiserver.kinds.pods.ephemeral import set_ephemeral_containers
from moorage_cluster.apiserver.kinds.pods.eviction import EvictionDecision, evict
from moorage_cluster.apiserver.kinds.pods.resize import resize
from tests.apiserver.pods.pod_builders import NOW, NOW_TEXT, a_container, a_pod, created, defaulted


def refusal(call: Callable[[], object]) -> ApiError:
    with pytest.raises(ApiError) as caught:
        call()
    return caught.value


# -- binding


def binding(node: str = "n1", kind: str = "Node", **meta: Any) -> Manifest:
    return {"metadata": {"name": "web", **meta}, "target": {"kind": kind, "name": node}}


def test_bind() -> None:
    pod = created(a_pod(meta={"labels": {"a": "b"}, "annotations": {"c": "d"}}))
    pod["status"] |= {
        "nominatedNodeName": "n9",
        "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": "t"}
        ],
    }
    before = copy(pod)
    bound = bind(pod, binding(annotations={"c": "e", "f": "g"}, labels={"zone": "z"}), NOW)
    assert pod == before
    assert bound["spec"]["nodeName"] == "n1"
    assert bound["metadata"]["annotations"] == {"c": "e", "f": "g"}
    assert bound["metadata"]["labels"] == {"a": "b", "zone": "z"}
    assert bound["metadata"]["generation"] == 1
    assert bound["status"] == {
        "phase": "Pending",
        "qosClass": "BestEffort",
        "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": NOW_TEXT}],
    }


def test_metadata_is_not_shared_with_the_old_pod() -> None:
    pod = created(a_pod())
    assert bind(pod, binding(), NOW)["metadata"] is not pod["metadata"]


PREFIX = 'Operation cannot be fulfilled on pods/binding "web": '
STALE = (
    'Operation cannot be fulfilled on pods "web": StorageError: invalid object, Code: 4, Key: '
    "/registry/pods/default/web, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
)
BINDINGS: dict[str, tuple[Manifest, Manifest, int, str]] = {
    "bound": (
        created(a_pod(nodeName="n0")),
        binding(),
        409,
        f'{PREFIX}pod web is already assigned to node "n0"',
    ),
    "gated": (
        created(a_pod(schedulingGates=[{"name": "a"}])),
        binding(),
        409,
        f"{PREFIX}pod web has non-empty .spec.schedulingGates",
    ),
    "dying": (
        created(a_pod(meta={"deletionTimestamp": "t"})),
        binding(),
        409,
        f"{PREFIX}pod web is being deleted, cannot be assigned to a host",
    ),
    "other uid": (
        created(a_pod()),
        binding(uid="u-2"),
        409,
        f"{STALE}UID in precondition: u-2, UID in object meta: u-1",
    ),
    "other version": (
        created(a_pod()),
        binding(resourceVersion="6"),
        409,
        f"{STALE}ResourceVersion in precondition: 6, ResourceVersion in object meta: 7",
    ),
    "other name": (
        created(a_pod()),
        binding(name="x"),
        400,
        "name in URL does not match name in Binding object",
    ),
    "no node": (created(a_pod()), binding(node=""), 500, "target.name: Required value"),
    "not a node": (
        created(a_pod()),
        binding(kind="Pod"),
        500,
        'target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"',
    ),
}


@pytest.mark.parametrize("name", BINDINGS)
def test_bind_refused(name: str) -> None:
    pod, body, code, message = BINDINGS[name]
    error = refusal(lambda: bind(pod, body, NOW))
    assert (error.code, error.message) == (code, message)


# -- eviction


def running(ready: bool = True, **meta: Any) -> Manifest:
    pod = created(a_pod(meta={"labels": {"app": "web"}, **meta}, nodeName="n1"))
    ready_text = "True" if ready else "False"
    pod["status"] |= {"phase": "Running", "conditions": [{"type": "Ready", "status": ready_text}]}
    return pod


def budget(name: str = "pdb", policy: str = "", selector: Any = None, **status: Any) -> Manifest:
    spec: Manifest = {"selector": {"matchLabels": {"app": "web"}} if selector is None else selector}
    if policy:
        spec["unhealthyPodEvictionPolicy"] = policy
    return {
        "metadata": {"name": name, "namespace": "default", "generation": 1},
        "spec": spec,
        "status": {
            "observedGeneration": 1,
            "disruptionsAllowed": 1,
            "currentHealthy": 3,
            "desiredHealthy": 2,
            **status,
        },
    }


def decide(pod: Manifest, *budgets: Manifest, **options: Any) -> EvictionDecision:
    before = copy([pod, *budgets])
    decision = evict(pod, budgets, {"deleteOptions": options}, NOW)
    assert [pod, *budgets] == before
    return decision


def test_evict_takes_from_the_budget() -> None:
    decision = decide(running(), budget(disruptionsAllowed=2, disruptedPods={"old": "t"}))
    assert decision.budget is not None
    assert decision.budget["status"]["disruptionsAllowed"] == 1
    assert decision.budget["status"]["disruptedPods"] == {"old": "t", "web": NOW_TEXT}
    assert decision.pod["status"]["conditions"][-1] == {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastTransitionTime": NOW_TEXT,
    }


def test_the_last_one_changes_the_budgets_condition() -> None:
    decision = decide(running(), budget())
    assert decision.budget is not None
    (condition,) = decision.budget["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "DisruptionAllowed",
        "False",
        "InsufficientPods",
    )


def test_the_last_one_keeps_the_conditions_unknown_to_it() -> None:
    other = {"type": "Other", "status": "True"}
    decision = decide(running(), budget(conditions=[other]))
    assert decision.budget is not None
    assert decision.budget["status"]["conditions"][0] == other


def phase(name: str) -> Manifest:
    pod = running()
    pod["status"]["phase"] = name
    return pod


FREE: dict[str, tuple[Manifest, list[Manifest]]] = {
    "no budget": (running(), []),
    "budget of others": (running(), [budget(selector={"matchLabels": {"app": "db"}}, disruptionsAllowed=0)]),
    "budget without a selector": (running(), [{**budget(disruptionsAllowed=0), "spec": {}}]),
    "budget with a broken selector": (
        running(),
        [budget(selector={"matchExpressions": [{"key": "a", "operator": "Near"}]}, disruptionsAllowed=0)],
    ),
    "finished": (phase("Succeeded"), [budget(disruptionsAllowed=0)]),
    "failed": (phase("Failed"), [budget(disruptionsAllowed=0)]),
    "pending": (phase("Pending"), [budget(disruptionsAllowed=0)]),
    "dying": (running(deletionTimestamp="t"), [budget(disruptionsAllowed=0)]),
    "unready, enough healthy": (running(ready=False), [budget(disruptionsAllowed=0)]),
    "unready, always allowed": (
        running(ready=False),
        [budget(policy="AlwaysAllow", disruptionsAllowed=0, currentHealthy=0)],
    ),
}


@pytest.mark.parametrize("name", FREE)
def test_evict_without_a_budget(name: str) -> None:
    pod, budgets = FREE[name]
    assert decide(pod, *budgets).budget is None


VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."
FAILED_SYNC = {"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": "no scale"}
EVICTIONS: dict[str, tuple[Manifest, list[Manifest], int, str, str]] = {
    "none allowed": (
        running(),
        [budget(disruptionsAllowed=0, currentHealthy=2)],
        429,
        VIOLATES,
        "The disruption budget pdb needs 2 healthy pods and has 2 currently",
    ),
    "none allowed, more healthy": (
        running(),
        [budget(disruptionsAllowed=0)],
        429,
        VIOLATES,
        "The disruption budget pdb does not allow evicting pods currently",
    ),
    "failed sync": (
        running(),
        [budget(disruptionsAllowed=0, conditions=[FAILED_SYNC])],
        429,
        VIOLATES,
        "The disruption budget pdb does not allow evicting pods currently because it failed sync: no scale",
    ),
    "unready, too few healthy": (
        running(ready=False),
        [budget(disruptionsAllowed=0, currentHealthy=1)],
        429,
        VIOLATES,
        "The disruption budget pdb needs 2 healthy pods and has 1 currently",
    ),
    "not observed": (
        running(),
        [budget(observedGeneration=0)],
        429,
        VIOLATES,
        "The disruption budget pdb is still being processed by the server.",
    ),
    "several": (
        running(),
        [budget(), budget("other")],
        500,
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
        "",
    ),
    "negative": (
        running(),
        [budget(disruptionsAllowed=-1)],
        403,
        'poddisruptionbudget.policy "pdb" is forbidden: pdb disruptions allowed is negative',
        "",
    ),
}


@pytest.mark.parametrize("name", EVICTIONS)
def test_evict_refused(name: str) -> None:
    pod, budgets, code, message, cause = EVICTIONS[name]
    error = refusal(lambda: decide(pod, *budgets))
    assert (error.code, error.message) == (code, message)
    causes = [{"reason": "DisruptionBudget", "message": cause}] if cause else []
    assert error.details.get("causes", []) == causes


def test_only_a_budget_in_work_says_when_to_retry() -> None:
    unobserved = refusal(lambda: decide(running(), budget(observedGeneration=0)))
    exhausted = refusal(lambda: decide(running(), budget(disruptionsAllowed=0)))
    assert unobserved.headers == {"Retry-After": "10"}
    assert exhausted.headers == {}


def test_evict_checks_preconditions() -> None:
    error = refusal(lambda: decide(running(), preconditions={"uid": "u-2"}))
    assert (error.code, error.message) == (
        409,
        'Operation cannot be fulfilled on Pod "web": the UID in the precondition (u-2) does not '
        "match the UID "
        "in record (u-1). The object might have been deleted and then recreated",
    )


# -- ephemeral containers


def debugged(*containers: Manifest, **changes: Any) -> Manifest:
    return defaulted(a_pod(ephemeralContainers=list(containers), **changes))


def test_an_ephemeral_container_comes_and_nothing_else_changes() -> None:
    pod = created(a_pod())
    before = copy(pod)
    body = debugged(a_container(name="debug", targetContainerName="main"), nodeName="elsewhere")
    changed = set_ephemeral_containers(pod, body)
    assert pod == before
    assert [each["name"] for each in changed["spec"].pop("ephemeralContainers")] == ["debug"]
    assert changed["metadata"].pop("generation") == 2
    assert pod["metadata"].pop("generation") == 1
    assert changed == pod


EPHEMERAL: dict[str, tuple[list[Manifest], Manifest, str]] = {
    "name of another": (
        [],
        debugged(a_container()),
        'spec.ephemeralContainers[0].name: Duplicate value: "main"',
    ),
    "unknown target": (
        [],
        debugged(a_container(name="debug", targetContainerName="x")),
        'spec.ephemeralContainers[0].targetContainerName: Not found: "x"',
    ),
    "ports": (
        [],
        debugged(a_container(name="debug", ports=[{"containerPort": 1}])),
        "spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container",
    ),
    "removed": (
        [a_container(name="debug")],
        debugged(),
        'spec.ephemeralContainers: Forbidden: existing ephemeral containers "debug" may not be removed\n',
    ),
    "changed": (
        [a_container(name="debug")],
        debugged(a_container(name="debug", image="other:1")),
        'spec.ephemeralContainers: Forbidden: existing ephemeral containers "debug" may not be changed\n'
        '- image: "registry.k8s.io/pause:3.10"\n+ image: "other:1"',
    ),
}


@pytest.mark.parametrize("name", EPHEMERAL)
def test_ephemeral_containers_refused(name: str) -> None:
    existing, body, message = EPHEMERAL[name]
    pod = created(a_pod(ephemeralContainers=existing))
    error = refusal(lambda: set_ephemeral_containers(pod, body))
    assert (error.code, error.message) == (422, f'Pod "web" is invalid: {message}')


# -- resize


def sized(cpu: str = "1", memory: str = "1Gi", **spec: Any) -> Manifest:
    resources = {"requests": {"cpu": cpu, "memory": memory}, "limits": {"cpu": "4", "memory": "4Gi"}}
    return defaulted(a_pod(a_container(resources=resources), **spec))


def test_resize_changes_the_resources_and_nothing_else() -> None:
    pod = created(sized())
    before = copy(pod)
    changed = resize(pod, sized("2", "2Gi", nodeName="elsewhere"))
    assert pod == before
    resources = changed["spec"]["containers"][0].pop("resources")
    assert resources["requests"] == {"cpu": "2", "memory": "2Gi"}
    del pod["spec"]["containers"][0]["resources"]
    assert changed["spec"] == pod["spec"]
    assert changed["metadata"]["generation"] == 2


def without(which: str, name: str) -> Manifest:
    body = sized()
    del body["spec"]["containers"][0]["resources"][which][name]
    return body


def with_disk() -> Manifest:
    body = sized()
    body["spec"]["containers"][0]["resources"]["requests"]["ephemeral-storage"] = "1Gi"
    return body


RESIZES: dict[str, tuple[Manifest, Manifest, str]] = {
    "another QoS class": (
        created(sized()),
        sized("4", "4Gi"),
        'spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing',
    ),
    "other resources": (
        created(sized()),
        with_disk(),
        "spec: Forbidden: only cpu and memory resources are mutable",
    ),
    "request gone": (
        created(sized()),
        without("requests", "cpu"),
        "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed",
    ),
    "limit gone": (
        created(sized()),
        without("limits", "cpu"),
        "spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed",
    ),
    "container gone": (
        created(a_pod(a_container(), a_container(name="b"))),
        defaulted(a_pod(a_container())),
        "spec.containers: Forbidden: containers may not be added or removed on resize",
    ),
    "container renamed": (
        created(a_pod()),
        defaulted(a_pod(a_container(name="b"))),
        "spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize",
    ),
    "above the limit": (
        created(sized()),
        sized("8"),
        'spec.containers[0].resources.requests: Invalid value: "8": must be less than or equal to cpu limit '
        "of 4",
    ),
    "static pod": (
        created(a_pod(meta={"annotations": {"kubernetes.io/config.mirror": "x"}}, nodeName="n")),
        sized(),
        ": Forbidden: static pods cannot be resized",
    ),
    "pod-level resources gone": (
        created(a_pod(resources={"limits": {"cpu": "1"}})),
        defaulted(a_pod()),
        "spec.resources: Forbidden: pod-level resources cannot be removed",
    ),
}


@pytest.mark.parametrize("name", RESIZES)
def test_resize_refused(name: str) -> None:
    pod, body, message = RESIZES[name]
    error = refusal(lambda: resize(pod, body))
    assert error.code == 422
    assert message in error.message


def test_a_node_that_cannot_resize_is_known_by_its_silence() -> None:
    pod = created(sized())
    pod["status"]["containerStatuses"] = [{"name": "main", "state": {"running": {}}}]
    error = refusal(lambda: resize(pod, sized("2")))
    assert "spec: Forbidden: Pod running on node without support for resize" in error.message
    pod["status"]["containerStatuses"][0]["resources"] = {}
    assert resize(pod, sized("2"))["metadata"]["generation"] == 2
