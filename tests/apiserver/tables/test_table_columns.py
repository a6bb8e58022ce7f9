from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage_cluster.apiserver.tables.base import NAME_AND_AGE, TableColumn
from moorage_cluster.apiserver.tables.registry import printer_for

# Marks after a header: # integer, ? boolean, @ date, ! the object's name, + only with `-o wide`.
_TYPES = {"string": "", "integer": "#", "boolean": "?", "date": "@"}
_CONTAINERS = "Containers+|Images+"
_BINDING = "Name!|Role|Age|Users+|Groups+|ServiceAccounts+"
_EVENT = "Last Seen|Type|Reason|Object|Subobject+|Source+|Message|First Seen+|Count+|Name!+"
_REPLICAS = f"Name!|Desired#|Current#|Ready#|Age|{_CONTAINERS}|Selector+"

HEADERS = {
    ("", "Namespace"): "Name!|Status|Age",
    ("", "Node"): (
        "Name!|Status|Roles|Age|Version|"
        "Internal-IP+|External-IP+|OS-Image+|Kernel-Version+|Container-Runtime+"
    ),
    ("", "Pod"): "Name!|Ready|Status|Restarts|Age|IP+|Node+|Nominated Node+|Readiness Gates+",
    ("", "PodTemplate"): "Name!|Containers|Images|Pod Labels",
    ("", "Service"): "Name!|Type|Cluster-IP|External-IP|Port(s)|Age|Selector+",
    ("", "Endpoints"): "Name!|Endpoints|Age",
    ("", "PersistentVolume"): (
        "Name!|Capacity|Access Modes|Reclaim Policy|Status|Claim|StorageClass|VolumeAttributesClass|"
        "Reason|Age|VolumeMode+"
    ),
    ("", "PersistentVolumeClaim"): (
        "Name!|Status|Volume|Capacity|Access Modes|StorageClass|VolumeAttributesClass|Age|VolumeMode+"
    ),
    ("", "Event"): _EVENT,
    ("events.k8s.io", "Event"): _EVENT,
    ("", "ConfigMap"): "Name!|Data|Age",
    ("", "Secret"): "Name!|Type|Data|Age",
    ("", "ServiceAccount"): "Name!|Age",
    ("", "ReplicationController"): _REPLICAS,
    ("", "LimitRange"): "Name!|Created At@",
    ("", "ResourceQuota"): "Name!|Request|Limit|Age",
    ("apps", "Deployment"): f"Name!|Ready|Up-to-date|Available|Age|{_CONTAINERS}|Selector+",
    ("apps", "ReplicaSet"): _REPLICAS,
    ("apps", "StatefulSet"): f"Name!|Ready|Age|{_CONTAINERS}",
    ("apps", "DaemonSet"): (
        f"Name!|Desired#|Current#|Ready#|Up-to-date#|Available#|Node Selector|Age|{_CONTAINERS}|Selector+"
    ),
    ("apps", "ControllerRevision"): "Name!|Controller|Revision|Age",
    ("batch", "Job"): f"Name!|Status|Completions|Duration|Age|{_CONTAINERS}|Selector+",
    ("batch", "CronJob"): (
        f"Name!|Schedule|Timezone|Suspend?|Active#|Last Schedule|Age|{_CONTAINERS}|Selector+"
    ),
    ("policy", "PodDisruptionBudget"): "Name!|Min Available|Max Unavailable|Allowed Disruptions#|Age",
    ("scheduling.k8s.io", "PriorityClass"): "Name!|Value#|Global-Default?|Age|PreemptionPolicy",
    ("scheduling.k8s.io", "PodGroup"): "Name!|Policy|Workload|Status|Age",
    ("scheduling.k8s.io", "Workload"): "Name!|Age",
    ("node.k8s.io", "RuntimeClass"): "Name!|Handler|Age",
    ("storage.k8s.io", "StorageClass"): (
        "Name!|Provisioner|ReclaimPolicy|VolumeBindingMode|AllowVolumeExpansion|Age"
    ),
    ("storage.k8s.io", "CSINode"): "Name!|Drivers#|Age",
    ("storage.k8s.io", "CSIDriver"): (
        "Name!|AttachRequired?|PodInfoOnMount?|StorageCapacity?|TokenRequests|RequiresRepublish?|Modes|Age"
    ),
    ("storage.k8s.io", "CSIStorageCapacity"): "Name!|Created At@",
    ("storage.k8s.io", "VolumeAttachment"): "Name!|Attacher!|PV|Node|Attached?|Age",
    ("storage.k8s.io", "VolumeAttributesClass"): "Name!|DriverName|Age",
    ("coordination.k8s.io", "Lease"): "Name!|Holder|Age",
    ("resource.k8s.io", "ResourceClaim"): "Name!|State|Age",
    ("resource.k8s.io", "ResourceClaimTemplate"): "Name!|Age",
    ("resource.k8s.io", "DeviceClass"): "Name!|Age",
    ("resource.k8s.io", "ResourceSlice"): "Name!|Node|Driver|Pool|Age",
    ("rbac.authorization.k8s.io", "Role"): "Name!|Created At@",
    ("rbac.authorization.k8s.io", "ClusterRole"): "Name!|Created At@",
    ("rbac.authorization.k8s.io", "RoleBinding"): _BINDING,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _BINDING,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): "Name!|Created At@",
    ("autoscaling", "Scale"): "Name|Desired#|Available#|Age",
}


def _header(column: TableColumn) -> str:
    assert column.format in ("", "name")
    assert column.priority in (0, 1)
    return f"{column.name}{_TYPES[column.type]}{'!' * bool(column.format)}{'+' * column.priority}"


@pytest.mark.parametrize(("group", "kind"), HEADERS)
def test_headers(group: str, kind: str) -> None:
    assert "|".join(map(_header, printer_for(group, kind).columns)) == HEADERS[group, kind]


@pytest.mark.parametrize(("group", "kind"), HEADERS)
def test_each_column_is_described(group: str, kind: str) -> None:
    assert all(column.description.endswith(".") for column in printer_for(group, kind).columns)


def test_other_kinds_show_name_and_age() -> None:
    assert printer_for("example.com", "Pod") is NAME_AND_AGE


_FIELDS = sorted(
    {"spec", "status", "conditions", "containerStatuses", "initContainerStatuses", "state", "terminated"}
    | {"waiting", "running", "template", "containers", "selector", "matchLabels", "matchExpressions", "type"}
    | {"subsets", "addresses", "ports", "series", "hard", "used", "subjects", "capacity", "drivers", "ready"}
    | {"initContainers", "key", "operator", "values", "replicas", "startTime", "completionTime", "claimRef"}
)
_scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "In", "True", "a", "Ready"])
_strange = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_FIELDS), inner, max_size=5),
    max_leaves=20,
)


@given(obj=st.dictionaries(st.sampled_from(_FIELDS), _strange, max_size=6))
def test_strange_objects_have_rows_too(obj: dict[str, Any]) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    obj["metadata"] = {"name": "x"}
    for group, kind in HEADERS:
        printer = printer_for(group, kind)
        assert len(printer.row(obj, now)) == len(printer.columns)
