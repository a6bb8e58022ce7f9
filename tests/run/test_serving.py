"""What `moorage run` serves, and to whom."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.apiserver.running import Kubectl
from tests.deploy.monitoring import expressions
from tests.deploy.promql import named
from tests.run.running import RunningScheduler
from tests.run.test_rare_metrics import RARE
from tests.services.authorities import Authority
from tests.up.objects import pod

Start = Callable[..., RunningScheduler]

ATTEMPTS = 100
DATA = Path(__file__).parents[1] / "services" / "data"
LISTED = (DATA / "metrics.tsv", DATA / "metrics_1.37.tsv")
FILLED = {
    'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"}': 1,
    'scheduler_schedule_attempts_total{profile="default-scheduler",result="unschedulable"}': 1,
    'scheduler_pending_pods{queue="unschedulable"}': 1,
    'scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="default-scheduler"}': 1,
    'scheduler_queue_incoming_pods_total{event="UnscheduledPodAdd",queue="active"}': 2,
    'scheduler_queue_incoming_entities_total{event="UnscheduledPodAdd",queue="active",type="pod"}': 2,
    'scheduler_queued_entities{queue="unschedulable",type="pod"}': 1,
    'scheduler_pod_scheduling_sli_duration_seconds_count{attempts="1"}': 1,
    "scheduler_pod_scheduling_attempts_count": 1,
    "scheduler_scheduling_algorithm_duration_seconds_count": 2,
    "scheduler_preemption_attempts_total": 1,
    'scheduler_cache_size{type="nodes"}': 1,
    'scheduler_goroutines{operation="binding"}': 0,
    'leader_election_master_status{name="kube-scheduler"}': 1,
}
NOT_HERE = {
    "workqueue_adds_total": "there are no work queues: what comes is taken in as it comes",
    "workqueue_depth": "as above",
    "workqueue_longest_running_processor_seconds": "as above",
    "workqueue_queue_duration_seconds": "as above",
    "workqueue_retries_total": "as above",
    "workqueue_unfinished_work_seconds": "as above",
    "workqueue_work_duration_seconds": "as above",
    "running_managed_controllers": "there are no controllers in a scheduler, in kube-scheduler neither",
    "rest_client_transport_ca_reload_total": "a client trusts what it trusted when it began",
    "rest_client_transport_cache_gc_calls_total": "connections are closed by who opened them, not collected",
    "scheduler_preemption_goroutines_duration_seconds": "v1.37 hides it",
    "scheduler_async_api_call_execution_total": "its feature is off by default, and it is not shown then",
    "scheduler_async_api_call_execution_duration_seconds": "as above",
    "scheduler_pending_async_api_calls": "as above",
    "scheduler_podgroup_schedule_attempts_total": "as above",
    "scheduler_workload_preemption_attempts_total": "as above",
    "scheduler_workload_preemption_victims": "as above",
    "scheduler_preemption_workload_disruptions": "as above",
    "scheduler_preemption_evaluation_duration_seconds": "as above",
    "scheduler_preemption_execution_duration_seconds": "as above",
    "scheduler_preemption_pdb_violations_total": "as above",
    "scheduler_generated_placements_total": "as above",
    "scheduler_placement_evaluations_total": "as above",
    "scheduler_placement_evaluation_duration_seconds": "as above",
    "scheduler_podgroup_scheduling_algorithm_duration_seconds": "as above",
    "scheduler_podgroup_scheduling_attempt_duration_seconds": "as above",
    "scheduler_batch_attempts_total": "no node is hinted at: every node's answers are kept for a template",
    "scheduler_batch_cache_flushed_total": "as above",
    "scheduler_get_node_hint_duration_seconds": "as above",
    "scheduler_store_schedule_results_duration_seconds": "as above",
    "scheduler_batch_rescore_attempts_total": "as above",
    "scheduler_batch_rescore_duration_seconds": "as above",
    "scheduler_pre_queueing_hint_evaluations_total": "its feature is off by default",
    "scheduler_resourceclaim_creates_total": "it has another name in v1.37",
    "scheduler_volume_binder_cache_requests_total": "kube-scheduler has it, and counts nothing in it",
}
"""Metrics of kube-scheduler that have no value here, with the reason."""
ELSEWHERE = {
    *RARE,
    "rest_client_exec_plugin_call_total",  # Tested with those.
    "rest_client_request_retries_total",  # With requests, in tests/services/test_metrics.py.
    "leader_election_slowpath_total",  # With elections, in tests/services/test_leader_election.py.
    "kubernetes_healthcheck",  # These two are at /metrics/slis.
    "kubernetes_healthchecks_total",
}
"""Metrics of what has not happened here."""
POINTS = {
    "PreEnqueue",
    "PreFilter",
    "Filter",
    "PostFilter",
    "Reserve",
    "Permit",
    "PreBindPreFlight",
    "PreBind",
    "Bind",
    "PostBind",
}


NOT_YET = {
    "moorage_slow_plugin_calls_total",  # No plugin from outside blocks.
    "rest_client_request_retries_total",
    "scheduler_permit_wait_duration_seconds_bucket",  # No plugin makes a pod wait.
}
"""Metrics of the dashboard and the alert rules that have no value here."""
SAMPLED = {"scheduler_plugin_execution_duration_seconds_bucket"}
"""Metrics of the dashboard that are recorded in a sample of the cycles only."""


@pytest.fixture(scope="module")
def scheduler(kubeconfig: Path, kubectl: Kubectl) -> Iterator[RunningScheduler]:
    with RunningScheduler(kubeconfig) as running:
        kubectl.create(pod("bound", cpu="10m"))
        kubectl.create(pod("refused", cpu="999"))
        kubectl("wait", "pod/bound", "--for=condition=PodScheduled", "--timeout=100s")
        kubectl("wait", "pod/refused", "--for=condition=PodScheduled=False", "--timeout=100s")
        yield running
    kubectl("delete", "pod", "bound", "refused", "--grace-period=0", "--force")


def test_the_dashboard_and_the_alert_rules_ask_for_what_is_served(
    scheduler: RunningScheduler, admin_token: str
) -> None:
    text, _ = shown(scheduler, admin_token)
    served = {line.partition("{")[0].partition(" ")[0] for line in text.splitlines()}
    asked = {metric for expression in expressions().values() for metric in named(expression).metrics}
    assert asked - served - SAMPLED == NOT_YET
    assert asked >= NOT_YET | SAMPLED


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_probes_are_open(scheduler: RunningScheduler, path: str) -> None:
    assert scheduler.get(path) == (200, "ok")


@pytest.mark.parametrize("path", ["/metrics", "/configz", "/debug/cache", "/debug/queue"])
def test_the_rest_takes_a_permission(scheduler: RunningScheduler, path: str, admin_token: str) -> None:
    refused = scheduler.get(path)
    assert (refused.status, refused.json["reason"]) == (403, "Forbidden")
    assert scheduler.get(path, "nobody's").status == 401
    assert scheduler.get(path, admin_token).status == 200


def shown(scheduler: RunningScheduler, token: str) -> tuple[str, dict[str, float]]:
    """The metrics, once what happened is in them: a pod is seen as bound a moment before that is counted."""
    for _ in range(ATTEMPTS):
        text = scheduler.get("/metrics", token).text
        lines = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        values = {name: float(value) for name, value in lines if name in FILLED}
        if values == FILLED:
            break
    return text, values


def test_metrics_have_kube_schedulers_names_types_and_what_happened(
    scheduler: RunningScheduler, admin_token: str
) -> None:
    assert scheduler.get("/metrics").status == 403  # So that somebody's permission has been asked about.
    text, values = shown(scheduler, admin_token)
    assert values == FILLED
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    listed = dict(
        line.split("\t")[:2]
        for file in LISTED
        for line in file.read_text().splitlines()
        if not line.startswith("#")
    )
    fed = listed.keys() - NOT_HERE.keys() - ELSEWHERE
    assert types.items() >= {name: listed[name] for name in fed}.items()
    assert not NOT_HERE.keys() & types.keys()
    assert not any(name.startswith("go_") for name in types)  # Nothing here runs on Go; python_* is the same.
    assert {"process_resident_memory_bytes", "python_gc_collections_total", "python_info"} <= types.keys()
    strangers = {name for name in types if name.startswith("scheduler_")} - listed.keys()
    assert not strangers
    points = re.findall(r'extension_point_duration_seconds_count\{extension_point="(\w+)"', text)
    assert set(points) >= POINTS
    events = set(re.findall(r'event_handling_duration_seconds_count\{event="([^"]+)"', text))
    assert events >= {"NodeAdd", "UnscheduledPodAdd", "UnscheduledPodDelete", "AssignedPodAdd"}
    assert re.search(r'rest_client_requests_total\{code="201",host="127\.0\.0\.1:\d+",method="POST"\}', text)
    # Nothing but the lease is replaced as a whole.
    assert re.search(r'rest_client_requests_total\{code="200",host="127\.0\.0\.1:\d+",method="PUT"\}', text)
    assert 'kubernetes_feature_enabled{name="DynamicResourceAllocation",stage=""} 1' in text
    assert 'kubernetes_feature_enabled{name="GenericWorkload",stage="BETA"} 0' in text
    assert re.search(r'informer_store_resource_version\{.*resource="pods",version="v1"\} [1-9]', text)
    assert scheduler.get("/readyz").status == 200
    slis = scheduler.get("/metrics/slis", admin_token).text
    assert 'kubernetes_healthcheck{name="leaderElection",type="readyz"} 1' in slis


def test_flags_and_status_are_shown(scheduler: RunningScheduler, admin_token: str) -> None:
    assert "leader-elect-retry-period=200ms\n" in scheduler.get("/flagz", admin_token).text
    assert "\nBinary version: 1.37." in scheduler.get("/statusz", admin_token).text
    assert scheduler.get("/debug/pprof/", admin_token).status == 404
    assert scheduler.get("/debug/pprof/profile?seconds=0.01", admin_token).status == 200
    assert scheduler.get("/debug/pprof/profile").status == 403
    assert scheduler.get("/debug/flags/v", admin_token) == (406, "unsupported http method")


def test_a_client_that_has_a_certificate_needs_no_token(
    kubectl: Kubectl, start: Start, tmp_path: Path
) -> None:
    authority = Authority("clients")
    (tmp_path / "ca.crt").write_text(authority.pem)
    watcher, stranger = tmp_path / "watcher.pem", tmp_path / "stranger.pem"
    watcher.write_text(authority.client("watcher", "system:monitoring")[1])
    stranger.write_text(authority.client("stranger")[1])
    scheduler = start(
        f"--client-ca-file={tmp_path / 'ca.crt'}",
        "--disabled-metrics=scheduler_cache_size",
        "--feature-gates=ComponentFlagz=false",
        leads=False,
    )
    shown = scheduler.get("/metrics", certificate=watcher)
    assert shown.status == 200
    assert 'authenticated_user_requests{username="other"} 1' in shown.text
    assert "scheduler_cache_size" not in shown.text
    assert "disabled_metrics_total 1" in shown.text
    refused = scheduler.get("/metrics", certificate=stranger)
    assert 'User "stranger" cannot get path "/metrics"' in refused.json["message"]
    assert scheduler.get("/healthz").text == "ok"
    # Who may ask for the page is told that there is none.
    assert scheduler.get("/flagz", certificate=watcher).status == 404
    scheduler.stop()


def test_the_command_line_of_kubeadm(
    kubeconfig: Path, kubectl: Kubectl, start: Start, admin_token: str
) -> None:
    scheduler = start(
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        "--leader-elect=true",
        "--profiling=false",
        "--contention-profiling=false",
        "--feature-gates=OpportunisticBatching=false",
        "-v=2",
        leads=False,
    )
    assert scheduler.get("/metrics").status == 403
    assert scheduler.get("/metrics", admin_token).status == 200
    scheduler.stop()
    assert "--contention-profiling: profiles of this kind are those of Go programs" in scheduler.log
    assert 'gate="OpportunisticBatching"' in scheduler.log
    assert "forbidden" not in scheduler.log


def test_the_configuration_and_the_state_can_be_seen(scheduler: RunningScheduler, admin_token: str) -> None:
    config = scheduler.get("/configz", admin_token).json["componentconfig"]
    assert config["leaderElection"]["retryPeriod"] == "200ms"
    cache = scheduler.get("/debug/cache", admin_token).json
    assert cache["nodes"]["n1"]["pods"] == ["default/bound"]
    assert cache["differences"] == []
    queue = scheduler.get("/debug/queue", admin_token).json
    [refused] = queue["unschedulable"]
    assert (refused["pod"], refused["refusedBy"]) == ("default/refused", ["NodeResourcesFit"])
