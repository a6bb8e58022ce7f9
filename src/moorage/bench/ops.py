"""The operations of a workload, as files define them.

Names and meanings are those of Kubernetes' scheduler_perf, so that one file measures any scheduler. Paths are
relative to the file. If a field has a `...Param` counterpart, the workload's parameters give the value. The
values of `template_params` that begin with `$` are parameters of the workload, with a default behind a `|`.
"""

from __future__ import annotations

from typing import Any, Final

from moorage.api.base import Struct


class _Part(Struct, forbid_unknown_fields=True):
    """A part of a file; unknown fields are errors."""


class VolumeLimits(_Part):
    """Maximum number of a driver's volumes on a node."""

    count: int | None = None


class NodeAllocatableStrategy(_Part):
    """Gives every node more resources, and a CSINode."""

    node_allocatable: dict[str, str | int] = {}
    csi_node_allocatable: dict[str, VolumeLimits] = {}
    migrated_plugins: list[str] = []


class LabelNodePrepareStrategy(_Part):
    """Labels the nodes with these values in turn."""

    label_key: str
    label_values: list[str]


class UniqueNodeLabelStrategy(_Part):
    """Labels every node with a value of its own."""

    label_key: str


class CreateNodes(_Part):
    """Makes nodes; at most one strategy prepares them."""

    count: int = 0
    count_param: str = ""
    node_template_path: str | None = None
    node_allocatable_strategy: NodeAllocatableStrategy | None = None
    label_node_prepare_strategy: LabelNodePrepareStrategy | None = None
    unique_node_label_strategy: UniqueNodeLabelStrategy | None = None
    template_params: dict[str, Any] = {}


class CreateNamespaces(_Part):
    """Makes namespaces, named by a prefix and a number."""

    prefix: str = ""
    count: int = 0
    count_param: str = ""
    namespace_template_path: str | None = None


class CreatePods(_Part):
    """Creates pods, and waits until they are scheduled unless configured otherwise.

    In a steady state all pods are deleted and recreated whenever all are scheduled, for the given duration.
    With a signature batch size, that many pods in a row have the same label `signature`.
    """

    count: int = 0
    count_param: str = ""
    count_multiplier_param: str = ""
    signature_batch_size: int = 0
    signature_batch_size_param: str = ""
    steady_state: bool = False
    steady_state_param: str = ""
    duration: str = ""
    duration_param: str = ""
    collect_metrics: bool = False
    namespace: str | None = None
    pod_template_path: str | None = None
    skip_wait_to_completion: bool = False
    persistent_volume_template_path: str | None = None
    persistent_volume_claim_template_path: str | None = None
    template_params: dict[str, Any] = {}


class CreatePodsOfSet(CreatePods):
    """Makes the pods of one set; files repeat the opcode here."""

    opcode: str = ""


class CreatePodSets(_Part):
    """Makes pods in each of several namespaces."""

    count: int = 0
    count_param: str = ""
    namespace_prefix: str = ""
    create_pods_op: CreatePodsOfSet = CreatePodsOfSet()


class DeletePods(_Part):
    """Deletes the pods of a namespace, all at once or at a rate per second."""

    namespace: str = ""
    label_selector: dict[str, str] = {}
    skip_wait_to_completion: bool = False
    delete_pods_per_second: int = 0


class CreateAny(_Part):
    """Makes objects of any kind."""

    namespace: str = ""
    template_path: str = ""
    count: int | None = None
    count_param: str = ""
    template_params: dict[str, Any] = {}


class CreatePodGroups(_Part):
    """Makes groups of pods, before the pods that name them."""

    namespace: str = ""
    template_path: str = ""
    count: int = 0
    count_param: str = ""
    template_params: dict[str, Any] = {}


class UpdateAny(_Part):
    """Replaces objects of any kind, or parts of them."""

    namespace: str = ""
    template_path: str = ""
    count: int | None = None
    count_param: str = ""
    update_per_second: int = 0
    subresources: list[str] = []


class CreateResourceClaims(_Part):
    """Makes claims for devices."""

    namespace: str = ""
    template_path: str = ""
    count: int = 0
    count_param: str = ""


class CreateResourceDriver(_Part):
    """Publishes devices of a driver on all nodes whose names match a glob pattern."""

    driver_name: str = ""
    max_claims_per_node: int = 0
    max_claims_per_node_param: str = ""
    nodes: str = ""


class AllocResourceClaims(_Part):
    """Allocates all claims of a namespace (of all if empty) without pods, each on a random node."""

    namespace: str = ""


class Churn(_Part):
    """Makes objects in the background (`create`), or makes and deletes them in turn (`recreate`)."""

    mode: str = ""
    number: int = 0
    interval_milliseconds: int = 0
    namespace: str | None = None
    template_paths: list[str] = []


class Barrier(_Part):
    """Waits until the pods that no operation has waited for are scheduled, or at least attempted."""

    namespaces: list[str] = []
    label_selector: dict[str, str] = {}
    stage_requirement: str = ""


class Sleep(_Part):
    """Waits."""

    duration: str = ""
    duration_param: str = ""


class StartCollectingMetrics(_Part):
    """Starts measuring pods of these namespaces."""

    name: str = ""
    namespaces: list[str] = []
    label_selector: dict[str, str] = {}


class StopCollectingMetrics(_Part):
    """Stops measuring."""


class StartCollectingProfile(_Part):
    """Starts a profile of kube-scheduler; does nothing here, where `--profile` makes one."""

    type: str = ""
    file_path: str = ""


class StopCollectingProfile(_Part):
    """Stops the profile."""

    type: str = ""


Op = (
    CreateNodes
    | CreateNamespaces
    | CreatePods
    | CreatePodSets
    | DeletePods
    | CreateAny
    | CreatePodGroups
    | UpdateAny
    | CreateResourceClaims
    | CreateResourceDriver
    | AllocResourceClaims
    | Churn
    | Barrier
    | Sleep
    | StartCollectingMetrics
    | StopCollectingMetrics
    | StartCollectingProfile
    | StopCollectingProfile
)

OPS: Final[dict[str, type[Op]]] = {
    "createNodes": CreateNodes,
    "createNamespaces": CreateNamespaces,
    "createPods": CreatePods,
    "createPodSets": CreatePodSets,
    "deletePods": DeletePods,
    "createAny": CreateAny,
    "createPodGroups": CreatePodGroups,
    "updateAny": UpdateAny,
    "createResourceClaims": CreateResourceClaims,
    "createResourceDriver": CreateResourceDriver,
    "allocResourceClaims": AllocResourceClaims,
    "churn": Churn,
    "barrier": Barrier,
    "sleep": Sleep,
    "startCollectingMetrics": StartCollectingMetrics,
    "stopCollectingMetrics": StopCollectingMetrics,
    "startCollectingProfile": StartCollectingProfile,
    "stopCollectingProfile": StopCollectingProfile,
}
"""Operations by opcode."""

REFUSED_GATES: Final = {
    "DRADeviceCompatibilityGroups": "compatibility groups of devices are not supported",
    "DRAListTypeAttributes": "lists as attributes of devices are not supported",
    "DRAWorkloadResourceClaims": "claims of groups of pods are not supported",
}
"""Feature gates without which a workload cannot be run, and that are not supported, with the reason."""


class ThresholdMetricSelector(_Part):
    """The metric that a threshold applies to."""

    name: str = "SchedulingThroughput"
    labels: dict[str, str] = {}
    data_bucket: str = "Average"
    expect_lower: bool = False


class BenchmarkWorkload(_Part):
    """One size of a test case."""

    name: str
    params: dict[str, Any] = {}
    labels: list[str] = []
    threshold: float | dict[str, float] = 0.0
    threshold_metric_selector: ThresholdMetricSelector | None = None
    feature_gates: dict[str, bool] = {}


class TestCase(_Part):
    """Operations, and the workloads that run them in different sizes."""

    __test__ = False  # Keeps pytest from collecting it.

    name: str
    workload_template: list[dict[str, Any]]
    workloads: list[BenchmarkWorkload]
    feature_gates: dict[str, bool] = {}
    metrics_collector_config: dict[str, Any] | None = None
    scheduler_config_path: str = ""
    default_pod_template_path: str | None = None
    labels: list[str] = []
    default_threshold_metric_selector: ThresholdMetricSelector | None = None
