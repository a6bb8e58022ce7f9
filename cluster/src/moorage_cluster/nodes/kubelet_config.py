"""KubeletConfiguration (kubelet.config.k8s.io/v1beta1), as far as simulated kubelets implement it.

Flags are fields of the same document and override those of a file, as with the kubelet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import msgspec

from moorage.api.decode import InputError, convert
from moorage.api.manifests import Manifest
from moorage.api.quantity import format_quantity, parse_quantity
from moorage.api.resource_requests import CPU, EPHEMERAL_STORAGE, MEMORY
from moorage.config.duration import parse_duration
from moorage_cluster.nodes.settings import HARD_EVICTION, KubeletSettings, NodeTemplate
from moorage_cluster.nodes.thresholds import ThresholdError, parse_thresholds

API_VERSION: Final = "kubelet.config.k8s.io/v1beta1"
KIND: Final = "KubeletConfiguration"
_RESERVABLE: Final = (CPU, MEMORY, EPHEMERAL_STORAGE, "pid")

_FIELDS_WITHOUT_EFFECT: Final = """
    address allowedUnsafeSysctls authentication authorization cgroupDriver cgroupRoot cgroupsPerQOS
    clusterDNS clusterDomain configMapAndSecretChangeDetectionStrategy containerLogMaxFiles
    containerLogMaxSize containerLogMaxWorkers containerLogMonitorInterval containerRuntimeEndpoint
    contentType cpuCFSQuota cpuCFSQuotaPeriod cpuManagerPolicy cpuManagerPolicyOptions
    cpuManagerReconcilePeriod crashLoopBackOff enableContentionProfiling enableControllerAttachDetach
    enableDebugFlagsHandler enableDebuggingHandlers enableProfilingHandler enableServer
    enableSystemLogHandler enableSystemLogQuery enforceNodeAllocatable eventBurst eventRecordQPS
    failCgroupV1 failSwapOn featureGates fileCheckFrequency hairpinMode healthzBindAddress healthzPort
    httpCheckFrequency imageGCHighThresholdPercent imageGCLowThresholdPercent imageMaximumGCAge
    imageMinimumGCAge imagePullCredentialsVerificationPolicy imageServiceEndpoint iptablesDropBit
    iptablesMasqueradeBit kernelMemcgNotification kubeAPIBurst kubeAPIQPS kubeletCgroups
    kubeReservedCgroup localStorageCapacityIsolation logging makeIPTablesUtilChains maxOpenFiles
    maxParallelImagePulls memoryManagerPolicy memoryReservationPolicy memorySwap memoryThrottlingFactor
    nodeStatusMaxImages nodeStatusUpdateFrequency oomScoreAdj podCIDR podLogsDir podPidsLimit port
    preloadedImagesVerificationAllowlist protectKernelDefaults providerID qosReserved readOnlyPort
    registerNode registryBurst registryPullQPS reservedMemory reservedSystemCPUs resolvConf
    rotateCertificates runOnce runtimeRequestTimeout seccompDefault serializeImagePulls serverTLSBootstrap
    showHiddenMetricsForVersion shutdownGracePeriod shutdownGracePeriodByPodPriority
    shutdownGracePeriodCriticalPods singleProcessOOMKill staticPodPath staticPodURL staticPodURLHeader
    streamingConnectionIdleTimeout syncFrequency systemCgroups systemReservedCgroup tlsCertFile
    tlsCipherSuites tlsCurvePreferences tlsMinVersion tlsPrivateKeyFile topologyManagerPolicy
    topologyManagerPolicyOptions topologyManagerScope tracing userNamespaces volumePluginDir
    volumeStatsAggPeriod
"""
_WITHOUT_EFFECT: Final = frozenset(_FIELDS_WITHOUT_EFFECT.split())
"""Fields of a kubelet's configuration that have no effect on a simulated one."""


class KubeletConfiguration(msgspec.Struct, rename="camel", kw_only=True, frozen=True):
    """The fields that have an effect; None where the default is not a value of its own."""

    eviction_hard: dict[str, str] | None = None
    eviction_soft: dict[str, str] = {}
    eviction_soft_grace_period: dict[str, str] = {}
    eviction_minimum_reclaim: dict[str, str] = {}
    eviction_pressure_transition_period: str = "5m"
    eviction_max_pod_grace_period: int = 0
    merge_default_eviction_settings: bool = False
    kube_reserved: dict[str, str] = {}
    system_reserved: dict[str, str] | None = None
    max_pods: int = 110
    pods_per_core: int = 0
    node_lease_duration_seconds: int = 40
    node_status_report_frequency: str = "5m"
    register_with_taints: list[dict[str, str]] = []


class Kubelets(NamedTuple):
    """The settings of kubelets, and the template of their nodes."""

    settings: KubeletSettings
    template: NodeTemplate
    ignored: Sequence[str] = ()
    """Fields of the configuration that have no effect."""


Where = Callable[[str], str]
"""The name of a field in an error: its flag, or its file and its name there."""


def configured(document: Any, template: NodeTemplate, where: Where) -> Kubelets:
    """Kubelets with a configuration and a template of their nodes; InputError if invalid."""
    known, ignored = _known_fields(document, where)
    try:
        config = convert(known, KubeletConfiguration)
    except InputError as error:
        field = error.where.split(".")[0]
        raise InputError(where(field), error.reason) from None
    return Kubelets(
        _settings(config, where),
        replace(
            template,
            pods=_pods(config, template, where),
            reserved=_reserved(config, template, where),
            taints=(*template.taints, *config.register_with_taints),
        ),
        ignored,
    )


def _known_fields(document: Any, where: Where) -> tuple[Manifest, list[str]]:
    if not isinstance(document, Mapping):
        raise InputError(where(""), f"expected a {KIND}")
    for field, expected in (("apiVersion", API_VERSION), ("kind", KIND)):
        if document.get(field) != expected:
            raise InputError(where(field), f"expected {expected}, got {document.get(field) or 'nothing'}")
    fields = {each.encode_name for each in msgspec.structs.fields(KubeletConfiguration)}
    known: Manifest = {}
    ignored = []
    for field, value in document.items():
        if field in fields:
            known[field] = value
        elif field in _WITHOUT_EFFECT:
            ignored.append(field)
        elif field not in ("apiVersion", "kind"):
            raise InputError(where(""), f'unknown field "{field}"')
    return known, ignored


# -- evictions


def _settings(config: KubeletConfiguration, where: Where) -> KubeletSettings:
    hard = _hard(config)
    soft, graces = _joined(config.eviction_soft, "<"), _joined(config.eviction_soft_grace_period, "=")
    reclaim = _joined(config.eviction_minimum_reclaim, "=")
    for field, thresholds in (
        ("evictionHard", (hard,)),
        ("evictionSoft", ("", soft, graces)),
        ("evictionMinimumReclaim", ("", "", "", reclaim)),
    ):
        try:
            parse_thresholds(*thresholds)
        except ThresholdError as error:
            raise InputError(where(field), str(error)) from None
    lease_seconds = config.node_lease_duration_seconds
    if lease_seconds <= 0:
        raise InputError(where("nodeLeaseDurationSeconds"), f"{lease_seconds} must be greater than 0")
    return KubeletSettings(
        eviction_hard=hard,
        eviction_soft=soft,
        eviction_soft_grace_period=graces,
        eviction_minimum_reclaim=reclaim,
        pressure_transition_seconds=_seconds(
            config.eviction_pressure_transition_period, where("evictionPressureTransitionPeriod")
        ),
        eviction_max_pod_grace_seconds=config.eviction_max_pod_grace_period,
        lease_seconds=lease_seconds,
        status_seconds=_seconds(config.node_status_report_frequency, where("nodeStatusReportFrequency")),
    )


def _hard(config: KubeletConfiguration) -> str:
    """The hard thresholds: those of a configuration replace the defaults, unless it merges them."""
    if config.eviction_hard is None:
        return HARD_EVICTION
    defaults = {}
    if config.merge_default_eviction_settings:
        defaults = dict(each.split("<") for each in HARD_EVICTION.split(","))
    return _joined(defaults | config.eviction_hard, "<")


def _joined(pairs: Mapping[str, str], sign: str) -> str:
    return ",".join(f"{name}{sign}{value}" for name, value in pairs.items())


def _seconds(text: str, where: str) -> float:
    try:
        seconds = float(parse_duration(text))
    except ValueError as error:
        raise InputError(where, str(error)) from None
    if seconds < 0:
        raise InputError(where, f"{text} is negative")
    return seconds


# -- nodes


def _reserved(config: KubeletConfiguration, template: NodeTemplate, where: Where) -> dict[str, str]:
    """The resources reserved for Kubernetes and the system; the template's are the default of the latter."""
    system = template.reserved if config.system_reserved is None else config.system_reserved
    total: dict[str, int] = {}
    for field, amounts in (("kubeReserved", config.kube_reserved), ("systemReserved", system)):
        for resource, text in amounts.items():
            total[resource] = total.get(resource, 0) + _reservation(resource, text, where(field))
    return {resource: format_quantity(amount) for resource, amount in total.items() if resource != "pid"}


def _reservation(resource: str, text: str, where: str) -> int:
    if resource not in _RESERVABLE:
        raise InputError(where, f'cannot reserve "{resource}" resource')
    try:
        amount = int(parse_quantity(text))
    except ValueError as error:
        raise InputError(
            where, f'failed to parse quantity "{text}" for "{resource}" resource: {error}'
        ) from None
    if amount < 0:
        raise InputError(where, f'resource quantity for "{resource}" cannot be negative: {text}')
    return amount


def _pods(config: KubeletConfiguration, template: NodeTemplate, where: Where) -> int:
    for field, number in (("maxPods", config.max_pods), ("podsPerCore", config.pods_per_core)):
        if number < 0:
            raise InputError(where(field), f"{number} must not be a negative number")
    if not config.pods_per_core:
        return config.max_pods
    return min(config.max_pods, config.pods_per_core * parse_quantity(template.cpu).value)
