"""What `moorage run` serves, and to whom."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apiserver.running import Kubectl
from tests.run.running import RunningScheduler
from tests.up.objects import pod

ATTEMPTS = 100
LISTED = Path(__file__).parents[1] / "services" / "data" / "metrics.tsv"
FILLED = {
    'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"}': 1,
    'scheduler_schedule_attempts_total{profile="default-scheduler",result="unschedulable"}': 1,
    'scheduler_pending_pods{queue="unschedulable"}': 1,
    'scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="default-scheduler"}': 1,
    'scheduler_queue_incoming_pods_total{event="UnschedulablePodAdd",queue="active"}': 2,
    'scheduler_pod_scheduling_sli_duration_seconds_count{attempts="1"}': 1,
    "scheduler_pod_scheduling_attempts_count": 1,
    "scheduler_scheduling_algorithm_duration_seconds_count": 2,
    "scheduler_preemption_attempts_total": 1,
    'scheduler_cache_size{type="nodes"}': 1,
    'scheduler_goroutines{operation="binding"}': 0,
    'leader_election_master_status{name="kube-scheduler"}': 1,
}
UNUSED = re.compile(
    "informer_|workqueue_|running_managed_|kubernetes_healthcheck|kubernetes_feature_|leader_election_slowpath"
    "|rest_client_(exec_plugin_call|rate_limiter|request_retries|transport_c)"
    "|scheduler_(async_api|pending_async|batch|podgroup|get_node_hint|store_schedule|dra|resourceclaim|volume)"
    "|scheduler_(permit_wait|queueing_hint|preemption_goroutines|plugin_execution)"
)
"""Metrics without a value until something happens that has not happened here, or that moorage never does."""
POINTS = {
    "PreEnqueue",
    "PreFilter",
    "Filter",
    "PostFilter",
    "Reserve",
    "Permit",
    "PreBind",
    "Bind",
    "PostBind",
}


@pytest.fixture(scope="module")
def scheduler(kubeconfig: Path, kubectl: Kubectl) -> Iterator[RunningScheduler]:
    with RunningScheduler(kubeconfig) as running:
        kubectl.create(pod("bound", cpu="10m"))
        kubectl.create(pod("refused", cpu="999"))
        kubectl("wait", "pod/bound", "--for=condition=PodScheduled", "--timeout=30s")
        kubectl("wait", "pod/refused", "--for=condition=PodScheduled=False", "--timeout=30s")
        yield running
    kubectl("delete", "pod", "bound", "refused", "--grace-period=0", "--force")


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
        line.split("\t")[:2] for line in LISTED.read_text().splitlines() if not line.startswith("#")
    )
    assert types.items() >= {name: kind for name, kind in listed.items() if not UNUSED.match(name)}.items()
    strangers = {name for name in types if name.startswith("scheduler_")} - listed.keys()
    assert not strangers
    points = re.findall(r'extension_point_duration_seconds_count\{extension_point="(\w+)"', text)
    assert set(points) >= POINTS
    assert 'rest_client_requests_total{code="201",host="127.0.0.1:' in text


def test_the_configuration_and_the_state_can_be_seen(scheduler: RunningScheduler, admin_token: str) -> None:
    config = scheduler.get("/configz", admin_token).json["componentconfig"]
    assert config["leaderElection"]["leaseDuration"] == "2s"
    cache = scheduler.get("/debug/cache", admin_token).json
    assert cache["nodes"]["n1"]["pods"] == ["default/bound"]
    assert cache["differences"] == []
    queue = scheduler.get("/debug/queue", admin_token).json
    [refused] = queue["unschedulable"]
    assert (refused["pod"], refused["refusedBy"]) == ("default/refused", ["NodeResourcesFit"])
