"""Pods, as far as a scheduler reads them."""

from __future__ import annotations

from datetime import datetime

from msgspec import field

from moorage.api.base import (
    Condition,
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    Object,
    ObjectMeta,
    ResourceList,
    Struct,
)
from moorage.api.storage import PersistentVolumeClaimSpec, PersistentVolumeSource

DEFAULT_SCHEDULER = "default-scheduler"


class Toleration(Struct):
    """Which taints a pod tolerates."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class PreferredSchedulingTerm(Struct):
    """A node selector term and its weight."""

    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Struct):
    """Which nodes a pod needs, and which it prefers."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()


class PodAffinityTerm(Struct):
    """The pods to be near to, or away from, and the topology key."""

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Struct):
    """A pod affinity term and its weight."""

    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Struct):
    """Affinity or anti-affinity to pods; the two have the same fields."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class Affinity(Struct):
    """A pod's affinities to nodes and to pods."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Struct):
    """How evenly matching pods are spread over the values of a node label."""

    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class ResourceRequirements(Struct):
    """What a container or a pod requests and is limited to."""

    requests: ResourceList = {}
    limits: ResourceList = {}


class ContainerPort(Struct):
    """A port of a container; only host ports matter to scheduling."""

    container_port: int = 0
    host_port: int = 0
    host_ip: str = field(default="", name="hostIP")
    protocol: str = "TCP"


class ContainerRestartRule(Struct):
    """What happens when a container exits in a certain way."""

    action: str = ""


class Container(Struct):
    """A container, or an init container."""

    name: str = ""
    image: str = ""
    ports: tuple[ContainerPort, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()

    @property
    def restartable(self) -> bool:
        """Whether this (init) container runs beside the others for the pod's whole life."""
        return self.restart_policy == "Always"


class PersistentVolumeClaimVolume(Struct):
    """A volume that is a claim."""

    claim_name: str = ""
    read_only: bool = False


class PersistentVolumeClaimTemplate(Struct):
    """The claim to make for an ephemeral volume."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class EphemeralVolume(Struct):
    """A volume whose claim is created and deleted with the pod."""

    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class ImageVolume(Struct):
    """A volume with the contents of an image."""

    reference: str = ""


class EmptyDirVolume(Struct):
    """A volume of the node that is lost with the pod."""

    medium: str = ""


class Volume(PersistentVolumeSource):
    """A pod's volume: a claim, or one of the sources named in the pod itself."""

    name: str = ""
    empty_dir: EmptyDirVolume | None = None
    persistent_volume_claim: PersistentVolumeClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None
    image: ImageVolume | None = None

    @property
    def concerns_scheduling(self) -> bool:
        """Whether it has more than a name, or a directory that every node can make."""
        return self != Volume(name=self.name, empty_dir=self.empty_dir)


class PodSchedulingGate(Struct):
    """A reason not to schedule a pod yet."""

    name: str = ""


class PodResourceClaim(Struct):
    """A device claim a pod uses, by name or from a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(Struct):
    """The group of pods that is scheduled together."""

    pod_group_name: str | None = None


class PodSpec(Struct):
    """What a pod asks for."""

    node_name: str = ""
    scheduler_name: str = DEFAULT_SCHEDULER
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    volumes: tuple[Volume, ...] = ()
    overhead: ResourceList = {}
    resources: ResourceRequirements | None = None
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    scheduling_group: PodSchedulingGroup | None = None
    resource_claims: tuple[PodResourceClaim, ...] = ()
    runtime_class_name: str | None = None
    host_network: bool = False
    host_users: bool | None = None
    restart_policy: str = "Always"
    termination_grace_period_seconds: int | None = None


class ContainerStatus(Struct):
    """What the kubelet has given a running container: in-place resize reads it."""

    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}


class PodResourceClaimStatus(Struct):
    """The claim made for one of a pod's claim templates."""

    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(Struct):
    """Which request of a claim backs a container's extended resource."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(Struct):
    """The claim the scheduler made for extended resources backed by devices."""

    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    resource_claim_name: str = ""


class PodStatus(Struct):
    """The status of a pod."""

    phase: str = "Pending"
    nominated_node_name: str = ""
    conditions: tuple[Condition, ...] = ()
    start_time: datetime | None = None
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None


class Pod(Object, weakref=True, gc=True):
    """A pod."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def has_claims(self) -> bool:
        """Whether the pod uses volume claims, named in it or after it."""
        return any(
            volume.persistent_volume_claim is not None or volume.ephemeral is not None
            for volume in self.spec.volumes
        )

    @property
    def uid(self) -> str:
        """The pod's uid; the key for pods that were never stored."""
        return self.metadata.uid or self.key

    @property
    def priority(self) -> int:
        """The pod's priority; 0 where admission set none."""
        return self.spec.priority or 0

    @property
    def terminating(self) -> bool:
        """Whether the pod is being deleted."""
        return self.metadata.deletion_timestamp is not None

    @property
    def finished(self) -> bool:
        """Whether the pod has ended and holds nothing on its node."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def host_ports(self) -> tuple[ContainerPort, ...]:
        """The ports the pod takes on its node, of containers that run for its whole life."""
        running = [c for c in self.spec.init_containers if c.restartable] + list(self.spec.containers)
        return tuple(port for container in running for port in container.ports if port.host_port > 0)
