"""The kinds that clients use, and their paths."""

from __future__ import annotations

from typing import Final, NamedTuple


class Kind(NamedTuple):
    """A kind of objects and its path."""

    group: str
    version: str
    name: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """Group and version, as in objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def go_type(self) -> str:
        """The kind's name in client-go's log."""
        return f"*{self.version}.{self.name}"

    @property
    def resource(self) -> str:
        """The name of a custom kind among events: `plural.version.group`."""
        return f"{self.plural}.{self.version}.{self.group}"

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The path of all objects, of those in a namespace, of one object, or of a subresource."""
        path = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        if self.namespaced and namespace:
            path += f"/namespaces/{namespace}"
        path += f"/{self.plural}"
        if name:
            path += f"/{name}"
        return f"{path}/{subresource}" if subresource else path


NAMESPACE = Kind("", "v1", "Namespace", "namespaces", False)
NODE = Kind("", "v1", "Node", "nodes", False)
POD = Kind("", "v1", "Pod", "pods")
SERVICE = Kind("", "v1", "Service", "services")
EVENT = Kind("events.k8s.io", "v1", "Event", "events")
CORE_EVENT = Kind("", "v1", "Event", "events")
CONFIG_MAP = Kind("", "v1", "ConfigMap", "configmaps")
SECRET = Kind("", "v1", "Secret", "secrets")
SERVICE_ACCOUNT = Kind("", "v1", "ServiceAccount", "serviceaccounts")
PERSISTENT_VOLUME = Kind("", "v1", "PersistentVolume", "persistentvolumes", False)
PERSISTENT_VOLUME_CLAIM = Kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
REPLICATION_CONTROLLER = Kind("", "v1", "ReplicationController", "replicationcontrollers")
RESOURCE_QUOTA = Kind("", "v1", "ResourceQuota", "resourcequotas")
DEPLOYMENT = Kind("apps", "v1", "Deployment", "deployments")
REPLICA_SET = Kind("apps", "v1", "ReplicaSet", "replicasets")
STATEFUL_SET = Kind("apps", "v1", "StatefulSet", "statefulsets")
DAEMON_SET = Kind("apps", "v1", "DaemonSet", "daemonsets")
CONTROLLER_REVISION = Kind("apps", "v1", "ControllerRevision", "controllerrevisions")
CRON_JOB = Kind("batch", "v1", "CronJob", "cronjobs")
JOB = Kind("batch", "v1", "Job", "jobs")
ENDPOINT_SLICE = Kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")
POD_DISRUPTION_BUDGET = Kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
PRIORITY_CLASS = Kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", False)
COSCHEDULING_POD_GROUP = Kind("scheduling.x-k8s.io", "v1alpha1", "PodGroup", "podgroups")
"""PodGroup of scheduler-plugins: a custom resource."""
POD_GROUP = Kind("scheduling.k8s.io", "v1beta1", "PodGroup", "podgroups")
COMPOSITE_POD_GROUP = Kind("scheduling.k8s.io", "v1alpha3", "CompositePodGroup", "compositepodgroups")
LEASE = Kind("coordination.k8s.io", "v1", "Lease", "leases")
STORAGE_CLASS = Kind("storage.k8s.io", "v1", "StorageClass", "storageclasses", False)
CSI_NODE = Kind("storage.k8s.io", "v1", "CSINode", "csinodes", False)
CSI_DRIVER = Kind("storage.k8s.io", "v1", "CSIDriver", "csidrivers", False)
CSI_STORAGE_CAPACITY = Kind("storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities")
VOLUME_ATTACHMENT = Kind("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", False)
VOLUME_ATTRIBUTES_CLASS = Kind(
    "storage.k8s.io", "v1", "VolumeAttributesClass", "volumeattributesclasses", False
)
RESOURCE_CLAIM = Kind("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims")
RESOURCE_CLAIM_TEMPLATE = Kind("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates")
RESOURCE_SLICE = Kind("resource.k8s.io", "v1", "ResourceSlice", "resourceslices", False)
DEVICE_TAINT_RULE = Kind("resource.k8s.io", "v1", "DeviceTaintRule", "devicetaintrules", False)
DEVICE_CLASS = Kind("resource.k8s.io", "v1", "DeviceClass", "deviceclasses", False)

KINDS_BY_NAME: Final = {each.name: each for each in list(globals().values()) if isinstance(each, Kind)}
"""All kinds; of two with the same name, the later one."""
