"""All built-in resources, in one table: their groups, versions and names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from moorage.api.manifests import Manifest
from moorage.apimachinery.schema import schema_of
from moorage_cluster.apiserver.extensions.definition import CustomResourceDefinitionStrategy
from moorage_cluster.apiserver.kinds import pod_groups, scheduling_groups, scheduling_workloads
from moorage_cluster.apiserver.kinds.admission_policies import (
    MutatingAdmissionPolicyBindingStrategy,
    MutatingAdmissionPolicyStrategy,
    ValidatingAdmissionPolicyBindingStrategy,
    ValidatingAdmissionPolicyStrategy,
)
from moorage_cluster.apiserver.kinds.admission_webhooks import (
    MutatingWebhookConfigurationStrategy,
    ValidatingWebhookConfigurationStrategy,
)
from moorage_cluster.apiserver.kinds.api_services import APIServiceStrategy
from moorage_cluster.apiserver.kinds.autoscaler_versions import AutoscalerConversion
from moorage_cluster.apiserver.kinds.autoscalers import AutoscalerStrategy, AutoscalerV1Strategy
from moorage_cluster.apiserver.kinds.certificate_requests import (
    CertificateApprovalStrategy,
    CertificateSigningRequestStrategy,
)
from moorage_cluster.apiserver.kinds.config_and_secrets import (
    ConfigMapStrategy,
    SecretStrategy,
    ServiceAccountStrategy,
)
from moorage_cluster.apiserver.kinds.cron_jobs import CronJobStrategy
from moorage_cluster.apiserver.kinds.csi_drivers import (
    CSIDriverStrategy,
    CSINodeStrategy,
    CSIStorageCapacityStrategy,
    VolumeAttachmentStrategy,
)
from moorage_cluster.apiserver.kinds.daemon_sets import DaemonSetStrategy
from moorage_cluster.apiserver.kinds.device_taints import DeviceTaintRuleStrategy
from moorage_cluster.apiserver.kinds.endpoint_slices import EndpointSliceStrategy
from moorage_cluster.apiserver.kinds.endpoints import EndpointsStrategy
from moorage_cluster.apiserver.kinds.events import EventsEventStrategy, EventStrategy, to_core, to_events
from moorage_cluster.apiserver.kinds.ingresses import IngressClassStrategy, IngressStrategy
from moorage_cluster.apiserver.kinds.jobs import JobStrategy
from moorage_cluster.apiserver.kinds.leases import LeaseStrategy
from moorage_cluster.apiserver.kinds.limits_and_quotas import LimitRangeStrategy, ResourceQuotaStrategy
from moorage_cluster.apiserver.kinds.namespaces import NamespaceStrategy
from moorage_cluster.apiserver.kinds.network_policies import NetworkPolicyStrategy
from moorage_cluster.apiserver.kinds.nodes import NodeStrategy
from moorage_cluster.apiserver.kinds.persistent_volume_claims import PersistentVolumeClaimStrategy
from moorage_cluster.apiserver.kinds.persistent_volumes import PersistentVolumeStrategy
from moorage_cluster.apiserver.kinds.pod_disruption_budgets import PodDisruptionBudgetStrategy
from moorage_cluster.apiserver.kinds.pod_templates import PodTemplateStrategy
from moorage_cluster.apiserver.kinds.pods.strategy import PodStrategy
from moorage_cluster.apiserver.kinds.priority_classes import PriorityClassStrategy
from moorage_cluster.apiserver.kinds.rbac import (
    ClusterRoleBindingStrategy,
    ClusterRoleStrategy,
    RoleBindingStrategy,
    RoleStrategy,
)
from moorage_cluster.apiserver.kinds.resource_claims import (
    DeviceClassStrategy,
    ResourceClaimStrategy,
    ResourceClaimTemplateStrategy,
)
from moorage_cluster.apiserver.kinds.resource_slices import ResourceSliceStrategy
from moorage_cluster.apiserver.kinds.runtime_classes import RuntimeClassStrategy
from moorage_cluster.apiserver.kinds.scale import scale_of, with_scale
from moorage_cluster.apiserver.kinds.services import ServiceStrategy
from moorage_cluster.apiserver.kinds.stateful_sets import ControllerRevisionStrategy, StatefulSetStrategy
from moorage_cluster.apiserver.kinds.storage_classes import (
    StorageClassStrategy,
    VolumeAttributesClassStrategy,
)
from moorage_cluster.apiserver.kinds.workloads import (
    DeploymentStrategy,
    ReplicaSetStrategy,
    ReplicationControllerStrategy,
)
from moorage_cluster.apiserver.resources import STATUS_VERBS, APIResource, Subresource
from moorage_cluster.apiserver.server_version import COMPOSITE_POD_GROUP, GENERIC_WORKLOAD, ServerVersion
from moorage_cluster.apiserver.strategy import Strategy
from moorage_cluster.apiserver.tables.registry import printer_for

CREATE_ONLY = ("create",)
ALL = ("all",)


class _ReplicaScaling:
    """Scales objects with `spec.replicas`."""

    def scale_of(self, obj: Manifest) -> Manifest:
        """An object's Scale."""
        return scale_of(obj)

    def with_scale(self, obj: Manifest, scale: Manifest) -> Manifest:
        """An object with the number of replicas of a Scale."""
        return with_scale(obj, scale)


class _EventConversion:
    """Events of events.k8s.io are stored in the core group's form."""

    def from_storage(self, obj: Manifest) -> Manifest:
        """The event in the form of events.k8s.io."""
        return to_events(obj)

    def to_storage(self, obj: Manifest) -> Manifest:
        """The event in the core group's form."""
        return to_core(obj)


_SCALING = _ReplicaScaling()
_SCALE = Subresource("scale", "Scale", STATUS_VERBS, "autoscaling", "v1")


def builtin_resources(
    all_of: Callable[[str], Iterable[Manifest]], now: Callable[[], datetime], version: ServerVersion
) -> Iterator[APIResource]:
    """Every built-in resource of a version; `all_of` returns the stored objects of a collection."""
    for resource in (
        *_core(all_of, now),
        *_workloads(),
        *_networking(),
        *_cluster(now),
        *([] if version.is_1_36 else _since_1_37(now)),
        *_scheduling_groups(version),
        *_extensions(now),
        *_questions(),
    ):
        schema = schema_of(resource.group, resource.version, resource.kind, version.types)
        assert schema is not None, resource.kind
        yield replace(resource, schema=schema)


def _resource(
    group: str,
    version: str,
    kind: str,
    plural: str,
    strategy: Strategy,
    *subresources: Subresource,
    namespaced: bool = True,
    **more: Any,
) -> APIResource:
    if strategy.has_status:
        subresources = (Subresource("status", kind, STATUS_VERBS), *subresources)
    return APIResource(
        group,
        version,
        kind,
        plural,
        namespaced,
        strategy,
        printer=printer_for(group, kind),
        subresources=subresources,
        scaling=_SCALING if _SCALE in subresources else None,
        **more,
    )


def _core(all_of: Callable[[str], Iterable[Manifest]], now: Callable[[], datetime]) -> Iterator[APIResource]:
    def row(
        kind: str, plural: str, strategy: Strategy, *subresources: Subresource, **more: Any
    ) -> APIResource:
        return _resource("", "v1", kind, plural, strategy, *subresources, **more)

    yield row("Binding", "bindings", Strategy(), verbs=CREATE_ONLY)
    yield row("ConfigMap", "configmaps", ConfigMapStrategy(), short_names=("cm",))
    yield row("Endpoints", "endpoints", EndpointsStrategy(), short_names=("ep",))
    yield row("Event", "events", EventStrategy(), short_names=("ev",))
    yield row("LimitRange", "limitranges", LimitRangeStrategy(), short_names=("limits",))
    yield row(
        "Namespace", "namespaces", NamespaceStrategy(), Subresource("finalize", "Namespace", ("update",)),
        namespaced=False, short_names=("ns",),
        verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
    )  # fmt: skip
    yield row("Node", "nodes", NodeStrategy(), namespaced=False, short_names=("no",))
    yield row(
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        PersistentVolumeClaimStrategy(),
        short_names=("pvc",),
    )
    yield row(
        "PersistentVolume",
        "persistentvolumes",
        PersistentVolumeStrategy(now),
        namespaced=False,
        short_names=("pv",),
    )
    yield row(
        "Pod",
        "pods",
        PodStrategy(now),
        Subresource("binding", "Binding", CREATE_ONLY),
        Subresource("ephemeralcontainers", "Pod", STATUS_VERBS),
        Subresource("eviction", "Eviction", CREATE_ONLY, "policy", "v1"),
        Subresource("log", "Pod", ("get",)),
        Subresource("resize", "Pod", STATUS_VERBS),
        short_names=("po",),
        categories=ALL,
    )
    yield row("PodTemplate", "podtemplates", PodTemplateStrategy())
    yield row(
        "ReplicationController",
        "replicationcontrollers",
        ReplicationControllerStrategy(),
        _SCALE,
        short_names=("rc",),
        categories=ALL,
    )
    yield row("ResourceQuota", "resourcequotas", ResourceQuotaStrategy(), short_names=("quota",))
    yield row("Secret", "secrets", SecretStrategy())
    yield row(
        "ServiceAccount",
        "serviceaccounts",
        ServiceAccountStrategy(),
        Subresource("token", "TokenRequest", CREATE_ONLY, "authentication.k8s.io", "v1"),
        short_names=("sa",),
    )
    yield row(
        "Service",
        "services",
        ServiceStrategy(lambda: all_of("/services")),
        short_names=("svc",),
        categories=ALL,
    )


def _workloads() -> Iterator[APIResource]:
    yield _resource("apps", "v1", "ControllerRevision", "controllerrevisions", ControllerRevisionStrategy())
    yield _resource(
        "apps", "v1", "DaemonSet", "daemonsets", DaemonSetStrategy(), short_names=("ds",), categories=ALL
    )
    yield _resource(
        "apps", "v1", "Deployment", "deployments", DeploymentStrategy(), _SCALE,
        short_names=("deploy",), categories=ALL,
    )  # fmt: skip
    yield _resource(
        "apps", "v1", "ReplicaSet", "replicasets", ReplicaSetStrategy(), _SCALE,
        short_names=("rs",), categories=ALL,
    )  # fmt: skip
    yield _resource(
        "apps", "v1", "StatefulSet", "statefulsets", StatefulSetStrategy(), _SCALE,
        short_names=("sts",), categories=ALL,
    )  # fmt: skip
    yield _resource(
        "batch", "v1", "CronJob", "cronjobs", CronJobStrategy(), short_names=("cj",), categories=ALL
    )
    yield _resource("batch", "v1", "Job", "jobs", JobStrategy(), categories=ALL)
    yield _resource(
        "policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", PodDisruptionBudgetStrategy(),
        short_names=("pdb",),
    )  # fmt: skip
    yield _resource(
        "autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", AutoscalerStrategy(),
        short_names=("hpa",), categories=ALL,
    )  # fmt: skip
    yield _resource(
        "autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers", AutoscalerV1Strategy(),
        short_names=("hpa",), categories=ALL, conversion=AutoscalerConversion(),
    )  # fmt: skip


def _networking() -> Iterator[APIResource]:
    networking = "networking.k8s.io"
    yield _resource(
        networking, "v1", "IngressClass", "ingressclasses", IngressClassStrategy(), namespaced=False
    )
    yield _resource(networking, "v1", "Ingress", "ingresses", IngressStrategy(), short_names=("ing",))
    yield _resource(
        networking, "v1", "NetworkPolicy", "networkpolicies", NetworkPolicyStrategy(), short_names=("netpol",)
    )
    yield _resource("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", EndpointSliceStrategy())


def _cluster(now: Callable[[], datetime]) -> Iterator[APIResource]:
    yield _resource(
        "scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", PriorityClassStrategy(),
        namespaced=False, short_names=("pc",),
    )  # fmt: skip
    yield _resource(
        "node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", RuntimeClassStrategy(), namespaced=False
    )
    storage = "storage.k8s.io"
    yield _resource(storage, "v1", "CSIDriver", "csidrivers", CSIDriverStrategy(), namespaced=False)
    yield _resource(storage, "v1", "CSINode", "csinodes", CSINodeStrategy(), namespaced=False)
    yield _resource(storage, "v1", "CSIStorageCapacity", "csistoragecapacities", CSIStorageCapacityStrategy())
    yield _resource(
        storage, "v1", "StorageClass", "storageclasses", StorageClassStrategy(), namespaced=False,
        short_names=("sc",),
    )  # fmt: skip
    yield _resource(
        storage, "v1", "VolumeAttachment", "volumeattachments", VolumeAttachmentStrategy(), namespaced=False
    )
    yield _resource(
        storage, "v1", "VolumeAttributesClass", "volumeattributesclasses", VolumeAttributesClassStrategy(),
        namespaced=False, short_names=("vac",),
    )  # fmt: skip
    yield _resource("coordination.k8s.io", "v1", "Lease", "leases", LeaseStrategy())
    yield _resource(
        "events.k8s.io", "v1", "Event", "events", EventsEventStrategy(), short_names=("ev",),
        stored_as="/events", conversion=_EventConversion(),
    )  # fmt: skip
    devices = "resource.k8s.io"
    yield _resource(devices, "v1", "DeviceClass", "deviceclasses", DeviceClassStrategy(), namespaced=False)
    yield _resource(devices, "v1", "ResourceClaim", "resourceclaims", ResourceClaimStrategy())
    yield _resource(
        devices, "v1", "ResourceClaimTemplate", "resourceclaimtemplates", ResourceClaimTemplateStrategy()
    )
    yield _resource(
        devices, "v1", "ResourceSlice", "resourceslices", ResourceSliceStrategy(now), namespaced=False
    )
    yield _resource(
        "certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests",
        CertificateSigningRequestStrategy(now),
        Subresource(
            "approval", "CertificateSigningRequest", STATUS_VERBS, strategy=CertificateApprovalStrategy(now)
        ),
        namespaced=False, short_names=("csr",),
    )  # fmt: skip
    rbac = "rbac.authorization.k8s.io"
    yield _resource(
        rbac,
        "v1",
        "ClusterRoleBinding",
        "clusterrolebindings",
        ClusterRoleBindingStrategy(),
        namespaced=False,
    )
    yield _resource(rbac, "v1", "ClusterRole", "clusterroles", ClusterRoleStrategy(), namespaced=False)
    yield _resource(rbac, "v1", "RoleBinding", "rolebindings", RoleBindingStrategy())
    yield _resource(rbac, "v1", "Role", "roles", RoleStrategy())


def _since_1_37(now: Callable[[], datetime]) -> Iterator[APIResource]:
    yield _resource(
        "resource.k8s.io", "v1", "DeviceTaintRule", "devicetaintrules", DeviceTaintRuleStrategy(now),
        namespaced=False,
    )  # fmt: skip


def _scheduling_groups(version: ServerVersion) -> Iterator[APIResource]:
    """Pods that are scheduled together: always served in v1.36, with their feature gates since."""
    group = "scheduling.k8s.io"
    if version.is_1_36:
        yield _resource(group, "v1alpha2", "PodGroup", "podgroups", pod_groups.PodGroupStrategy())
        yield _resource(group, "v1alpha2", "Workload", "workloads", pod_groups.WorkloadStrategy())
        return
    if version.enabled(GENERIC_WORKLOAD):
        for of in ("v1beta1", "v1alpha3"):
            yield _resource(group, of, "PodGroup", "podgroups", scheduling_groups.PodGroupStrategy(version))
            yield _resource(
                group, of, "Workload", "workloads", scheduling_workloads.WorkloadStrategy(version)
            )
    if version.enabled(COMPOSITE_POD_GROUP):
        strategy = scheduling_groups.CompositePodGroupStrategy(version)
        yield _resource(group, "v1alpha3", "CompositePodGroup", "compositepodgroups", strategy)


def _extensions(now: Callable[[], datetime]) -> Iterator[APIResource]:
    """Resources that extend or restrict the API."""

    def row(group: str, kind: str, plural: str, strategy: Strategy, **more: Any) -> APIResource:
        categories = ("api-extensions",)
        return _resource(group, "v1", kind, plural, strategy, namespaced=False, categories=categories, **more)

    yield row(
        "apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions",
        CustomResourceDefinitionStrategy(), short_names=("crd", "crds"),
    )  # fmt: skip
    yield row("apiregistration.k8s.io", "APIService", "apiservices", APIServiceStrategy(now))
    for kind, plural, strategy in (
        ("MutatingAdmissionPolicy", "mutatingadmissionpolicies", MutatingAdmissionPolicyStrategy()),
        (
            "MutatingAdmissionPolicyBinding",
            "mutatingadmissionpolicybindings",
            MutatingAdmissionPolicyBindingStrategy(),
        ),
        (
            "MutatingWebhookConfiguration",
            "mutatingwebhookconfigurations",
            MutatingWebhookConfigurationStrategy(),
        ),
        ("ValidatingAdmissionPolicy", "validatingadmissionpolicies", ValidatingAdmissionPolicyStrategy()),
        (
            "ValidatingAdmissionPolicyBinding",
            "validatingadmissionpolicybindings",
            ValidatingAdmissionPolicyBindingStrategy(),
        ),
        (
            "ValidatingWebhookConfiguration",
            "validatingwebhookconfigurations",
            ValidatingWebhookConfigurationStrategy(),
        ),
    ):
        yield row("admissionregistration.k8s.io", kind, plural, strategy)


def _questions() -> Iterator[APIResource]:
    """Resources of requests that are answered, not stored."""
    for group, kind, plural, namespaced in (
        ("authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews", False),
        ("authentication.k8s.io", "TokenReview", "tokenreviews", False),
        ("authorization.k8s.io", "LocalSubjectAccessReview", "localsubjectaccessreviews", True),
        ("authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False),
        ("authorization.k8s.io", "SelfSubjectRulesReview", "selfsubjectrulesreviews", False),
        ("authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews", False),
    ):
        yield _resource(group, "v1", kind, plural, Strategy(), namespaced=namespaced, verbs=CREATE_ONLY)
