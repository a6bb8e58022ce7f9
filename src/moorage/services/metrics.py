"""The scheduler's metrics: `/metrics` and `/metrics/slis`, with kube-scheduler's names.

Each metric is an attribute, named without prefix and unit. Code that observes often keeps the cell:

    filtering = metrics.framework_extension_point_duration.labels("Filter", "Success", profile)
    filtering.observe(seconds)

Each `Metrics` has its own registry: two schedulers in one process do not mix their values.
"""

from __future__ import annotations

import math
import platform
import re
import sys
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final, TypeVar, cast

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.exposition import generate_latest

from moorage.emulation.kubernetes_version import DEFAULT_VERSION, KubernetesVersion
from moorage.services.metric_table import (
    HEALTH_METRICS,
    OWN_METRICS,
    declared_metrics,
    hidden_count,
    metrics_of,
)
from moorage.services.metric_values import Distribution, Metric, MetricSpec, Number, distributions, numbers
from moorage.version import __version__

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
"""The content type of `Metrics.text`."""

PLUGIN_SAMPLE_SHARE: Final = 0.1
"""Share of scheduling cycles in which every plugin is measured."""

_MAX_STORED: Final = 1000
"""Number of stored observations from which on they are counted: counting a few costs as much as many."""
QUEUES: Final = ("active", "backoff", "unschedulable", "gated")
"""Values of the label `queue` of pending pods."""
_GROUP_QUEUES: Final = ("incomplete", "pending")
"""Where pods wait for their group."""
_METRIC_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL_NAME: Final = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")
_POD: Final = "pod"
_GROUP: Final = "podgroup"
"""The types of entities."""

SCHEDULED: Final = "scheduled"
UNSCHEDULABLE: Final = "unschedulable"
WAITING_ON_PREEMPTION: Final = "waiting_on_preemption"
ERROR: Final = "error"
"""Results of attempts."""


MetricT = TypeVar("MetricT", Metric[Number], Metric[Distribution])


@dataclass(frozen=True, slots=True)
class MetricOptions:
    """Metrics and label values that are not shown."""

    disabled: frozenset[str] = frozenset()
    """Metrics, by full name."""
    allowed: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    """By metric and label, the values to show; all others become one."""

    def allowed_of(self, name: str) -> dict[str, frozenset[str]]:
        """By label, the values of a metric to show."""
        return {label: values for (metric, label), values in self.allowed.items() if metric == name}


class _Section:
    """Metrics that are shown together.

    specs: the metrics that can be observed. shown: the names of those that are registered.
    """

    def __init__(
        self, specs: Mapping[str, MetricSpec], shown: Collection[str], options: MetricOptions
    ) -> None:
        self._specs = specs
        self._shown = shown
        self._options = options
        self._plugin_metrics: dict[str, MetricSpec] = {}
        self.unexpected = Number()
        self.metrics: dict[str, Metric[Number] | Metric[Distribution]] = {}

    def numbers(self, name: str) -> Metric[Number]:
        """A counter or gauge, by its full name."""
        return self._added(numbers(self._specs[name]))

    def distributions(self, name: str) -> Metric[Distribution]:
        """A histogram, by its full name."""
        return self._added(distributions(self._specs[name]))

    def _added(self, metric: MetricT) -> MetricT:
        name = metric.spec.name
        metric.allow(self._options.allowed_of(name), self.unexpected.inc)
        self.metrics[name] = metric
        return metric

    def of_plugin(self, spec: MetricSpec) -> Metric[Number]:
        """A counter or gauge that a plugin declares; ValueError if its name or labels cannot be used."""
        if not _METRIC_NAME.fullmatch(spec.name) or not all(map(_LABEL_NAME.fullmatch, spec.labels)):
            raise ValueError(f"metric {spec.name!r} with labels {list(spec.labels)}: no valid names")
        known = self.metrics.get(spec.name)
        if known is None:
            self._plugin_metrics[spec.name] = spec
            return self._added(numbers(spec))
        if self._plugin_metrics.get(spec.name) != spec:
            raise ValueError(f"metric {spec.name}: there is another one of this name")
        return cast("Metric[Number]", known)

    def complete(self) -> None:
        """Declare the metrics that no code has used."""
        for name in self._shown:
            if name not in self.metrics:
                if self._specs[name].kind == "histogram":
                    self.distributions(name)
                else:
                    self.numbers(name)

    def text(self) -> str:
        """All metrics in text format, by name."""
        return "".join(
            metric.text()
            for name, metric in sorted(self.metrics.items())
            if metric.cells and self._is_shown(name)
        )

    def _is_shown(self, name: str) -> bool:
        is_registered = name in self._shown or name in self._plugin_metrics
        return is_registered and name not in self._options.disabled


class Metrics:
    """All metrics of one scheduler."""

    def __init__(
        self,
        random: Random | None = None,
        options: MetricOptions | None = None,
        version: KubernetesVersion = DEFAULT_VERSION,
    ) -> None:
        self.version = version
        self._random = random or Random()
        self._options = options or MetricOptions()
        specs = {**declared_metrics(version), **OWN_METRICS}
        self._section = section = _Section(specs, {**metrics_of(version), **OWN_METRICS}, self._options)
        self._add_attempts(section)
        self._add_groups(section)
        self._add_framework(section)
        self._add_preemption(section)
        self._add_plugins(section)
        self._add_queue_and_cache(section)
        self._add_services(section)
        self._add_access(section)

        self._health = health = _Section(HEALTH_METRICS, HEALTH_METRICS, self._options)
        self._healthcheck = health.numbers("kubernetes_healthcheck")
        self._healthchecks = health.numbers("kubernetes_healthchecks_total")

        self._complete()

    def _add_attempts(self, section: _Section) -> None:
        """Scheduling attempts."""
        number, distribution = section.numbers, section.distributions
        self.schedule_attempts = number("scheduler_schedule_attempts_total")
        self.scheduling_attempt_duration = distribution("scheduler_scheduling_attempt_duration_seconds")
        algorithm = distribution("scheduler_scheduling_algorithm_duration_seconds")
        self.scheduling_algorithm_duration = algorithm.labels()
        self.pod_scheduling_sli_duration = distribution("scheduler_pod_scheduling_sli_duration_seconds")
        self.pod_scheduling_attempts = distribution("scheduler_pod_scheduling_attempts").labels()
        self.pod_scheduled_after_flush = number("scheduler_pod_scheduled_after_flush_total").labels()
        self.batch_attempts = number("scheduler_batch_attempts_total")
        self.batch_cache_flushed = number("scheduler_batch_cache_flushed_total")
        self.get_node_hint_duration = distribution("scheduler_get_node_hint_duration_seconds")
        self.store_schedule_results_duration = distribution(
            "scheduler_store_schedule_results_duration_seconds"
        )

    def _add_groups(self, section: _Section) -> None:
        """Scheduling attempts of groups of pods, and placements."""
        number, distribution = section.numbers, section.distributions
        self.podgroup_schedule_attempts = number("scheduler_podgroup_schedule_attempts_total")
        self.podgroup_attempt_duration = distribution(
            "scheduler_podgroup_scheduling_attempt_duration_seconds"
        )
        self.podgroup_algorithm_duration = distribution(
            "scheduler_podgroup_scheduling_algorithm_duration_seconds"
        ).labels()
        self.generated_placements = number("scheduler_generated_placements_total")
        self.placement_evaluations = number("scheduler_placement_evaluations_total")
        self.placement_evaluation_duration = distribution("scheduler_placement_evaluation_duration_seconds")

    def _add_framework(self, section: _Section) -> None:
        """Extension points and plugins."""
        number, distribution = section.numbers, section.distributions
        self.framework_extension_point_duration = distribution(
            "scheduler_framework_extension_point_duration_seconds"
        )
        self.plugin_execution_duration = distribution("scheduler_plugin_execution_duration_seconds")
        self.plugin_evaluation = number("scheduler_plugin_evaluation_total")
        self.permit_wait_duration = distribution("scheduler_permit_wait_duration_seconds")
        self.goroutines = number("scheduler_goroutines")

    def _add_preemption(self, section: _Section) -> None:
        """Preemption, for pods and for groups."""
        number, distribution = section.numbers, section.distributions
        self.preemption_attempts = number("scheduler_preemption_attempts_total").labels()
        self.preemption_victims = distribution("scheduler_preemption_victims").labels()
        self.preemption_goroutines = number("scheduler_preemption_goroutines_execution_total")
        self.preemption_goroutines_duration = distribution("scheduler_preemption_goroutines_duration_seconds")
        self.workload_preemption_attempts = number("scheduler_workload_preemption_attempts_total")
        self.workload_preemption_victims = distribution("scheduler_workload_preemption_victims").labels()
        self.preemption_workload_disruptions = distribution("scheduler_preemption_workload_disruptions")
        self.preemption_evaluation_duration = distribution("scheduler_preemption_evaluation_duration_seconds")
        self.preemption_execution_duration = distribution("scheduler_preemption_execution_duration_seconds")
        self.preemption_pdb_violations = number("scheduler_preemption_pdb_violations_total")

    def _add_plugins(self, section: _Section) -> None:
        """Devices and volumes."""
        number, distribution = section.numbers, section.distributions
        self._claim_creates = number(
            "dynamic_resource_allocation_resourceclaim_creates_total"
            if self.version.entity_metrics
            else "scheduler_resourceclaim_creates_total"
        )
        self.device_binding_allocations = number("scheduler_dra_bindingconditions_allocations_total")
        self.device_binding_wait_duration = distribution(
            "scheduler_dra_bindingconditions_wait_duration_seconds"
        )
        self.volume_binder_cache_requests = number("scheduler_volume_binder_cache_requests_total")
        self.volume_stage_errors = number("scheduler_volume_scheduling_stage_error_total")

    def _add_queue_and_cache(self, section: _Section) -> None:
        """The scheduling queue and the cache."""
        number, distribution = section.numbers, section.distributions
        self.pending_pods = number("scheduler_pending_pods")
        self.queue_incoming_pods = number("scheduler_queue_incoming_pods_total")
        self._incoming_without_entity: Counter[tuple[str, str]] = Counter()
        """By queue and event, the pods that came in, but not as entities."""
        self._incoming_groups: Counter[tuple[str, str]] = Counter()
        """By queue and event, the groups that came in as entities."""
        self._queued_entities = number("scheduler_queued_entities")
        self._incoming_entities = number("scheduler_queue_incoming_entities_total")
        self.unschedulable_pods = number("scheduler_unschedulable_pods")
        self.queueing_hint_duration = distribution("scheduler_queueing_hint_execution_duration_seconds")
        self.inflight_events = number("scheduler_inflight_events")
        self.event_handling_duration = distribution("scheduler_event_handling_duration_seconds")
        self.cache_size = number("scheduler_cache_size")

    def _add_services(self, section: _Section) -> None:
        """Leader election, requests to the API server, informers."""
        number, distribution = section.numbers, section.distributions
        self.leader_status = number("leader_election_master_status")
        self.leader_slow_path = number("leader_election_slowpath_total")
        self.requests = number("rest_client_requests_total")
        self.request_retries = number("rest_client_request_retries_total")
        self.request_duration = distribution("rest_client_request_duration_seconds")
        self.request_size = distribution("rest_client_request_size_bytes")
        self.response_size = distribution("rest_client_response_size_bytes")
        self.rate_limiter_duration = distribution("rest_client_rate_limiter_duration_seconds")
        self.exec_plugin_calls = number("rest_client_exec_plugin_call_total")
        self.exec_certificate_seconds = number("rest_client_exec_plugin_ttl_seconds").labels()
        self.exec_certificate_age = distribution("rest_client_exec_plugin_certificate_rotation_age").labels()
        self.transports = number("rest_client_transport_cache_entries").labels()
        self.transports_made = number("rest_client_transport_create_calls_total")
        self.informer_queued = number("informer_queued_items")
        self.informer_version = number("informer_store_resource_version")
        self.informer_duration = distribution("informer_processing_latency_seconds")
        self.feature_enabled = number("kubernetes_feature_enabled")
        self.plugin_result_cache = number("moorage_plugin_result_cache_total")
        self.slow_plugin_calls = number("moorage_slow_plugin_calls_total")
        self.shadow_pods = number("moorage_shadow_pods_total")
        self.shadow_groups = number("moorage_shadow_groups_total")
        self.shadow_differences = number("moorage_shadow_differences_total")

    def _add_access(self, section: _Section) -> None:
        """Authentication and authorization of the scheduler's own server."""
        number, distribution = section.numbers, section.distributions
        self.authentication_requests = number("apiserver_delegated_authn_request_total")
        self.authentication_request_duration = distribution(
            "apiserver_delegated_authn_request_duration_seconds"
        )
        self.authorization_requests = number("apiserver_delegated_authz_request_total")
        self.authorization_request_duration = distribution(
            "apiserver_delegated_authz_request_duration_seconds"
        )
        self.authentication_attempts = number("authentication_attempts")
        self.authentication_duration = distribution("authentication_duration_seconds")
        self.authenticated_users = number("authenticated_user_requests")
        self.authorization_attempts = number("authorization_attempts_total")
        self.authorization_duration = distribution("authorization_duration_seconds")
        self.client_certificate_seconds = distribution(
            "apiserver_client_certificate_expiration_seconds"
        ).labels()
        self.token_cache_requests = number("authentication_token_cache_request_total")
        self.token_cache_duration = distribution("authentication_token_cache_request_duration_seconds")
        self.token_cache_fetches = number("authentication_token_cache_fetch_total")
        self.token_cache_fetching = number("authentication_token_cache_active_fetch_count")

    def _complete(self) -> None:
        """Metrics with fixed values, and prometheus-client's process metrics."""
        for queue in (*QUEUES, *_GROUP_QUEUES) if self.version.entity_metrics else QUEUES:
            self.pending_pods.labels(queue)
        number = self._section.numbers
        self.exec_certificate_seconds.set(math.inf)  # There is no such certificate.
        number("kubernetes_build_info").labels(*build_info().values()).set(1)
        version = self.version
        numbers = (DEFAULT_VERSION.number, version.minor, version.previous_minor)
        number("version_info").labels("kube", *numbers).set(1)
        for name, is_on in version.gates.enabled.items():
            self.feature_enabled.labels(name, version.gates.known[name].label).set(float(is_on))
        registered = number("registered_metrics_total")
        for spec in metrics_of(version).values():
            registered.labels(spec.stability, "").inc()
        number("hidden_metrics_total").labels().inc(hidden_count(version))
        number("disabled_metrics_total").labels().inc(len(self._options.disabled))
        unexpected = number("cardinality_enforcement_unexpected_categorizations_total")
        unexpected.cells[()] = self._section.unexpected
        self._section.complete()
        self._health.complete()
        self._process = CollectorRegistry()
        ProcessCollector(registry=self._process)
        PlatformCollector(registry=self._process)
        GCCollector(registry=self._process)

    # -- helpers for several metrics

    def of_plugin(self, spec: MetricSpec) -> Metric[Number]:
        """A counter or gauge that a plugin declares; ValueError if its name or labels cannot be used."""
        return self._section.of_plugin(spec)

    def samples_plugins(self) -> bool:
        """Whether the cycle that begins measures every plugin; most do not, for speed."""
        return self._random.random() < PLUGIN_SAMPLE_SHARE

    def checked(self, name: str, endpoint: str, passed: bool) -> None:
        """A health check was made, for `/healthz`, `/livez` or `/readyz`."""
        self._healthcheck.labels(name, endpoint).set(float(passed))
        self._healthchecks.labels(name, endpoint, "success" if passed else "error").inc()

    def claim_created(self, succeeded: bool) -> None:
        """The API server was asked to create a claim for a pod."""
        labels = ("success" if succeeded else "failure", "false", "", "Pod")
        self._claim_creates.labels(*labels[: len(self._claim_creates.spec.labels)]).inc()

    def count_incoming(self, queue: str, event: str, pod_count: int, group_count: int) -> None:
        """Pods that came into a queue are no entities of their own, and some groups are entities."""
        self._incoming_without_entity[queue, event] += pod_count
        self._incoming_groups[queue, event] += group_count

    def count_entities(self, groups: Mapping[str, tuple[int, int]]) -> None:
        """Set the metrics of what is queued from those of pods: a pod outside of groups is queued by itself.

        groups: by queue, how many groups there are, and how many pods in them.
        """
        if not self.version.entity_metrics:
            return
        for queue in QUEUES:
            count, pod_count = groups.get(queue, (0, 0))
            self._queued_entities.labels(queue, _POD).set(self.pending_pods.labels(queue).value - pod_count)
            self._queued_entities.labels(queue, _GROUP).set(count)
        for (queue, event), cell in list(self.queue_incoming_pods.cells.items()):
            alone = cell.value - self._incoming_without_entity[queue, event]
            counts = ((_POD, alone), (_GROUP, self._incoming_groups[queue, event]))
            for kind, incoming in counts:
                if incoming:
                    self._incoming_entities.labels(queue, event, kind).set(incoming)

    # -- showing

    def text(self) -> bytes:
        """All metrics, in Prometheus' text format."""
        return self._section.text().encode() + generate_latest(self._process)

    def health_text(self) -> bytes:
        """The metrics of health checks, in Prometheus' text format."""
        return self._health.text().encode()

    def settle(self) -> None:
        """Count stored observations where there are many; called periodically, so that they are bounded."""
        for metric in self._section.metrics.values():
            for cell in list(metric.cells.values()):  # Another thread may add one.
                if isinstance(cell, Distribution) and cell.stored >= _MAX_STORED:
                    cell.settle()

    def reset(self) -> None:
        """Set to zero."""
        self._incoming_without_entity.clear()
        self._incoming_groups.clear()
        for metric in self._section.metrics.values():
            metric.reset()

    def reset_health(self) -> None:
        """Set the metrics of health checks to zero."""
        for metric in self._health.metrics.values():
            metric.reset()


def build_info() -> dict[str, str]:
    """Build information; the version is the newest that can be emulated."""
    major, minor, _ = DEFAULT_VERSION.number.split(".")
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"v{DEFAULT_VERSION.number}+moorage.{__version__}",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "",
        "goVersion": f"python{platform.python_version()}",
        "compiler": platform.python_implementation().lower(),
        "platform": f"{sys.platform}/{machine}",
    }
