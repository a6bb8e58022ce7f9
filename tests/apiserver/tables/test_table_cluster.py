from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.tables.table_rows import an_object, before, row, shown

DELETED = {"deletionTimestamp": before(seconds=1)}
STORAGE = "storage.k8s.io"
RESOURCE = "resource.k8s.io"
SCHEDULING = "scheduling.k8s.io"


def is_now(kind: str, status: str, reason: str = "") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason}


NODE = an_object(
    "n1",
    {"labels": {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/control-plane": ""}},
    status={
        "conditions": [is_now("MemoryPressure", "False"), is_now("Ready", "True")],
        "addresses": [
            {"type": "Hostname", "address": "n1"},
            {"type": "InternalIP", "address": "10.0.0.1"},
            {"type": "InternalIP", "address": "fd00::1"},
        ],
        "nodeInfo": {
            "kubeletVersion": "v1.36.4",
            "osImage": "Debian",
            "kernelVersion": "6.1.0",
            "architecture": "arm64",
            "containerRuntimeVersion": "containerd://2.0",
        },
    },
)
VOLUME = an_object(
    spec={
        "capacity": {"storage": "10Gi"},
        "accessModes": ["ReadWriteMany", "ReadWriteOncePod", "ReadOnlyMany", "ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain",
        "claimRef": {"namespace": "default", "name": "data"},
        "storageClassName": "fast",
        "volumeAttributesClassName": "gold",
        "volumeMode": "Block",
    },
    status={"phase": "Bound", "reason": ""},
)
CLAIM = an_object(
    spec={
        "volumeName": "pv1",
        "storageClassName": "fast",
        "volumeMode": "Filesystem",
        "resources": {"requests": {"storage": "5Gi"}},
    },
    status={"phase": "Bound", "capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"]},
)

ROWS: dict[str, tuple[str, str, dict[str, Any], list[Any]]] = {
    "node": (
        "",
        "Node",
        NODE,
        [
            "n1",
            "Ready",
            "control-plane,worker",
            "5m",
            "v1.36.4",
            "10.0.0.1",
            "<none>",
            "Debian",
            "6.1.0 (arm64)",
            "containerd://2.0",
        ],
    ),
    "node, bare": (
        "",
        "Node",
        an_object(),
        ["x", "Unknown", "<none>", "5m", "", "<none>", "<none>", "<unknown>", "<unknown>", "<unknown>"],
    ),
    "runtime class": ("node.k8s.io", "RuntimeClass", an_object(handler="gvisor"), ["x", "gvisor", "5m"]),
    "lease": (
        "coordination.k8s.io",
        "Lease",
        an_object(spec={"holderIdentity": "n1"}),
        ["x", "n1", "5m"],
    ),
    "lease of nobody": ("coordination.k8s.io", "Lease", an_object(), ["x", "", "5m"]),
    "priority class": (
        SCHEDULING,
        "PriorityClass",
        an_object(value=-5, globalDefault=True, preemptionPolicy="Never"),
        ["x", -5, True, "5m", "Never"],
    ),
    "priority class, bare": (SCHEDULING, "PriorityClass", an_object(value=1), ["x", 1, False, "5m", ""]),
    "workload": (SCHEDULING, "Workload", an_object(), ["x", "5m"]),
    "pod group": (
        SCHEDULING,
        "PodGroup",
        an_object(
            spec={
                "schedulingPolicy": {"gang": {"minCount": 3}},
                "podGroupTemplateRef": {"workload": {"workloadName": "train", "podGroupTemplateName": "t"}},
            }
        ),
        ["x", "Gang", "train", "Pending", "5m"],
    ),
    "composite pod group": (
        SCHEDULING,
        "CompositePodGroup",
        an_object(spec={"schedulingPolicy": {"gang": {}}, "workloadRef": {"workloadName": "train"}}),
        ["x", "Gang", "train", "5m"],
    ),
    "taint rule": (
        RESOURCE,
        "DeviceTaintRule",
        an_object(
            spec={
                "taint": {"key": "k", "value": "v", "effect": "NoSchedule", "timeAdded": before(seconds=60)}
            }
        ),
        ["x", "k", "v", "NoSchedule", "60s", "5m"],
    ),
    "pod group, bare": (SCHEDULING, "PodGroup", an_object(), ["x", "Basic", "<none>", "Pending", "5m"]),
    "device class": (RESOURCE, "DeviceClass", an_object(), ["x", "5m"]),
    "claim template": (RESOURCE, "ResourceClaimTemplate", an_object(), ["x", "5m"]),
    "slice": (
        RESOURCE,
        "ResourceSlice",
        an_object(spec={"nodeName": "n1", "driver": "gpu.example.com", "pool": {"name": "p"}}),
        ["x", "n1", "gpu.example.com", "p", "5m"],
    ),
    "slice for all nodes": (
        RESOURCE,
        "ResourceSlice",
        an_object(spec={"allNodes": True, "driver": "d", "pool": {"name": "p"}}),
        ["x", "", "d", "p", "5m"],
    ),
    "volume": (
        "",
        "PersistentVolume",
        VOLUME,
        [
            "x",
            "10Gi",
            "RWO,ROX,RWX,RWOP",
            "Retain",
            "Bound",
            "default/data",
            "fast",
            "gold",
            "",
            "5m",
            "Block",
        ],
    ),
    "volume, bare": (
        "",
        "PersistentVolume",
        an_object(),
        ["x", "0", "", "", "", "", "", "<unset>", "", "5m", "<unset>"],
    ),
    "claim": (
        "",
        "PersistentVolumeClaim",
        CLAIM,
        ["x", "Bound", "pv1", "10Gi", "RWO", "fast", "<unset>", "5m", "Filesystem"],
    ),
    "claim without a volume": (
        "",
        "PersistentVolumeClaim",
        an_object(
            spec={"resources": {"requests": {"storage": "5Gi"}}, "volumeAttributesClassName": ""},
            status={"phase": "Pending", "accessModes": ["ReadWriteOnce"]},
        ),
        ["x", "Pending", "", "", "", "", "", "5m", "<unset>"],
    ),
    "storage class": (
        STORAGE,
        "StorageClass",
        an_object(
            "fast",
            {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
            provisioner="csi.example.com",
            reclaimPolicy="Retain",
            volumeBindingMode="WaitForFirstConsumer",
            allowVolumeExpansion=True,
        ),
        ["fast (default)", "csi.example.com", "Retain", "WaitForFirstConsumer", True, "5m"],
    ),
    "storage class, bare": (
        STORAGE,
        "StorageClass",
        an_object(
            _metadata={"annotations": {"storageclass.kubernetes.io/is-default-class": "false"}},
            provisioner="p",
        ),
        ["x", "p", "Delete", "Immediate", False, "5m"],
    ),
    "attributes class": (
        STORAGE,
        "VolumeAttributesClass",
        an_object(driverName="csi.example.com"),
        ["x", "csi.example.com", "5m"],
    ),
    "attachment": (
        STORAGE,
        "VolumeAttachment",
        an_object(
            spec={"attacher": "a", "source": {"persistentVolumeName": "pv1"}, "nodeName": "n1"},
            status={"attached": True},
        ),
        ["x", "a", "pv1", "n1", True, "5m"],
    ),
    "csi node": (
        STORAGE,
        "CSINode",
        an_object(spec={"drivers": [{"name": "a"}, {"name": "b"}]}),
        ["x", 2, "5m"],
    ),
    "csi driver": (
        STORAGE,
        "CSIDriver",
        an_object(
            spec={
                "attachRequired": False,
                "podInfoOnMount": True,
                "storageCapacity": True,
                "tokenRequests": [{"audience": "a"}, {"audience": "b"}],
                "requiresRepublish": True,
                "volumeLifecycleModes": ["Persistent", "Ephemeral"],
            }
        ),
        ["x", False, True, True, "a,b", True, "Persistent,Ephemeral", "5m"],
    ),
    "csi driver, bare": (
        STORAGE,
        "CSIDriver",
        an_object(),
        ["x", True, False, False, "<unset>", False, "<none>", "5m"],
    ),
    "capacity": (
        STORAGE,
        "CSIStorageCapacity",
        an_object(storageClassName="fast", capacity="1Gi"),
        ["x", "2026-03-14T11:55:00Z"],
    ),
}


@pytest.mark.parametrize(("group", "kind", "obj", "expected"), ROWS.values(), ids=ROWS)
def test_row(group: str, kind: str, obj: dict[str, Any], expected: list[Any]) -> None:
    assert row(group, kind, obj) == expected


NODE_STATES = {
    "not ready": ([is_now("Ready", "False")], False, "NotReady"),
    "out of sight": ([is_now("Ready", "Unknown")], False, "NotReady"),
    "cordoned": ([is_now("Ready", "True")], True, "Ready,SchedulingDisabled"),
    "cordoned and unheard of": ([], True, "Unknown,SchedulingDisabled"),
}


@pytest.mark.parametrize(("conditions", "unschedulable", "expected"), NODE_STATES.values(), ids=NODE_STATES)
def test_status_of_a_node(conditions: list[dict[str, str]], unschedulable: bool, expected: str) -> None:
    node = an_object(spec={"unschedulable": unschedulable}, status={"conditions": conditions})
    assert shown("", "Node", node)["Status"] == expected


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"kubernetes.io/role": "edge", "node-role.kubernetes.io/": ""}, "edge"),
        ({"kubernetes.io/role": "", "other": "x"}, "<none>"),
    ],
)
def test_roles_of_a_node(labels: dict[str, str], expected: str) -> None:
    assert shown("", "Node", an_object(_metadata={"labels": labels}))["Roles"] == expected


GROUP_STATES = {
    "scheduled once": ([is_now("PodGroupInitiallyScheduled", "True")], "Scheduled"),
    "not yet scheduled": ([is_now("PodGroupInitiallyScheduled", "False", "Unschedulable")], "Unschedulable"),
    "scheduled": ([is_now("PodGroupScheduled", "True")], "Scheduled"),
    "not scheduled": ([is_now("PodGroupScheduled", "False", "Unschedulable")], "Unschedulable"),
    "pushed out": (
        [is_now("PodGroupScheduled", "True"), is_now("DisruptionTarget", "True", "PreemptionByScheduler")],
        "PreemptionByScheduler",
    ),
}


@pytest.mark.parametrize(("conditions", "expected"), GROUP_STATES.values(), ids=GROUP_STATES)
def test_status_of_a_pod_group(conditions: list[dict[str, str]], expected: str) -> None:
    group = an_object(status={"conditions": conditions})
    assert shown(SCHEDULING, "PodGroup", group)["Status"] == expected


CLAIM_STATES = {
    "pending": ({}, {}, "pending"),
    "allocated": ({"allocation": {}}, {}, "allocated"),
    "in use": ({"allocation": {}, "reservedFor": [{"name": "p"}]}, {}, "allocated,reserved"),
    "deleted": ({}, DELETED, "deleted"),
    "deleted, in use": (
        {"allocation": {}, "reservedFor": [{"name": "p"}]},
        DELETED,
        "deleted,allocated,reserved",
    ),
}


@pytest.mark.parametrize(("status", "metadata", "expected"), CLAIM_STATES.values(), ids=CLAIM_STATES)
def test_state_of_a_resource_claim(status: dict[str, Any], metadata: dict[str, Any], expected: str) -> None:
    claim = an_object(_metadata=metadata, status=status)
    assert shown(RESOURCE, "ResourceClaim", claim)["State"] == expected


@pytest.mark.parametrize(("kind", "obj"), [("PersistentVolume", VOLUME), ("PersistentVolumeClaim", CLAIM)])
def test_deleted_storage_is_terminating_and_the_annotation_names_its_class(
    kind: str, obj: dict[str, Any]
) -> None:
    annotations = {"annotations": {"volume.beta.kubernetes.io/storage-class": "old"}}
    cells = shown("", kind, {**obj, "metadata": {**obj["metadata"], **DELETED, **annotations}})
    assert (cells["Status"], cells["StorageClass"]) == ("Terminating", "old")
