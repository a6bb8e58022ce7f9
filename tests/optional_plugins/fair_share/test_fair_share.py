"""FairShare as a plugin: its arguments, metrics, groups, and a scheduler at work."""

from __future__ import annotations

import copy
import gc
from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage import RegistryError
from moorage.client.kinds import POD
from moorage.config.load import parse_config
from moorage.optional_plugins.fair_share import gauges
from moorage.optional_plugins.fair_share.plugin import FairShare
from moorage.scheduler.framework_metrics import ProfilePluginMetrics
from moorage.scheduler.observers import MetricsObserver
from moorage.services.metrics import Metrics
from moorage.testing import check_plugin
from tests.optional_plugins.fair_share.sharing import SharedCluster, a_pod
from tests.optional_plugins.shown_examples import ROOT, check_examples
from tests.scheduler.running import SchedulerHarness, in_harness, pod
from tests.scheduler.test_groups import Groups

CONFIG = yaml.safe_load((ROOT / "examples/fair-share/scheduler.yaml").read_text())


def config_with(**args: Any) -> dict[str, Any]:
    config: dict[str, Any] = copy.deepcopy(CONFIG)
    config["profiles"][0]["pluginConfig"][0]["args"] = args
    return config


def test_keeps_the_rules_of_plugins() -> None:
    report = check_plugin(FairShare)
    assert report.ok, str(report)


def test_the_page_shows_what_is_printed(tmp_path: Path) -> None:
    assert check_examples("docs/optional-plugins/fair-share.md", tmp_path) == 1


WRONG_ARGS = {
    "a weight of nothing": ({"weights": {"a": 0}}, "weights[a]: 0.0 is not a number from 0.001 to 1000000"),
    "a negative default": ({"defaultWeight": -1}, "defaultWeight: -1.0 is not a number from 0.001"),
    "an endless weight": ({"weights": {"a": float("inf")}}, "weights[a]: inf is not a number"),
    "a weight in words": ({"weights": {"a": "two"}}, "weights"),
    "a label with blanks": ({"ownerLabel": "my team"}, "ownerLabel: 'my team' is not a label key"),
    "a half-life too short": ({"halfLife": "10ms"}, "halfLife: 10ms is neither 0s nor at least 1s"),
    "a half-life before": ({"halfLife": "-1h"}, "halfLife: -1h0m0s is neither 0s nor at least 1s"),
    "a resource without a name": ({"resources": [""]}, "resources: a resource has no name"),
    "an unknown order": ({"priority": "Never"}, "priority"),
    "an unknown argument": ({"halflife": "1h"}, "halfLife"),
}


@pytest.mark.parametrize(("args", "complaint"), WRONG_ARGS.values(), ids=WRONG_ARGS.keys())
def test_wrong_arguments_are_refused_with_their_name(args: dict[str, Any], complaint: str) -> None:
    with pytest.raises(RegistryError) as error:
        SharedCluster(**args)
    assert complaint in str(error.value)


def shown(metrics: Metrics) -> list[str]:
    lines = metrics.text().decode().splitlines()
    return sorted(line for line in lines if line.startswith("moorage_fair_share"))


def test_shares_are_metrics_while_owners_have_pods() -> None:
    metrics = Metrics()
    cluster = SharedCluster(
        metrics=ProfilePluginMetrics(metrics, "default-scheduler"), weights={"a": 2}, memory="20Gi"
    )
    for name, owner in (("a0", "a"), ("b0", "b"), ("b1", "b")):
        cluster.queue.add(a_pod(name, owner))
    cluster.attempt_all()
    cluster.clock.advance(1)
    assert shown(metrics) == [
        'moorage_fair_share_dominant_share{owner="a"} 0.1',
        'moorage_fair_share_dominant_share{owner="b"} 0.2',
        'moorage_fair_share_weighted_share{owner="a"} 0.05',
        'moorage_fair_share_weighted_share{owner="b"} 0.2',
    ]
    cluster.end("b0")
    cluster.end("a0")
    cluster.clock.advance(1)
    assert shown(metrics) == [
        'moorage_fair_share_dominant_share{owner="b"} 0.1',
        'moorage_fair_share_weighted_share{owner="b"} 0.1',
    ]


def test_the_number_of_owners_in_metrics_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gauges, "MAX_SHOWN", 3)
    metrics = Metrics()
    cluster = SharedCluster(metrics=ProfilePluginMetrics(metrics, "default-scheduler"))
    for number in range(5):
        cluster.queue.add(a_pod(f"p{number}", f"o{number}"))
    cluster.attempt_all()
    cluster.clock.advance(1)
    assert len(shown(metrics)) == 2 * 3


@pytest.mark.parametrize("half_life", ["0s", "1s"])
def test_owners_without_pods_are_forgotten(half_life: str) -> None:
    cluster = SharedCluster(halfLife=half_life, cpu="10000")
    for number in range(600):
        cluster.queue.add(a_pod(f"p{number}", f"o{number}"))
        cluster.attempt_all()
        cluster.end(f"p{number}")
        cluster.clock.advance(1)
    assert len(cluster.shares.usage) <= 300
    assert len(cluster.shares._computed) <= len(cluster.shares.usage)


async def add_pod(harness: SchedulerHarness, name: str, team: str, **spec: Any) -> None:
    manifest = pod(name, **spec)
    manifest["metadata"]["labels"] = {"team": team}
    await harness.client.create(POD, "default", manifest)


async def bound(harness: SchedulerHarness) -> list[str]:
    pods = await harness.client.list(POD)
    return sorted(each["metadata"]["name"] for each in pods if each["spec"].get("nodeName"))


def test_a_reload_changes_weights_and_ends_the_former_plugin() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        metrics = Metrics()
        scheduler = harness.scheduler(
            config=config_with(ownerLabel="team"), observer=MetricsObserver(metrics)
        )
        for number in range(6):
            for team in ("a", "b"):
                await add_pod(harness, f"{team}{number}", team)
        await harness.passes(2)
        await harness.add_node("n1", cpu="4")
        await harness.passes(10)
        assert await bound(harness) == ["a0", "a1", "b0", "b1"]
        assert 'moorage_fair_share_dominant_share{owner="a"} 0.5' in shown(metrics)
        await scheduler.reconfigure(parse_config(config_with(ownerLabel="team", weights={"b": 2}), "test"))
        await harness.passes(2)
        await harness.add_node("n2", cpu="2")
        await harness.passes(15)
        assert await bound(harness) == ["a0", "a1", "b0", "b1", "b2", "b3"]
        gc.collect()
        assert len(scheduler.cache._followers) == 1
        await harness.check(scheduler)

    in_harness(scenario)


def test_a_gang_counts_with_all_its_members() -> None:
    """The second gang of team a has to wait: its first one has half of the pods."""

    async def scenario(harness: SchedulerHarness) -> None:
        groups = Groups(harness, config=config_with(ownerLabel="team"))
        for name, team, count in (("gang", "a", 3), ("late", "a", 2), ("other", "b", 2), ("last", "b", 1)):
            await groups.add_group(name, min_count=count)
            for number in range(count):
                group = {"podGroupName": name}
                await add_pod(harness, f"{name}-{number}", team, schedulingGroup=group)
        await harness.passes(10)
        await harness.add_node("n1", cpu="6")
        await harness.passes(30)
        assert [len(await groups.bound(name)) for name in ("gang", "late", "other", "last")] == [3, 0, 2, 1]
        await groups.ends()

    in_harness(scenario)
