"""LoadAware in a running scheduler, and the examples of its page."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import yaml

from moorage import Permission, Profiles, default_config, default_registry, parse_config
from moorage.http.transport import Request, Response
from moorage.manifests.permissions import cluster_permissions
from moorage.optional_plugins.load_aware.plugin import HIGH_CPU
from moorage.optional_plugins.load_aware.readings import NODE_METRICS
from moorage.scheduler.observers import MetricsObserver
from moorage.scheduler.watched_kinds import read_kinds
from moorage.services.metrics import Metrics
from tests.optional_plugins.load_aware.measuring import manifest
from tests.optional_plugins.shown_examples import ROOT, check_examples
from tests.scheduler.running import START, SchedulerHarness, in_harness
from tests.scheduler.test_groups import Groups

CONFIG = str(ROOT / "examples/load-aware/scheduler.yaml")
OURS = yaml.safe_load(Path(CONFIG).read_text())


class MeasuredServer:
    """A way to the API server on which metrics.k8s.io is served, until it is stopped."""

    def __init__(self, harness: SchedulerHarness, **cpu: str) -> None:
        self._harness = harness
        self.cpu = cpu
        self.is_stopped = False
        self.reads = 0

    async def handle(self, request: Request) -> Response:
        if request.path != "/apis/metrics.k8s.io/v1beta1/nodes":
            return await self._harness.line.handle(request)
        self.reads += 1
        if self.is_stopped:
            return Response(503, b'{"kind": "Status", "message": "no endpoints available"}')
        now = START + timedelta(seconds=self._harness.clock.now())
        items = [
            {**manifest(name, cpu), "timestamp": f"{now:%Y-%m-%dT%H:%M:%SZ}"}
            for name, cpu in self.cpu.items()
        ]
        return Response(200, msgspec.json.encode({"kind": "NodeMetricsList", "items": items}))


def shown(metrics: Metrics) -> dict[str, float]:
    lines = metrics.text().decode().splitlines()
    ours = (line.split() for line in lines if line.startswith("moorage_load_aware"))
    return {name.removeprefix("moorage_load_aware_").partition("{")[0]: float(value) for name, value in ours}


def test_a_hot_node_is_avoided_until_metrics_stop_and_when_they_come_back() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        await harness.add_node("hot", cpu="8")
        await harness.add_node("cool", cpu="4")
        server, metrics = MeasuredServer(harness, hot="7", cool="1"), Metrics()
        harness.scheduler(transport=server, config=OURS, observer=MetricsObserver(metrics))
        await harness.passes(1)
        await harness.add_pod("first", cpu="1")
        await harness.passes(5)
        assert await harness.node_of("first") == "cool"
        assert shown(metrics) == {"usage_age_seconds": 0, "failed_reads_total": 0, "nodes_by_requests": 0}
        server.is_stopped = True
        await harness.passes(100)
        await harness.add_pod("second", cpu="1")
        await harness.passes(5)
        assert await harness.node_of("second") == "cool", "the last usage is not too old yet"
        assert 90 <= shown(metrics)["usage_age_seconds"] <= 105
        await harness.passes(100)
        assert shown(metrics)["nodes_by_requests"] == 2
        assert shown(metrics)["failed_reads_total"] > 10
        await harness.add_pod("third", cpu="1")
        await harness.passes(5)
        assert await harness.node_of("third") == "hot", "by requests it is the emptier one"
        server.is_stopped = False
        await harness.passes(20)
        await harness.add_pod("fourth", cpu="1")
        await harness.passes(5)
        assert await harness.node_of("fourth") == "cool"

    in_harness(scenario)


def test_a_pod_waits_until_a_node_has_cooled_down() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        await harness.add_node("n1", cpu="8")
        server = MeasuredServer(harness, n1="7")
        scheduler = harness.scheduler(transport=server, config=OURS)
        await harness.passes(1)
        await harness.add_pod("p", cpu="1")
        await harness.passes(50)
        assert HIGH_CPU in (await harness.condition("p"))["message"]
        attempts = scheduler.cycles_begun
        assert attempts == 1, "readings that change nothing requeue nothing"
        server.cpu["n1"] = "2"
        await harness.passes(17)
        assert await harness.node_of("p") == "n1"
        await harness.check(scheduler)

    in_harness(scenario)


def test_it_stops_reading_when_another_configuration_comes() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        await harness.add_node("n1")
        server = MeasuredServer(harness, n1="1")
        scheduler = harness.scheduler(transport=server, config=OURS)
        await harness.passes(31)
        assert server.reads == 3
        await scheduler.reconfigure(default_config())
        await harness.passes(60)
        assert server.reads == 3
        await scheduler.reconfigure(parse_config(OURS, "test"))
        await harness.passes(16)
        assert server.reads == 5

    in_harness(scenario)


def test_profiles_read_for_themselves() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        await harness.add_node("n1", cpu="8")
        (profile,) = OURS["profiles"]
        tolerant = {**profile, "schedulerName": "tolerant", "pluginConfig": [_with_threshold(99)]}
        server = MeasuredServer(harness, n1="7")
        harness.scheduler(transport=server, config={**OURS, "profiles": [profile, tolerant]})
        await harness.passes(1)
        assert server.reads == 2
        await harness.add_pod("p", cpu="1")
        await harness.add_pod("q", cpu="1", schedulerName="tolerant")
        await harness.passes(2)
        assert [await harness.node_of(name) for name in ("p", "q")] == ["", "n1"]

    in_harness(scenario)


def _with_threshold(cpu: int) -> dict[str, Any]:
    return {"name": "LoadAware", "args": {"thresholds": {"cpu": cpu}}}


def test_the_page_shows_what_is_printed(tmp_path: Path) -> None:
    assert check_examples("docs/optional-plugins/load-aware.md", tmp_path) == 1


def test_a_gang_waits_as_a_whole_until_a_node_has_cooled_down() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        for name in ("n1", "n2"):
            await harness.add_node(name, cpu="3")
        server = MeasuredServer(harness, n1="2700m", n2="0")
        groups = Groups(harness, transport=server, config=OURS)
        await harness.passes(1)
        await groups.add_group("job", min_count=4)
        await groups.add_pods("job", 4)
        await harness.passes(20)
        assert await groups.bound("job") == []
        assert HIGH_CPU in (await harness.condition("job-3"))["message"]
        server.cpu["n1"] = "0"
        await harness.passes(20)
        assert len(await groups.bound("job")) == 4
        await groups.ends()

    in_harness(scenario)


def test_what_explain_and_roles_need_of_a_server_is_known() -> None:
    config = parse_config(OURS, "test")
    frameworks = list(Profiles(config, default_registry()).values())
    assert NODE_METRICS in read_kinds(frameworks)
    assert Permission("metrics.k8s.io", "nodes", "list") in cluster_permissions(frameworks)
    assert not any(
        each.group == "metrics.k8s.io" and each.verb != "list" for each in cluster_permissions(frameworks)
    )
