from __future__ import annotations

from typing import Any

import pytest

from moorage.api.manifests import Manifest, copy
from moorage_cluster.apiserver.kinds.config_and_secrets import ConfigMapStrategy, SecretStrategy
from moorage_cluster.apiserver.kinds.csi_drivers import (
    CSIDriverStrategy,
    CSINodeStrategy,
    CSIStorageCapacityStrategy,
)
from moorage_cluster.apiserver.kinds.daemon_sets import DaemonSetStrategy
from moorage_cluster.apiserver.kinds.events import EventsEventStrategy
from moorage_cluster.apiserver.kinds.jobs import JobStrategy
from moorage_cluster.apiserver.kinds.limits_and_quotas import ResourceQuotaStrategy
from moorage_cluster.apiserver.kinds.nodes import NodeStrategy
from moorage_cluster.apiserver.kinds.persistent_volume_claims import PersistentVolumeClaimStrategy
from moorage_cluster.apiserver.kinds.persistent_volumes import PersistentVolumeStrategy
from moorage_cluster.apiserver.kinds.pod_groups import PodGroupStrategy, WorkloadStrategy
from moorage_cluster.apiserver.kinds.priority_classes import PriorityClassStrategy
from moorage_cluster.apiserver.kinds.rbac import RoleBindingStrategy
from moorage_cluster.apiserver.kinds.resource_claims import (
    ResourceClaimStrategy,
    ResourceClaimTemplateStrategy,
)
from moorage_cluster.apiserver.kinds.resource_slices import ResourceSliceStrategy
from moorage_cluster.apiserver.kinds.runtime_classes import RuntimeClassStrategy
from moorage_cluster.apiserver.kinds.stateful_sets import ControllerRevisionStrategy, StatefulSetStrategy
from moorage_cluster.apiserver.kinds.storage_classes import (
    StorageClassStrategy,
    VolumeAttributesClassStrategy,
)
from moorage_cluster.apiserver.kinds.workloads import DeploymentStrategy, ReplicationControllerStrategy
from moorage_cluster.apiserver.strategy import Strategy
from tests.apiserver.kinds.object_builders import (
    LABELS,
    a_controller,
    a_job,
    a_template,
    an_object,
    created,
    status_problems,
    update_problems,
    updated,
)

FROZEN = "field is immutable when `immutable` is set"
STATEFUL = (
    "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
    "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' "
    "are forbidden"
)
CLAIM_FIXED = (
    "spec: Forbidden: spec is immutable after creation except resources.requests and "
    "volumeAttributesClassName for bound claims"
)
OTHER = {"app": "db"}


def a_claim(size: str = "1Gi", **spec: object) -> Manifest:
    return an_object({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec})


def a_volume(handle: str = "h", **spec: object) -> Manifest:
    csi = {"driver": "d", "volumeHandle": handle}
    fixed = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "csi": csi}
    return an_object({**fixed, **spec})


def a_slice(driver: str = "d", node: str = "n", pool: str = "p", generation: int = 0) -> Manifest:
    named = {"name": pool, "resourceSliceCount": 1, "generation": generation}
    return an_object({"driver": driver, "nodeName": node, "pool": named})


def a_group(count: int, **spec: object) -> Manifest:
    return an_object({"schedulingPolicy": {"gang": {"minCount": count}}, **spec})


def an_event(**fields: Any) -> Manifest:
    return an_object(
        **{
            "regarding": {"namespace": "default"},
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": "a",
            "reportingInstance": "b",
            "action": "c",
            "reason": "d",
            "type": "Normal",
            **fields,
        }
    )


def a_binding(role: str) -> Manifest:
    return an_object(roleRef={"kind": "Role", "name": role})


def drivers(node: str, count: int) -> Manifest:
    return an_object({"drivers": [{"name": "d", "nodeID": node, "allocatable": {"count": count}}]})


CHANGES: dict[str, tuple[Strategy, Manifest, Manifest, list[str]]] = {
    "a deployment may be scaled": (DeploymentStrategy(), a_controller(), a_controller(replicas=5), []),
    "a deployment keeps its selector": (
        DeploymentStrategy(),
        a_controller(),
        a_controller(selector={"matchLabels": OTHER}, template=a_template(OTHER)),
        ['spec.selector: Invalid value: {"matchLabels":{"app":"db"}}: field is immutable'],
    ),
    "a replication controller does not": (
        ReplicationControllerStrategy(),
        an_object({"template": a_template()}),
        an_object({"template": a_template(OTHER), "selector": OTHER}),
        [],
    ),
    "a daemon set keeps its selector": (
        DaemonSetStrategy(),
        a_controller(),
        a_controller(selector={"matchLabels": OTHER}, template=a_template(OTHER)),
        ['spec.selector: Invalid value: {"matchLabels":{"app":"db"}}: field is immutable'],
    ),
    "a stateful set may be scaled and replaced": (
        StatefulSetStrategy(),
        a_controller(),
        a_controller(
            replicas=3,
            minReadySeconds=1,
            template=a_template(priorityClassName="x"),
            updateStrategy={"type": "OnDelete"},
            ordinals={"start": 1},
            revisionHistoryLimit=1,
            persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete"},
        ),
        [],
    ),
    "a stateful set keeps its service": (
        StatefulSetStrategy(),
        a_controller(serviceName="a"),
        a_controller(serviceName="b"),
        [STATEFUL],
    ),
    "a stateful set keeps its claims": (
        StatefulSetStrategy(),
        a_controller(),
        a_controller(volumeClaimTemplates=[{"metadata": {"name": "d"}, "spec": a_claim()["spec"]}]),
        [STATEFUL],
    ),
    "a revision keeps its data": (
        ControllerRevisionStrategy(),
        an_object(data={"a": 1}, revision=1),
        an_object(data={"a": 2}, revision=2),
        ['data: Invalid value: {"a":2}: field is immutable'],
    ),
    "a job may be wider and suspended": (
        JobStrategy(),
        created(JobStrategy(), a_job(completions=4)),
        created(JobStrategy(), a_job(completions=4, parallelism=2, suspend=True)),
        [],
    ),
    "a job keeps its completions": (
        JobStrategy(),
        created(JobStrategy(), a_job(completions=4)),
        created(JobStrategy(), a_job(completions=5)),
        ["spec.completions: Invalid value: 5: field is immutable"],
    ),
    "an indexed job changes completions and parallelism together": (
        JobStrategy(),
        created(JobStrategy(), a_job(completionMode="Indexed", completions=2, parallelism=2)),
        created(JobStrategy(), a_job(completionMode="Indexed", completions=3, parallelism=3)),
        [],
    ),
    "an indexed job does not change completions alone": (
        JobStrategy(),
        created(JobStrategy(), a_job(completionMode="Indexed", completions=2, parallelism=2)),
        created(JobStrategy(), a_job(completionMode="Indexed", completions=3, parallelism=2)),
        ["spec.completions: Invalid value: 3: can only be modified in tandem with spec.parallelism"],
    ),
    "a suspended job may go elsewhere with other resources": (
        JobStrategy(),
        created(JobStrategy(), a_job(suspend=True)),
        created(
            JobStrategy(),
            a_job(
                suspend=True,
                template=a_template(
                    {},
                    restartPolicy="Never",
                    nodeSelector={"a": "b"},
                    containers=[
                        {"name": "main", "image": "nginx:1", "resources": {"requests": {"cpu": "1"}}}
                    ],
                ),
            ),
        ),
        [],
    ),
    "a config map may change": (ConfigMapStrategy(), an_object(data={"a": "1"}), an_object(data={}), []),
    "an immutable config map may not": (
        ConfigMapStrategy(),
        an_object(data={"a": "1"}, immutable=True),
        an_object(data={"a": "2"}, binaryData={"b": ""}),
        [f"immutable: Forbidden: {FROZEN}", f"data: Forbidden: {FROZEN}", f"binaryData: Forbidden: {FROZEN}"],
    ),
    "a secret keeps its type": (
        SecretStrategy(),
        an_object(),
        an_object(type="mine"),
        ['type: Invalid value: "mine": field is immutable'],
    ),
    "an immutable secret keeps its data": (
        SecretStrategy(),
        an_object(immutable=True),
        an_object(immutable=True, stringData={"a": "b"}),
        [f"data: Forbidden: {FROZEN}"],
    ),
    "a node may get a network": (NodeStrategy(), an_object({}), an_object({"podCIDR": "10.0.0.0/24"}), []),
    "a node keeps its network and provider": (
        NodeStrategy(),
        an_object({"podCIDR": "10.0.0.0/24", "providerID": "a"}),
        an_object({"podCIDR": "10.0.1.0/24", "providerID": "b"}),
        [
            'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid',
            'spec.providerID: Forbidden: node updates may not change providerID except from "" to valid',
        ],
    ),
    "a quota keeps its scopes": (
        ResourceQuotaStrategy(),
        an_object({"scopes": ["BestEffort"]}),
        an_object({}),
        ["spec.scopes: Invalid value: []: field is immutable"],
    ),
    "a volume may be claimed": (
        PersistentVolumeStrategy(),
        a_volume(),
        a_volume(claimRef={"name": "c"}, persistentVolumeReclaimPolicy="Delete"),
        [],
    ),
    "a volume stays where it is": (
        PersistentVolumeStrategy(),
        a_volume(),
        a_volume(handle="other", volumeMode="Block"),
        [
            "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation",
            'volumeMode: Invalid value: "Block": field is immutable',
        ],
    ),
    "a claim may get a volume and a class": (
        PersistentVolumeClaimStrategy(),
        a_claim(),
        a_claim(volumeName="v", storageClassName="fast"),
        [],
    ),
    "a claim keeps its volume and class": (
        PersistentVolumeClaimStrategy(),
        a_claim(volumeName="v", storageClassName="fast"),
        a_claim(volumeName="w", storageClassName="slow"),
        [CLAIM_FIXED],
    ),
    "a claim that is not bound does not grow": (
        PersistentVolumeClaimStrategy(),
        a_claim("1Gi"),
        a_claim("2Gi"),
        [CLAIM_FIXED],
    ),
    "a priority class keeps its value": (
        PriorityClassStrategy(),
        an_object(value=1),
        an_object(value=2, preemptionPolicy="Never", description="more"),
        [
            "value: Forbidden: may not be changed in an update.",
            'preemptionPolicy: Invalid value: "Never": field is immutable',
        ],
    ),
    "a group keeps its policy": (
        PodGroupStrategy(),
        a_group(2),
        a_group(3),
        ["spec.schedulingPolicy: Invalid value: null: field is immutable"],
    ),
    "a workload keeps its templates": (
        WorkloadStrategy(),
        an_object({"podGroupTemplates": [{"name": "a"}]}),
        an_object({"podGroupTemplates": [{"name": "b"}]}),
        ["spec.podGroupTemplates: Invalid value: null: field is immutable"],
    ),
    "a runtime class keeps its handler": (
        RuntimeClassStrategy(),
        an_object(handler="a"),
        an_object(handler="b"),
        ['handler: Invalid value: "b": field is immutable'],
    ),
    "a storage class keeps all but its topologies": (
        StorageClassStrategy(),
        an_object(provisioner="a"),
        an_object(
            provisioner="b",
            parameters={"x": "y"},
            volumeBindingMode="WaitForFirstConsumer",
            allowVolumeExpansion=True,
        ),
        [
            'parameters: Invalid value: {"x":"y"}: field is immutable',
            'provisioner: Invalid value: "b": field is immutable',
            'volumeBindingMode: Invalid value: "WaitForFirstConsumer": field is immutable',
        ],
    ),
    "an attributes class keeps all": (
        VolumeAttributesClassStrategy(),
        an_object(driverName="a", parameters={"x": "1"}),
        an_object(driverName="b", parameters={"x": "2"}),
        [
            "driverName: Forbidden: updates to driverName are forbidden.",
            "parameters: Forbidden: updates to parameters are forbidden.",
        ],
    ),
    "a driver keeps whether it attaches": (
        CSIDriverStrategy(),
        an_object({}),
        an_object({"attachRequired": False, "storageCapacity": True}),
        ["spec.attachedRequired: Invalid value: false: field is immutable"],
    ),
    "a node's driver may attach more": (CSINodeStrategy(), drivers("n", 1), drivers("n", 2), []),
    "a node's driver keeps its name for the node": (
        CSINodeStrategy(),
        drivers("n", 1),
        drivers("m", 1),
        ['spec.drivers: Invalid value: {"name":"d","nodeID":"m"}: field is immutable'],
    ),
    "a capacity is of one class": (
        CSIStorageCapacityStrategy(),
        an_object(storageClassName="a", capacity="1"),
        an_object(storageClassName="b", capacity="2"),
        ['storageClassName: Invalid value: "b": field is immutable'],
    ),
    "a device claim keeps its spec": (
        ResourceClaimStrategy(),
        an_object({}),
        an_object({"devices": {"requests": []}}),
        ['spec: Invalid value: {"devices":{"requests":[]}}: field is immutable'],
    ),
    "a template keeps its spec": (
        ResourceClaimTemplateStrategy(),
        an_object({}),
        an_object({"metadata": {"labels": LABELS}}),
        [
            'spec: Invalid value: {"metadata":{"labels":{"app":"web"}},"spec":{"devices":{}}}: '
            "field is immutable"
        ],
    ),
    "a slice may have other devices": (ResourceSliceStrategy(), a_slice(), a_slice(generation=1), []),
    "a slice keeps its place": (
        ResourceSliceStrategy(),
        a_slice(),
        a_slice("e", "m", "q"),
        [
            'spec.pool.name: Invalid value: "q": field is immutable',
            'spec.driver: Invalid value: "e": field is immutable',
            'spec.nodeName: Invalid value: "m": field is immutable',
        ],
    ),
    "a binding keeps its role": (
        RoleBindingStrategy(),
        a_binding("a"),
        a_binding("b"),
        [
            "roleRef: Invalid value: "
            '{"kind":"Role","name":"b","apiGroup":"rbac.authorization.k8s.io"}: cannot change roleRef'
        ],
    ),
    "an event may repeat": (
        EventsEventStrategy(),
        an_event(),
        an_event(series={"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}),
        [],
    ),
    "an event stays what it is": (
        EventsEventStrategy(),
        an_event(),
        an_event(note="x", reportingController="y", series={"count": 1}),
        [
            'series.count: Invalid value: "": should be at least 2',
            "series.lastObservedTime: Required value",
            'message: Invalid value: "x": field is immutable',
            'reportingController: Invalid value: "y": field is immutable',
        ],
    ),
}


@pytest.mark.parametrize(("strategy", "old", "new", "messages"), CHANGES.values(), ids=CHANGES)
def test_what_may_change(strategy: Strategy, old: Manifest, new: Manifest, messages: list[str]) -> None:
    assert update_problems(strategy, old, new) == messages


def test_a_running_job_keeps_its_pods() -> None:
    strategy = JobStrategy()
    old = created(strategy, a_job())
    new: Manifest = copy(old)
    new["spec"]["template"]["spec"]["nodeSelector"] = {"a": "b"}
    (error,) = strategy.validate_update(updated(strategy, old, new), old)
    assert (error.path, error.detail) == ("spec.template", "field is immutable")


def test_a_suspended_job_keeps_its_images() -> None:
    strategy = JobStrategy()
    old = created(strategy, a_job(suspend=True))
    new: Manifest = copy(old)
    new["spec"]["template"]["spec"]["containers"][0]["image"] = "other:1"
    (error,) = strategy.validate_update(updated(strategy, old, new), old)
    assert (error.path, error.detail) == ("spec.template.spec", "field is immutable")


@pytest.mark.parametrize(
    ("size", "messages"),
    [
        ("5Gi", []),
        ("3Gi", []),
        (
            "2Gi",
            ["spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"],
        ),
    ],
    ids=["grows", "gives up growing", "shrinks"],
)
def test_a_bound_claim_grows_and_never_shrinks(size: str, messages: list[str]) -> None:
    strategy = PersistentVolumeClaimStrategy()
    old = created(strategy, a_claim("4Gi"))
    old["status"] = {"phase": "Bound", "capacity": {"storage": "2Gi"}}
    new = updated(strategy, old, a_claim(size))
    assert [str(error) for error in strategy.validate_update(new, old)] == messages


def test_generations_count_changes_of_the_spec_and_a_deployments_annotations() -> None:
    strategy = DeploymentStrategy()
    old = created(strategy, a_controller())
    same = updated(strategy, old, a_controller())
    noted = updated(strategy, old, an_object(copy(old["spec"]), meta={"annotations": {"a": "b"}}))
    scaled = updated(strategy, old, a_controller(replicas=2))
    assert [each["metadata"]["generation"] for each in (old, same, noted, scaled)] == [1, 1, 2, 2]


def test_a_daemon_set_counts_its_templates() -> None:
    strategy = DaemonSetStrategy()
    old = created(strategy, a_controller())
    new = updated(strategy, old, a_controller(template=a_template(priorityClassName="x")))
    newer = updated(
        strategy, new, a_controller(template=a_template(priorityClassName="x"), minReadySeconds=1)
    )
    key = "deprecated.daemonset.template.generation"
    assert [each["metadata"]["annotations"][key] for each in (old, new, newer)] == ["1", "2", "2"]
    assert newer["metadata"]["generation"] == 3


STATUSES: dict[str, tuple[Strategy, Manifest, Manifest, list[str]]] = {
    "more ready than there are": (
        DeploymentStrategy(),
        a_controller(),
        {"replicas": 1, "readyReplicas": 2, "availableReplicas": 3},
        [
            "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas",
            "status.availableReplicas: Invalid value: 3: cannot be greater than status.replicas",
            "status.availableReplicas: Invalid value: 3: cannot be greater than readyReplicas",
        ],
    ),
    "a stateful set with negative pods": (
        StatefulSetStrategy(),
        a_controller(),
        {"replicas": -1, "availableReplicas": -1},
        [
            "status.replicas: Invalid value: -1: must be greater than or equal to 0",
            "status.availableReplicas: Invalid value: -1: must be greater than or equal to 0",
            "status.readyReplicas: Invalid value: 0: cannot be greater than status.replicas",
            "status.currentReplicas: Invalid value: 0: cannot be greater than status.replicas",
            "status.updatedReplicas: Invalid value: 0: cannot be greater than status.replicas",
        ],
    ),
    "a job that ends well": (
        JobStrategy(),
        a_job(),
        {
            "startTime": "2026-01-01T00:00:00Z",
            "completionTime": "2026-01-01T00:00:01Z",
            "succeeded": 1,
            "conditions": [
                {"type": "SuccessCriteriaMet", "status": "True"},
                {"type": "Complete", "status": "True"},
            ],
        },
        [],
    ),
    "a job that both fails and succeeds": (
        JobStrategy(),
        a_job(),
        {
            "active": 1,
            "startTime": "2026-01-01T00:00:00Z",
            "conditions": [{"type": "Complete", "status": "True"}, {"type": "Failed", "status": "True"}],
        },
        [
            "status.conditions: Invalid value: cannot set Complete=True and Failed=true conditions",
            "status.conditions: Invalid value: cannot set Failed=True condition without the "
            "FailureTarget=true condition",
            "status.conditions: Invalid value: cannot set Complete=True condition without the "
            "SuccessCriteriaMet=true condition",
            "status.completionTime: Required value: completionTime is required for Complete jobs",
            "status.active: Invalid value: 1: active>0 is invalid for finished job",
        ],
    ),
    "a claim reserved before it is allocated": (
        ResourceClaimStrategy(),
        an_object({}),
        {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]},
        ["status.reservedFor: Forbidden: may not be specified when `allocated` is not set"],
    ),
    "a claim with what it wants": (
        ResourceClaimStrategy(),
        an_object({"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "g"}}]}}),
        {
            "allocation": {
                "devices": {"results": [{"request": "a", "driver": "d", "pool": "p", "device": "x"}]}
            },
            "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
            "devices": [{"driver": "d", "pool": "p", "device": "x"}],
        },
        [],
    ),
    "a claim with what it does not want": (
        ResourceClaimStrategy(),
        an_object({"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "g"}}]}}),
        {
            "allocation": {
                "devices": {"results": [{"request": "b", "driver": "d", "pool": "p", "device": "x"}]}
            }
        },
        [
            'status.allocation.devices.results[0].request: Invalid value: "b": must be the name of a request '
            "in the claim or the name of a request and a subrequest separated by '/'"
        ],
    ),
    "a group with a claim of nobody": (
        PodGroupStrategy(),
        a_group(1),
        {"resourceClaimStatuses": [{"name": "x"}], "conditions": [{"type": "A", "status": "Maybe"}]},
        [
            'status.conditions[0].status: Unsupported value: "Maybe": '
            'supported values: "False", "True", "Unknown"',
            "status.conditions[0].lastTransitionTime: Required value",
            "status.conditions[0].reason: Required value",
            'status.resourceClaimStatuses[0].name: Invalid value: "x": '
            "must match the name of an entry in `spec.resourceClaims`",
        ],
    ),
}


@pytest.mark.parametrize(("strategy", "obj", "status", "messages"), STATUSES.values(), ids=STATUSES)
def test_statuses(strategy: Strategy, obj: Manifest, status: Manifest, messages: list[str]) -> None:
    assert status_problems(strategy, obj, status) == messages


def test_an_allocation_stays_while_it_is_there() -> None:
    strategy = ResourceClaimStrategy()
    old = created(strategy, an_object({}))
    old["status"] = {"allocation": {"devices": {}}}
    new: Manifest = copy(old)
    new["status"]["allocation"] = {"devices": {}, "nodeSelector": {}}
    (error,) = strategy.validate_status(new, old)
    assert (error.path, error.detail) == ("status.allocation", "field is immutable")
    new["status"] = {}
    assert strategy.validate_status(new, old) == []


def test_a_client_that_writes_a_claims_status_changes_nothing_else() -> None:
    strategy = ResourceClaimStrategy()
    old = created(strategy, an_object({}, meta={"finalizers": ["f"]}))
    new: Manifest = copy(old)
    new["metadata"].update(labels=LABELS, finalizers=[])
    new["spec"]["devices"]["requests"] = [{"name": "a"}]
    new["status"] = {"allocation": {}}
    strategy.prepare_status(new, old)
    assert new == {**old, "status": {"allocation": {}}}


def test_a_volume_remembers_when_its_phase_changed() -> None:
    strategy = PersistentVolumeStrategy()
    old = created(strategy, a_volume())
    old["status"]["lastPhaseTransitionTime"] = "2020-01-01T00:00:00Z"
    same: Manifest = {**copy(old), "status": {"phase": "Pending"}}
    strategy.prepare_status(same, old)
    assert same["status"]["lastPhaseTransitionTime"] == "2020-01-01T00:00:00Z"
    bound: Manifest = {**copy(old), "status": {"phase": "Bound"}}
    strategy.prepare_status(bound, old)
    assert bound["status"]["lastPhaseTransitionTime"] > "2026"
