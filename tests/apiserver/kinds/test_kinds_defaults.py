from __future__ import annotations

from datetime import UTC, datetime

import pytest

from moorage.api.manifests import Manifest, copy
from moorage_cluster.apiserver.kinds.config_and_secrets import ConfigMapStrategy, SecretStrategy
from moorage_cluster.apiserver.kinds.cron_jobs import CronJobStrategy
from moorage_cluster.apiserver.kinds.csi_drivers import (
    CSIDriverStrategy,
    CSINodeStrategy,
    VolumeAttachmentStrategy,
)
from moorage_cluster.apiserver.kinds.daemon_sets import DaemonSetStrategy
from moorage_cluster.apiserver.kinds.endpoints import EndpointsStrategy
from moorage_cluster.apiserver.kinds.events import EventStrategy
from moorage_cluster.apiserver.kinds.jobs import JobStrategy
from moorage_cluster.apiserver.kinds.leases import LeaseStrategy
from moorage_cluster.apiserver.kinds.limits_and_quotas import LimitRangeStrategy, ResourceQuotaStrategy
from moorage_cluster.apiserver.kinds.namespaces import NamespaceStrategy
from moorage_cluster.apiserver.kinds.nodes import NodeStrategy
from moorage_cluster.apiserver.kinds.persistent_volume_claims import PersistentVolumeClaimStrategy
from moorage_cluster.apiserver.kinds.persistent_volumes import PersistentVolumeStrategy
from moorage_cluster.apiserver.kinds.pod_disruption_budgets import PodDisruptionBudgetStrategy
from moorage_cluster.apiserver.kinds.pod_groups import PodGroupStrategy, WorkloadStrategy
from moorage_cluster.apiserver.kinds.pod_templates import PodTemplateStrategy
from moorage_cluster.apiserver.kinds.priority_classes import PriorityClassStrategy
from moorage_cluster.apiserver.kinds.rbac import ClusterRoleBindingStrategy, RoleStrategy
from moorage_cluster.apiserver.kinds.resource_claims import (
    DeviceClassStrategy,
    ResourceClaimStrategy,
    ResourceClaimTemplateStrategy,
)
from moorage_cluster.apiserver.kinds.resource_slices import ResourceSliceStrategy
from moorage_cluster.apiserver.kinds.services import ServiceStrategy
from moorage_cluster.apiserver.kinds.stateful_sets import ControllerRevisionStrategy, StatefulSetStrategy
from moorage_cluster.apiserver.kinds.storage_classes import StorageClassStrategy
from moorage_cluster.apiserver.kinds.workloads import (
    DeploymentStrategy,
    ReplicaSetStrategy,
    ReplicationControllerStrategy,
)
from moorage_cluster.apiserver.strategy import Strategy
from tests.apiserver.kinds.object_builders import (
    LABELS,
    UID,
    a_controller,
    a_full_template,
    a_job,
    a_template,
    an_object,
    created,
)

SELECTOR = {"matchLabels": LABELS}
RBAC = "rbac.authorization.k8s.io"


def noon() -> datetime:
    return datetime(2026, 1, 2, 12, tzinfo=UTC)


JOB_LABELS = {
    "controller-uid": UID,
    "batch.kubernetes.io/controller-uid": UID,
    "job-name": "web",
    "batch.kubernetes.io/job-name": "web",
}
JOB = {
    "template": a_full_template(JOB_LABELS, restartPolicy="Never"),
    "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": UID}},
    "completions": 1,
    "parallelism": 1,
    "backoffLimit": 6,
    "completionMode": "NonIndexed",
    "suspend": False,
    "podReplacementPolicy": "TerminatingOrFailed",
    "manualSelector": False,
}

TABLE: dict[str, tuple[Strategy, Manifest, Manifest]] = {
    "a deployment is replaced a quarter at a time": (
        DeploymentStrategy(),
        a_controller(),
        {
            "spec": {
                "replicas": 1,
                "selector": SELECTOR,
                "strategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
                },
                "revisionHistoryLimit": 10,
                "progressDeadlineSeconds": 600,
                "template": a_full_template(),
            },
            "status": {},
        },
    ),
    "a deployment that is recreated": (
        DeploymentStrategy(),
        a_controller(strategy={"type": "Recreate"}, replicas=0),
        {
            "spec": {
                "replicas": 0,
                "selector": SELECTOR,
                "strategy": {"type": "Recreate"},
                "revisionHistoryLimit": 10,
                "progressDeadlineSeconds": 600,
                "template": a_full_template(),
            },
            "status": {},
        },
    ),
    "a replica set": (
        ReplicaSetStrategy(),
        a_controller(),
        {
            "spec": {"replicas": 1, "selector": SELECTOR, "template": a_full_template()},
            "status": {"replicas": 0},
        },
    ),
    "a replication controller selects what it makes": (
        ReplicationControllerStrategy(),
        an_object({"template": a_template()}),
        {
            "spec": {"replicas": 1, "selector": LABELS, "template": a_full_template()},
            "status": {"replicas": 0},
        },
    ),
    "a stateful set": (
        StatefulSetStrategy(),
        a_controller(volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": {}}]),
        {
            "spec": {
                "replicas": 1,
                "selector": SELECTOR,
                "serviceName": "",
                "podManagementPolicy": "OrderedReady",
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
                "revisionHistoryLimit": 10,
                "template": a_full_template(),
                "volumeClaimTemplates": [
                    {
                        "apiVersion": "v1",
                        "kind": "PersistentVolumeClaim",
                        "metadata": {"name": "data"},
                        "spec": {"volumeMode": "Filesystem"},
                        "status": {"phase": "Pending"},
                    }
                ],
            },
            "status": {"replicas": 0, "availableReplicas": 0},
        },
    ),
    "a daemon set": (
        DaemonSetStrategy(),
        a_controller(),
        {
            "spec": {
                "selector": SELECTOR,
                "updateStrategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
                },
                "revisionHistoryLimit": 10,
                "template": a_full_template(),
            },
            "status": {
                "currentNumberScheduled": 0,
                "desiredNumberScheduled": 0,
                "numberMisscheduled": 0,
                "numberReady": 0,
            },
        },
    ),
    "a revision": (ControllerRevisionStrategy(), an_object(data={}), {"data": {}, "revision": 0}),
    "a pod template": (
        PodTemplateStrategy(),
        an_object(template=a_template()),
        {"template": a_full_template()},
    ),
    "a job": (JobStrategy(), a_job(), {"spec": JOB, "status": {}}),
    "a job that may run on": (
        JobStrategy(),
        a_job(parallelism=3),
        {
            "spec": {**{key: JOB[key] for key in JOB if key != "completions"}, "parallelism": 3},
            "status": {},
        },
    ),
    "a job with a limit an index": (
        JobStrategy(),
        a_job(completionMode="Indexed", completions=2, backoffLimitPerIndex=1),
        {
            "spec": {
                **JOB,
                "completionMode": "Indexed",
                "completions": 2,
                "backoffLimitPerIndex": 1,
                "backoffLimit": 2147483647,
            },
            "status": {},
        },
    ),
    "a cron job": (
        CronJobStrategy(),
        an_object({"schedule": "* * * * *", "jobTemplate": {"spec": {"template": a_template()}}}),
        {
            "spec": {
                "schedule": "* * * * *",
                "concurrencyPolicy": "Allow",
                "suspend": False,
                "successfulJobsHistoryLimit": 3,
                "failedJobsHistoryLimit": 1,
                "jobTemplate": {"metadata": {}, "spec": {"template": a_full_template()}},
            },
            "status": {},
        },
    ),
    "a service": (
        ServiceStrategy(),
        an_object({"ports": [{"port": 80}], "selector": LABELS}),
        {
            "spec": {
                "type": "ClusterIP",
                "sessionAffinity": "None",
                "internalTrafficPolicy": "Cluster",
                "ipFamilies": ["IPv4"],
                "ipFamilyPolicy": "SingleStack",
                "clusterIP": "10.96.1.1",
                "clusterIPs": ["10.96.1.1"],
                "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
                "selector": LABELS,
            },
            "status": {"loadBalancer": {}},
        },
    ),
    "a headless service": (
        ServiceStrategy(),
        an_object({"clusterIP": "None", "selector": LABELS, "sessionAffinity": "ClientIP"}),
        {
            "spec": {
                "type": "ClusterIP",
                "sessionAffinity": "ClientIP",
                "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}},
                "internalTrafficPolicy": "Cluster",
                "ipFamilies": ["IPv4"],
                "ipFamilyPolicy": "SingleStack",
                "clusterIP": "None",
                "clusterIPs": ["None"],
                "selector": LABELS,
            },
            "status": {"loadBalancer": {}},
        },
    ),
    "a load balancer": (
        ServiceStrategy(),
        an_object(
            {"type": "LoadBalancer", "ports": [{"port": 80, "targetPort": "http"}], "selector": LABELS}
        ),
        {
            "spec": {
                "type": "LoadBalancer",
                "allocateLoadBalancerNodePorts": True,
                "externalTrafficPolicy": "Cluster",
                "sessionAffinity": "None",
                "internalTrafficPolicy": "Cluster",
                "ipFamilies": ["IPv4"],
                "ipFamilyPolicy": "SingleStack",
                "clusterIP": "10.96.1.1",
                "clusterIPs": ["10.96.1.1"],
                "ports": [{"port": 80, "protocol": "TCP", "targetPort": "http", "nodePort": 30086}],
                "selector": LABELS,
            },
            "status": {"loadBalancer": {}},
        },
    ),
    "a name for another": (
        ServiceStrategy(),
        an_object({"type": "ExternalName", "externalName": "example.com"}),
        {
            "spec": {"type": "ExternalName", "externalName": "example.com", "sessionAffinity": "None"},
            "status": {"loadBalancer": {}},
        },
    ),
    "endpoints": (
        EndpointsStrategy(),
        an_object(subsets=[{"ports": [{"port": 1}]}]),
        {"subsets": [{"ports": [{"port": 1, "protocol": "TCP"}]}]},
    ),
    "a config map": (ConfigMapStrategy(), an_object(data={"a": "b"}), {"data": {"a": "b"}}),
    "a secret with plain text": (
        SecretStrategy(),
        an_object(stringData={"a": "b", "c": "ü"}, data={"a": "eA==", "d": "eA=="}),
        {"type": "Opaque", "data": {"a": "Yg==", "c": "w7w=", "d": "eA=="}},
    ),
    "a limit range": (
        LimitRangeStrategy(),
        an_object(
            {
                "limits": [
                    {
                        "type": "Container",
                        "max": {"cpu": "2", "memory": "2Gi"},
                        "min": {"storage": "1", "cpu": "1"},
                        "default": {"memory": "1Gi"},
                    },
                    {"type": "Pod", "max": {"cpu": "4"}},
                ]
            }
        ),
        {
            "spec": {
                "limits": [
                    {
                        "type": "Container",
                        "max": {"cpu": "2", "memory": "2Gi"},
                        "min": {"storage": "1", "cpu": "1"},
                        "default": {"cpu": "2", "memory": "1Gi"},
                        "defaultRequest": {"cpu": "2", "memory": "1Gi", "storage": "1"},
                    },
                    {"type": "Pod", "max": {"cpu": "4"}},
                ]
            }
        },
    ),
    "a quota": (ResourceQuotaStrategy(), an_object({}, status={"hard": {}}), {"spec": {}, "status": {}}),
    "a volume": (
        PersistentVolumeStrategy(noon),
        an_object({"hostPath": {"path": "/x"}}, status={"phase": "Bound"}),
        {
            "spec": {
                "hostPath": {"path": "/x", "type": ""},
                "persistentVolumeReclaimPolicy": "Retain",
                "volumeMode": "Filesystem",
            },
            "status": {"phase": "Pending", "lastPhaseTransitionTime": "2026-01-02T12:00:00Z"},
        },
    ),
    "a claim from a snapshot": (
        PersistentVolumeClaimStrategy(),
        an_object(
            {
                "dataSource": {
                    "apiGroup": "snapshot.storage.k8s.io",
                    "kind": "VolumeSnapshot",
                    "name": "a",
                }
            },
            status={"phase": "Bound"},
        ),
        {
            "spec": {
                "volumeMode": "Filesystem",
                "dataSource": {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "a"},
                "dataSourceRef": {
                    "apiGroup": "snapshot.storage.k8s.io",
                    "kind": "VolumeSnapshot",
                    "name": "a",
                },
            },
            "status": {"phase": "Pending"},
        },
    ),
    "a claim from what was never known": (
        PersistentVolumeClaimStrategy(),
        an_object({"dataSource": {"kind": "Moon", "name": "a"}}),
        {"spec": {"volumeMode": "Filesystem"}, "status": {"phase": "Pending"}},
    ),
    "a claim with a new kind of source": (
        PersistentVolumeClaimStrategy(),
        an_object({"dataSourceRef": {"apiGroup": "a.b", "kind": "Moon", "name": "a"}}),
        {
            "spec": {
                "volumeMode": "Filesystem",
                "dataSourceRef": {"apiGroup": "a.b", "kind": "Moon", "name": "a"},
                "dataSource": {"apiGroup": "a.b", "kind": "Moon", "name": "a"},
            },
            "status": {"phase": "Pending"},
        },
    ),
    "a budget": (
        PodDisruptionBudgetStrategy(),
        an_object({"minAvailable": 1}),
        {
            "spec": {"minAvailable": 1},
            "status": {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0},
        },
    ),
    "a priority class": (
        PriorityClassStrategy(),
        an_object(value=5),
        {"value": 5, "preemptionPolicy": "PreemptLowerPriority"},
    ),
    "a pod group": (
        PodGroupStrategy(),
        an_object({"schedulingPolicy": {"gang": {"minCount": 2}}}),
        {
            "spec": {"disruptionMode": "Pod", "schedulingPolicy": {"gang": {"minCount": 2}}},
            "status": {},
        },
    ),
    "a workload": (
        WorkloadStrategy(),
        an_object({"podGroupTemplates": [{"name": "a"}]}),
        {"spec": {"podGroupTemplates": [{"name": "a", "schedulingPolicy": {}}]}},
    ),
    "a storage class": (
        StorageClassStrategy(),
        an_object(provisioner="a.b"),
        {"provisioner": "a.b", "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
    ),
    "a driver": (
        CSIDriverStrategy(),
        an_object(),
        {
            "spec": {
                "attachRequired": True,
                "podInfoOnMount": False,
                "storageCapacity": False,
                "requiresRepublish": False,
                "seLinuxMount": False,
                "fsGroupPolicy": "ReadWriteOnceWithFSType",
                "volumeLifecycleModes": ["Persistent"],
            }
        },
    ),
    "a node's drivers": (CSINodeStrategy(), an_object(), {"spec": {"drivers": []}}),
    "an attachment": (
        VolumeAttachmentStrategy(),
        an_object({}, status={"attached": True}),
        {"spec": {}, "status": {"attached": False}},
    ),
    "a lease": (LeaseStrategy(), an_object(), {"spec": {}}),
    "a claim for a device": (
        ResourceClaimStrategy(),
        an_object(
            {
                "devices": {
                    "requests": [
                        {"name": "a", "exactly": {"deviceClassName": "gpu", "tolerations": [{"key": "k"}]}},
                        {"name": "b", "firstAvailable": [{"name": "c", "deviceClassName": "gpu"}]},
                        {"name": "d", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}},
                    ]
                }
            },
            status={"allocation": {}},
        ),
        {
            "spec": {
                "devices": {
                    "requests": [
                        {
                            "name": "a",
                            "exactly": {
                                "deviceClassName": "gpu",
                                "allocationMode": "ExactCount",
                                "count": 1,
                                "tolerations": [{"key": "k", "operator": "Equal"}],
                            },
                        },
                        {
                            "name": "b",
                            "firstAvailable": [
                                {
                                    "name": "c",
                                    "deviceClassName": "gpu",
                                    "allocationMode": "ExactCount",
                                    "count": 1,
                                }
                            ],
                        },
                        {"name": "d", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}},
                    ]
                }
            },
            "status": {},
        },
    ),
    "a template for claims": (
        ResourceClaimTemplateStrategy(),
        an_object({"spec": {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "g"}}]}}}),
        {
            "spec": {
                "metadata": {},
                "spec": {
                    "devices": {
                        "requests": [
                            {
                                "name": "a",
                                "exactly": {
                                    "deviceClassName": "g",
                                    "allocationMode": "ExactCount",
                                    "count": 1,
                                },
                            }
                        ]
                    }
                },
            }
        },
    ),
    "a device class": (DeviceClassStrategy(), an_object(), {"spec": {}}),
    "a slice": (
        ResourceSliceStrategy(noon),
        an_object({"devices": [{"name": "a", "taints": [{"key": "k", "effect": "NoSchedule"}]}]}),
        {
            "spec": {
                "devices": [
                    {
                        "name": "a",
                        "taints": [{"key": "k", "effect": "NoSchedule", "timeAdded": "2026-01-02T12:00:00Z"}],
                    }
                ]
            }
        },
    ),
    "a role": (RoleStrategy(), an_object(rules=[]), {"rules": []}),
    "a binding": (
        ClusterRoleBindingStrategy(),
        an_object(
            roleRef={"kind": "ClusterRole", "name": "x"},
            subjects=[
                {"kind": "User", "name": "u"},
                {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
            ],
        ),
        {
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "x"},
            "subjects": [
                {"apiGroup": RBAC, "kind": "User", "name": "u"},
                {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
            ],
        },
    ),
    "an event": (
        EventStrategy(),
        an_object(reason="R"),
        {
            "involvedObject": {},
            "source": {},
            "reason": "R",
            "reportingComponent": "",
            "reportingInstance": "",
        },
    ),
}


@pytest.mark.parametrize(("strategy", "sent", "full"), TABLE.values(), ids=TABLE)
def test_what_was_left_out_is_filled_in(strategy: Strategy, sent: Manifest, full: Manifest) -> None:
    new = created(strategy, sent)
    new.pop("metadata")
    assert new == full


@pytest.mark.parametrize(("strategy", "sent", "full"), TABLE.values(), ids=TABLE)
def test_defaults_of_defaults_are_the_same(strategy: Strategy, sent: Manifest, full: Manifest) -> None:
    new = created(strategy, sent)
    again: Manifest = copy(new)
    strategy.default(again)
    assert again == new


def test_a_namespace_is_active_and_labelled_with_its_name() -> None:
    new = created(NamespaceStrategy(), {"metadata": {"name": "team"}, "status": {"phase": "Terminating"}})
    assert new == {
        "metadata": {"name": "team", "labels": {"kubernetes.io/metadata.name": "team"}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def test_a_namespace_whose_name_is_generated_late_is_labelled_too() -> None:
    strategy = NamespaceStrategy()
    new: Manifest = {"metadata": {"generateName": "team-"}}
    strategy.default(new)
    assert "labels" not in new["metadata"]
    new["metadata"]["name"] = "team-x"
    strategy.prepare_create(new)
    assert new["metadata"]["labels"] == {"kubernetes.io/metadata.name": "team-x"}


def test_a_node_offers_all_it_has_and_keeps_the_status_it_came_with() -> None:
    new = created(
        NodeStrategy(), {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4", "pods": "110"}}}
    )
    assert new["status"]["allocatable"] == {"cpu": "4", "pods": "110"}
    assert new["status"]["allocatable"] is not new["status"]["capacity"]
    assert new["status"]["nodeInfo"]["kubeletVersion"] == ""
    assert new["status"]["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 0}}


def test_a_node_that_says_what_can_be_allocated_is_believed() -> None:
    status = {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}}
    new = created(NodeStrategy(), {"metadata": {"name": "n"}, "status": status})
    assert new["status"]["allocatable"] == {"cpu": "3"}


@pytest.mark.parametrize(
    ("own", "of_pods", "shown"),
    [({}, LABELS, LABELS), ({"own": "label"}, LABELS, {"own": "label"}), ({}, {}, JOB_LABELS)],
    ids=["none", "own", "generated"],
)
def test_a_job_without_labels_takes_those_of_its_pods(
    own: Manifest, of_pods: Manifest, shown: Manifest
) -> None:
    job = an_object({"template": a_template(of_pods, restartPolicy="Never")}, meta={"labels": dict(own)})
    assert created(JobStrategy(), job)["metadata"]["labels"] == shown


def test_generations_start_at_one_and_daemon_sets_count_templates() -> None:
    metadata = created(DaemonSetStrategy(), a_controller())["metadata"]
    assert metadata["generation"] == 1
    assert metadata["annotations"] == {"deprecated.daemonset.template.generation": "1"}
