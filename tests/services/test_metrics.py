"""Metrics: all of kube-scheduler's, as it has them; cheap to record; readable by Prometheus."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from timeit import repeat
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from moorage.client.rate_limit import RateLimitedTransport
from moorage.client.retry import RetryingTransport
from moorage.clock import VirtualClock
from moorage.emulation.kubernetes_version import V1_36, V1_37, KubernetesVersion
from moorage.framework.runtime.plugin_metrics import PluginMetrics
from moorage.http.errors import ConnectionFailed, NoAccess
from moorage.http.transport import Request, Response
from moorage.scheduler.framework_metrics import ProfilePluginMetrics
from moorage.services.metric_table import HEALTH_METRICS, OWN_METRICS, metrics_of
from moorage.services.metrics import PLUGIN_SAMPLE_SHARE, MetricOptions, Metrics
from moorage.services.pod_resources import pod_resources_text
from moorage.services.request_metrics import MeasuredRequests
from tests.builders import make_pod

UPSTREAM = Path(__file__).parent / "data" / "metrics.tsv"
"""Taken from the sources of kube-scheduler v1.36.4."""
NEWER = Path(__file__).parent / "data" / "metrics_1.37.tsv"
"""What v1.37.0-rc.1 declares differently or in addition."""
GONE = {"scheduler_resourceclaim_creates_total", "scheduler_preemption_goroutines_duration_seconds"}
"""What v1.37 renamed, and what it hides because it is deprecated."""
ALL_GATES = {"SchedulerAsyncAPICalls": True, "GenericWorkload": True, "TopologyAwareWorkloadScheduling": True}
"""The gates of metrics that are off by default."""


def upstream(file: Path = UPSTREAM) -> dict[str, tuple[str, ...]]:
    rows = (line.split("\t") for line in file.read_text().splitlines() if not line.startswith("#"))
    return {name: tuple(facts) for name, *facts in rows}


@pytest.mark.parametrize("version", [V1_36, V1_37], ids=lambda version: version.minor)
def test_every_metric_is_declared_as_upstream_declares_it(version: KubernetesVersion) -> None:
    ours = {
        spec.name: (
            spec.kind,
            spec.stability,
            " ".join(spec.labels),
            " ".join(map(repr, spec.buckets)),
        )
        for spec in (*metrics_of(version.with_gates(ALL_GATES)).values(), *HEALTH_METRICS.values())
    }
    expected = upstream()
    if version is V1_37:
        expected = {name: facts for name, facts in expected.items() if name not in GONE} | upstream(NEWER)
    assert ours == expected


@pytest.mark.parametrize(
    ("version", "gates", "change"),
    [
        (V1_36, {"GenericWorkload": True}, 3),
        (V1_37, {"GenericWorkload": True}, 9),
        (V1_37, {"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True}, 12),
        (V1_37, {"SchedulerAsyncAPICalls": True}, 3),
        (V1_37, {"SchedulerAsyncPreemption": False}, -1),
        (V1_37, {"DRADeviceBindingConditions": False}, -2),
    ],
)
def test_metrics_of_a_feature_are_registered_with_its_gate(
    version: KubernetesVersion, gates: dict[str, bool], change: int
) -> None:
    def registered(version: KubernetesVersion) -> float:
        counts = shown(Metrics(version=version).text())["registered_metrics_total"]
        return counts["deprecated_version=", "stability_level=ALPHA"]

    assert registered(version.with_gates(gates)) - registered(version) == change


def test_what_is_not_registered_is_not_shown() -> None:
    metrics = Metrics()
    metrics.workload_preemption_victims.observe(1)
    metrics.preemption_goroutines_duration.labels("success").observe(1)
    samples = shown(metrics.text())
    assert "scheduler_workload_preemption_victims_count" not in samples
    assert "scheduler_preemption_goroutines_duration_seconds_count" not in samples
    assert samples["hidden_metrics_total"] == {(): 1.0}
    groups = Metrics(version=V1_37.with_gates({"GenericWorkload": True}))
    assert shown(groups.text())["scheduler_workload_preemption_victims_count"] == {(): 0.0}


def test_metrics_of_our_own_say_so() -> None:
    assert all(name.startswith("moorage_") for name in OWN_METRICS)
    assert OWN_METRICS.keys().isdisjoint(upstream())


def shown(text: bytes) -> dict[str, dict[tuple[str, ...], float]]:
    """Samples by name and labels, as Prometheus reads them."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            labels = tuple(f"{key}={value}" for key, value in sorted(sample.labels.items()))
            found.setdefault(sample.name, {})[labels] = sample.value
    return found


def test_every_metric_can_be_recorded_and_read_back() -> None:
    metrics = Metrics()
    for metric in metrics._section.metrics.values():
        cell: Any = metric.labels(*(f"some {label}" for label in metric.spec.labels))
        if metric.spec.kind == "histogram":
            cell.observe(1.5)
        else:
            cell.inc(3)
    text = metrics.text()
    samples = shown(text)
    for name, spec in {**metrics_of(V1_37), **OWN_METRICS}.items():
        assert f"# TYPE {name} {spec.kind}\n".encode() in text
        labels = tuple(sorted(f"{label}=some {label}" for label in spec.labels))
        if spec.kind == "histogram":
            assert samples[f"{name}_count"][labels] == 1
            assert samples[f"{name}_sum"][labels] == 1.5
            assert len(samples[f"{name}_bucket"]) == len(spec.buckets) + 1
        else:
            # Where a counter's name does not say that it is a total, the parser says so.
            assert (samples.get(name) or samples[f"{name}_total"])[labels] >= 3


def test_what_is_shown_before_anything_happens() -> None:
    samples = shown(Metrics().text())
    assert samples["scheduler_pending_pods"] == {
        (f"queue={queue}",): 0.0
        for queue in ("active", "backoff", "unschedulable", "gated", "incomplete", "pending")
    }
    assert samples["scheduler_preemption_attempts_total"] == {(): 0.0}
    assert samples["scheduler_pod_scheduling_attempts_count"] == {(): 0.0}
    assert "scheduler_podgroup_scheduling_algorithm_duration_seconds_count" not in samples
    assert "scheduler_schedule_attempts_total" not in samples
    assert samples["process_open_fds"][()] > 0
    [build] = samples["kubernetes_build_info"]
    assert {"major=1", "minor=37"} < set(build)


def test_bounds_are_written_as_go_writes_them() -> None:
    metrics = Metrics()
    metrics.pod_scheduling_attempts.observe(3)
    metrics.plugin_execution_duration.labels("P", "Filter", "Success").observe(1)
    metrics.request_size.labels("GET", "h").observe(1)
    text = metrics.text().decode()
    for line in (
        'scheduler_pod_scheduling_attempts_bucket{le="2"} 0',
        'scheduler_pod_scheduling_attempts_bucket{le="4"} 1',
        'scheduler_pod_scheduling_attempts_bucket{le="+Inf"} 1',
    ):
        assert line in text
    assert 'le="1e-05"' in text
    assert 'le="1.048576e+06"' in text


def test_a_value_on_a_bound_is_in_its_bucket() -> None:
    metrics = Metrics()
    for value in (1, 2, 2.5, 1000):
        metrics.preemption_victims.observe(value)
    buckets = shown(metrics.text())["scheduler_preemption_victims_bucket"]
    assert [buckets[(f"le={bound}",)] for bound in ("1", "2", "4", "64", "+Inf")] == [1, 2, 3, 3, 4]


def test_a_tenth_of_all_cycles_measures_plugins() -> None:
    metrics = Metrics(Random(5))
    sampled = sum(metrics.samples_plugins() for _ in range(10_000))
    assert sampled == pytest.approx(10_000 * PLUGIN_SAMPLE_SHARE, rel=0.1)


def test_stored_observations_are_bounded_and_few_are_left_until_they_are_read() -> None:
    metrics = Metrics()
    cell = metrics.scheduling_algorithm_duration
    cell.observe(0.1)
    metrics.settle()
    assert cell.stored == 1
    for _ in range(1000):
        cell.observe(0.1)
    metrics.settle()
    assert cell.stored == 0
    assert sum(cell.counts) == 1001


def test_wrong_labels_are_refused() -> None:
    with pytest.raises(ValueError, match="scheduler_cache_size has the labels"):
        Metrics().cache_size.labels("nodes", "pods")


def test_two_schedulers_do_not_mix_their_numbers() -> None:
    one, two = Metrics(), Metrics()
    one.preemption_attempts.inc()
    assert shown(two.text())["scheduler_preemption_attempts_total"] == {(): 0.0}


def test_reset() -> None:
    metrics = Metrics()
    kept = metrics.schedule_attempts.labels("scheduled", "p")
    kept.inc(5)
    metrics.preemption_victims.observe(3)
    metrics.reset()
    kept.inc()
    samples = shown(metrics.text())
    assert samples["scheduler_schedule_attempts_total"] == {("profile=p", "result=scheduled"): 1.0}
    assert samples["scheduler_preemption_victims_count"] == {(): 0.0}


def test_metrics_can_be_switched_off() -> None:
    metrics = Metrics(options=MetricOptions(disabled=frozenset({"scheduler_pending_pods"})))
    samples = shown(metrics.text())
    assert "scheduler_pending_pods" not in samples
    assert samples["disabled_metrics_total"] == {(): 1.0}


def test_values_of_labels_that_are_not_to_be_distinguished_become_one() -> None:
    allowed = {("scheduler_schedule_attempts_total", "profile"): frozenset({"mine"})}
    metrics = Metrics(options=MetricOptions(allowed=allowed))
    for profile in ("mine", "yours", "theirs", "yours"):
        metrics.schedule_attempts.labels("scheduled", profile).inc()
    samples = shown(metrics.text())
    assert samples["scheduler_schedule_attempts_total"] == {
        ("profile=mine", "result=scheduled"): 1.0,
        ("profile=unexpected", "result=scheduled"): 3.0,
    }
    assert samples["cardinality_enforcement_unexpected_categorizations_total"] == {(): 2.0}


def test_what_never_happened_is_not_reported_to_have_taken_no_time() -> None:
    metrics = Metrics()
    cell = metrics.event_handling_duration.labels("NodeAdd")
    assert "scheduler_event_handling_duration_seconds_count" not in shown(metrics.text())
    cell.observe(0.5)
    metrics.settle()
    cell.observe(0.5)
    assert shown(metrics.text())["scheduler_event_handling_duration_seconds_count"] == {
        ("event=NodeAdd",): 2.0
    }
    assert cell.sum == 1.0


def test_odd_values_of_labels() -> None:
    metrics = Metrics()
    metrics.cache_size.labels('a "b"\\c\nd').set(1)
    assert shown(metrics.text())["scheduler_cache_size"] == {('type=a "b"\\c\nd',): 1.0}


def test_observations_are_cheap() -> None:
    """Two microseconds on any machine; so the best of several tries counts."""
    metrics = Metrics()
    cell = metrics.framework_extension_point_duration.labels("Filter", "Success", "default-scheduler")
    plugin = metrics.plugin_execution_duration
    count = 10_000
    for observe in (
        lambda: cell.observe(0.003),
        lambda: plugin.labels("NodeName", "Filter", "Success").observe(0.003),
    ):
        assert min(repeat(observe, number=count, repeat=5)) / count < 2e-6


# -- requests


class Server:
    """Answers, or does not."""

    def __init__(self, *answers: Response | ConnectionFailed) -> None:
        self._answers = list(answers)

    async def handle(self, request: Request) -> Response:
        answer = self._answers.pop(0)
        if isinstance(answer, ConnectionFailed):
            raise answer
        return answer


def test_requests_are_counted_and_timed() -> None:
    metrics = Metrics()
    # The third is tried again, without more luck.
    answers = (Response(200, b"x" * 100), Response(404, b"{}"), Response(503, b""), NoAccess("gone"))
    observer, clock = MeasuredRequests(metrics, "api:6443"), VirtualClock()
    limited = RateLimitedTransport(Server(*answers), clock, 1.0, 2, observer)
    transport = RetryingTransport(limited, clock, Random(1), observer)

    async def ask() -> None:
        await transport.handle(Request("GET", "/api"))
        await transport.handle(Request("POST", "/api", body=b"y" * 300))
        third = asyncio.ensure_future(transport.handle(Request("GET", "/api")))
        for _ in range(3):
            await asyncio.sleep(0)
            clock.advance(1.0)
        with pytest.raises(ConnectionFailed):
            await third

    asyncio.run(ask())
    samples = shown(metrics.text())
    host = "host=api:6443"
    assert samples["rest_client_requests_total"] == {
        ("code=200", host, "method=GET"): 1.0,
        ("code=404", host, "method=POST"): 1.0,
        ("code=503", host, "method=GET"): 1.0,
        ("code=<error>", host, "method=GET"): 1.0,
    }
    assert samples["rest_client_request_retries_total"] == {("code=<error>", host, "verb=GET"): 1.0}
    assert samples["rest_client_request_duration_seconds_count"][(host, "verb=GET")] == 2
    assert samples["rest_client_request_duration_seconds_sum"][(host, "verb=GET")] >= 1.0
    waits = samples["rest_client_rate_limiter_duration_seconds_count"]
    assert waits == {(host, "verb=GET"): 3.0, (host, "verb=POST"): 1.0}
    assert samples["rest_client_rate_limiter_duration_seconds_sum"][(host, "verb=GET")] >= 1.0
    assert samples["rest_client_response_size_bytes_sum"][(host, "verb=GET")] == 100
    assert samples["rest_client_request_size_bytes_sum"][(host, "verb=POST")] == 300


# -- /metrics/resources


def test_requests_and_limits_of_pods() -> None:
    def container(
        name: str, requests: dict[str, str], limits: dict[str, str], **more: str
    ) -> dict[str, object]:
        return {"name": name, "image": "i", "resources": {"requests": requests, "limits": limits}, **more}

    pod = make_pod(
        "web",
        node_name="node-1",
        priority=7,
        containers=[
            container("one", {"cpu": "250m", "memory": "1Gi"}, {"cpu": "1", "memory": "2Gi"}),
            container("two", {"cpu": "250m", "hugepages-2Mi": "4Mi"}, {"hugepages-2Mi": "4Mi"}),
        ],
        init_containers=[
            container("beside", {"cpu": "100m"}, {"cpu": "200m"}, restartPolicy="Always"),
            container("first", {"memory": "3Gi"}, {"memory": "5Gi", "example.com/gpu": "2"}),
        ],
        overhead={"cpu": "50m", "ephemeral-storage": "1Mi"},
    )
    samples = shown(pod_resources_text([pod]))

    def amounts(name: str) -> dict[tuple[str, str], float]:
        found = {}
        for labels, value in samples[name].items():
            of = dict(label.split("=", 1) for label in labels)
            assert (of["namespace"], of["pod"], of["node"]) == ("default", "web", "node-1")
            assert (of["scheduler"], of["priority"]) == ("default-scheduler", "7")
            found[of["resource"], of["unit"]] = value
        return found

    assert amounts("kube_pod_resource_request") == {
        ("cpu", "cores"): pytest.approx(0.65),
        ("memory", "bytes"): 3 * 2**30,
        ("hugepages-2Mi", "bytes"): 4 * 2**20,
        ("ephemeral-storage", "bytes"): 2**20,
    }
    assert amounts("kube_pod_resource_limit") == {
        ("cpu", "cores"): pytest.approx(1.25),
        ("memory", "bytes"): 5 * 2**30,
        ("hugepages-2Mi", "bytes"): 4 * 2**20,
        ("example.com/gpu", ""): 2,
    }


def test_pod_level_limits_replace_those_of_containers() -> None:
    pod = make_pod(
        "web",
        containers=[{"name": "one", "image": "i", "resources": {"limits": {"cpu": "1", "memory": "2Gi"}}}],
        resources={"limits": {"cpu": "3"}},
    )
    limits = shown(pod_resources_text([pod]))["kube_pod_resource_limit"]
    assert sorted(limits.values()) == [3.0, 2.0 * 2**30]


def test_pods_that_have_ended_are_left_out() -> None:
    containers = [{"name": "one", "image": "i", "resources": {"requests": {"cpu": "1"}}}]
    ended = make_pod("ended", node_name="n", containers=containers, status={"phase": "Succeeded"})
    waiting = make_pod("waiting", containers=containers)
    requests = shown(pod_resources_text([ended, waiting]))["kube_pod_resource_request"]
    [labels] = requests
    assert {"pod=waiting", "node=", "resource=cpu", "unit=cores"} < set(labels)


def test_each_waiting_pod_is_an_entity_of_the_queue() -> None:
    newer, older = Metrics(version=V1_37), Metrics(version=V1_36)
    for metrics in (newer, older):
        metrics.pending_pods.labels("backoff").set(3)
        metrics.queue_incoming_pods.labels("active", "NodeAdd").inc(2)
        metrics.count_entities({})
    samples = shown(newer.text())
    assert samples["scheduler_queued_entities"]["queue=backoff", "type=pod"] == 3
    incoming = samples["scheduler_queue_incoming_entities_total"]
    assert incoming == {("event=NodeAdd", "queue=active", "type=pod"): 2}
    newer.queue_incoming_pods.labels("active", "NodeAdd").inc(4)
    newer.count_incoming("active", "NodeAdd", 3, 1)
    newer.count_entities({})
    incoming = shown(newer.text())["scheduler_queue_incoming_entities_total"]
    assert incoming == {
        ("event=NodeAdd", "queue=active", "type=pod"): 3,
        ("event=NodeAdd", "queue=active", "type=podgroup"): 1,
    }
    queues = set(samples["scheduler_pending_pods"])
    assert {("queue=incomplete",), ("queue=pending",)} <= queues
    text = older.text()
    assert b"entities" not in text
    assert b'queue="incomplete"' not in text


def test_plugins_have_counters_and_gauges_of_their_own() -> None:
    metrics = Metrics()
    first, second = (ProfilePluginMetrics(metrics, profile) for profile in ("one", "two"))
    for each in (first, second):
        each.counter("moorage_quota_refusals_total", "Refused pods.", ("quota",)).labels("a").inc()
    used = first.gauge("moorage_quota_used", "Used.", ("quota",))
    used.labels("a").set(3)
    used.labels("b").set(4)
    used.remove("b")
    shown = metrics.text().decode()
    assert 'moorage_quota_refusals_total{quota="a"} 2\n' in shown
    assert 'moorage_quota_used{quota="a"} 3\n' in shown
    assert 'quota="b"' not in shown
    PluginMetrics().gauge("moorage_quota_used", "Used.", ("quota",)).labels("a").set(1)


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        pytest.param("scheduler_pending_pods", (), id="kube-scheduler's"),
        pytest.param("quota used", (), id="no name"),
        pytest.param("moorage_quota", ("a-b",), id="no label"),
        pytest.param("moorage_known", ("other",), id="other labels"),
    ],
)
def test_a_metric_of_a_plugin_that_cannot_be_is_an_error(name: str, labels: tuple[str, ...]) -> None:
    metrics = ProfilePluginMetrics(Metrics(), "default-scheduler")
    metrics.gauge("moorage_known", "Known.", ("label",))
    with pytest.raises(ValueError, match=name):
        metrics.gauge(name, "Known.", labels)
