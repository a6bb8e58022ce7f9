"""LoadAware: which nodes are refused, and which are preferred."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from moorage import Code, CycleState, HypotheticalPods, Nodes, Pod, PodInfo
from moorage.api.quantity import parse_quantity
from moorage.optional_plugins.load_aware.plugin import HIGH_CPU, HIGH_MEMORY, LoadAware, log_no_usage
from moorage.testing import check_plugin
from moorage.testing.clusters import Cluster, standard_clusters
from tests.builders import make_pod, owner
from tests.optional_plugins.load_aware.measuring import Scene, metrics, node, running


def new(cpu: str = "1", name: str = "new", **fields: Any) -> Pod:
    return make_pod(name, uid=name, requests={"cpu": cpu, "memory": "1Gi"}, **fields)


def measured_clusters() -> list[Cluster]:
    """The standard clusters with usage: of three nodes, one is in heavy use, and one has none."""
    usage = [metrics("n0", "20", "1Gi"), metrics("n1", "100m", "100Gi"), metrics("n2", "1", "1Gi")]
    return [
        Cluster(each.name, (*each.objects, *usage[count % 2 :]), each.pods)
        for count, each in enumerate(standard_clusters())
    ]


@pytest.mark.parametrize("args", [None, {"limitsOfBurstable": True, "thresholds": {"cpu": 30}}], ids=repr)
def test_it_keeps_the_rules_for_plugins(args: Any) -> None:
    report = check_plugin(LoadAware, args=args, clusters=measured_clusters())
    assert report.ok, report
    assert report.notes == [], report


REFUSALS: dict[str, tuple[str, str, list[str]]] = {
    "below both": ("7999m", "9215Mi", []),
    "at the threshold of cpu": ("8", "1Gi", [HIGH_CPU]),
    "at the threshold of memory": ("1", "9Gi", [HIGH_MEMORY]),
    "above both": ("30", "30Gi", [HIGH_CPU, HIGH_MEMORY]),
}


@pytest.mark.parametrize(("cpu", "memory", "reasons"), REFUSALS.values(), ids=REFUSALS)
def test_a_node_is_refused(cpu: str, memory: str, reasons: list[str]) -> None:
    scene = Scene([node("a"), metrics("a", cpu, memory)])
    decision = scene.decide(new())
    assert decision.node == (None if reasons else "a")
    assert all(reason in decision.message for reason in reasons)


def test_a_hot_node_is_avoided_that_requests_alone_would_pick() -> None:
    busy = [node("a"), running("big", "b", cpu="6"), node("b"), metrics("a", "9"), metrics("b", "500m")]
    assert Scene(busy).place(new()) == "b"
    unused = [each for each in busy if each.name not in ("a", "b") or each.__class__.__name__ == "Node"]
    assert Scene(unused).place(new()) == "a"


def test_a_daemon_pod_is_not_refused() -> None:
    scene = Scene([node("a"), metrics("a", "10", "10Gi")])
    daemon = new(owners=[owner("DaemonSet", "agent")])
    assert scene.place(daemon) == "a"
    assert scene.place(new(name="other")) is None


def test_without_thresholds_no_node_is_refused() -> None:
    scene = Scene([node("a"), metrics("a", "10", "10Gi")], {"thresholds": {"cpu": None, "memory": None}})
    assert scene.place(new()) == "a"


def test_a_burst_does_not_gather_on_the_coolest_node() -> None:
    scene = Scene([node("a"), node("b"), metrics("a", "3"), metrics("b", "1")])
    placed = [scene.place(new("1", name=f"p{number}")) for number in range(8)]
    assert placed[0] == "b"
    assert sorted(map(str, placed)).count("a") == 3, placed


def test_a_burst_makes_a_node_hot() -> None:
    """Each of the pods requests 3 cores, and counts with 2550m: the third would find 7600m of 8 in use."""
    scene = Scene([node("a"), metrics("a", "2500m")], {"thresholds": {"cpu": 75}})
    placed = [scene.place(new("3", name=f"p{number}")) for number in range(3)]
    assert placed == ["a", "a", None]


MEASURED: dict[str, tuple[float | None, int]] = {
    "long before the window": (-3600.0, 90),
    "just before the window and the warm-up": (-40.0, 90),
    "in the warm-up": (-39.0, 60),
    "after the measurement": (5.0, 60),
    "not yet, as its kubelet says": (None, 60),
}


@pytest.mark.parametrize(("started", "score"), MEASURED.values(), ids=MEASURED)
def test_a_pod_is_estimated_until_it_is_measured(started: float | None, score: int) -> None:
    """The window is of 10 seconds, the warm-up of 30. Of nothing else, the node uses 1 core of 10."""
    args = {"weights": {"memory": 0}, "estimates": {"cpu": 100}}
    there = running("there", "a", started, cpu="3")
    scene = Scene([node("a"), node("b"), metrics("a", "1"), metrics("b", "1"), there], args)
    assert scene.scores(new("0"))["a"] == score


ESTIMATES: dict[str, tuple[dict[str, Any], dict[str, Any], int]] = {
    "a share of the request": ({}, {"requests": {"cpu": "2"}}, 83),
    "a default without a request": ({"estimates": {"cpu": 1000}}, {}, 90),
    "limits do not count": ({}, {"requests": {"cpu": "2"}, "limits": {"cpu": "4"}}, 83),
    "unless they are wanted": (
        {"limitsOfBurstable": True},
        {"requests": {"cpu": "2"}, "limits": {"cpu": "4"}},
        66,
    ),
    "and there is one": ({"limitsOfBurstable": True}, {"requests": {"cpu": "2"}}, 83),
}


@pytest.mark.parametrize(("args", "resources", "score"), ESTIMATES.values(), ids=ESTIMATES)
def test_what_a_pod_will_use(args: dict[str, Any], resources: dict[str, Any], score: int) -> None:
    pod = make_pod("p", uid="p", containers=[{"name": "main", "image": "app", "resources": resources}])
    usage = [metrics("a", "0", "0"), metrics("b", "0", "0")]
    scene = Scene([node("a"), node("b"), *usage], {"weights": {"memory": 0}, **args})
    assert scene.scores(pod) == {"a": score, "b": score}


def test_limits_count_only_if_all_containers_have_them() -> None:
    limited = {"name": "one", "image": "app", "resources": {"limits": {"cpu": "4"}, "requests": {"cpu": "1"}}}
    other = {"name": "two", "image": "app", "resources": {"requests": {"cpu": "1"}}}
    scene = Scene([node("a")], {"limitsOfBurstable": True, "estimates": {"cpu": 100}})
    estimator = scene.plugin._estimator
    assert estimator.of_pod(make_pod("p", containers=[limited, other]))[0] == 2000
    assert estimator.of_pod(make_pod("p", containers=[limited, limited]))[0] == 8000
    whole = make_pod("p", containers=[limited, other], resources={"limits": {"cpu": "7"}})
    assert estimator.of_pod(whole)[0] == 7000


SHAPE = [{"utilization": 0, "score": 4}, {"utilization": 40, "score": 10}, {"utilization": 100, "score": 0}]


def test_a_shape_can_fill_nodes_up_to_a_target() -> None:
    usage = {"idle": "0", "some": "2", "target": "4", "more": "7", "full": "20"}
    objects = [each for name, cpu in usage.items() for each in (node(name), metrics(name, cpu))]
    args = {"weights": {"memory": 0}, "thresholds": {"cpu": None}, "estimates": {"cpu": 0}, "shape": SHAPE}
    found = Scene(objects, args).scores(new())
    assert found == {"idle": 40, "some": 70, "target": 100, "more": 50, "full": 0}


def test_resources_count_by_their_weights() -> None:
    objects = [node("a"), node("b"), metrics("a", "1", "5Gi"), metrics("b", "5", "1Gi")]
    args = {"weights": {"cpu": 3, "memory": 1}, "estimates": {"cpu": 0, "memory": 0}}
    assert Scene(objects, args).scores(new()) == {"a": 80, "b": 60}


def test_a_node_without_usage_counts_with_requests_and_is_not_refused() -> None:
    objects = [node("a"), node("b"), metrics("b", "4", "4Gi"), running("old", "a", cpu="9", memory="9Gi")]
    args = {"estimates": {"cpu": 100, "memory": 100}}
    scene = Scene(objects, args)
    assert scene.scores(new("0")) == {"a": 5, "b": 55}


def test_that_there_is_no_usage_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    log_no_usage.cache_clear()
    for _ in range(2):
        Scene([node("a"), node("b")]).place(new())
    assert caplog.messages == [
        "LoadAware: there is no usage of nodes: they count with requests, and none is refused"
    ]


UNREADABLE: dict[str, dict[str, Any]] = {
    "no timestamp": {"timestamp": None},
    "no memory": {"usage": {"cpu": parse_quantity("9")}},
    "no duration": {"window": "soon"},
}


@pytest.mark.parametrize("fields", UNREADABLE.values(), ids=UNREADABLE)
def test_usage_that_cannot_be_read_is_none(fields: dict[str, Any]) -> None:
    scene = Scene([node("a"), replace(metrics("a", "9", "9Gi"), **fields)])
    assert scene.place(new()) == "a"


def test_pods_that_are_supposed_count() -> None:
    """A pod that is nominated, or put back after a dry run, is as if it had just come."""
    objects = [node("a"), metrics("a", "6", "1Gi"), running("low", "a", None, cpu="2")]
    scene = Scene(objects, {"estimates": {"cpu": 100}, "thresholds": {"cpu": 80}})
    assert scene.decide(new()).node is None
    view = next(iter(scene.nodes))
    assert scene.plugin.filter_node(CycleState(), new(), view) is not None
    assert scene.plugin.filter_node(CycleState(), new(), view.without(view.pods)) is None
    nominated = PodInfo(new("2"))
    supposed = HypotheticalPods(scene.cache.snapshot(), 1, *_gone(scene), added=[(0, nominated)])
    codes = scene.plugin.filter(CycleState(), new(), Nodes(scene.cache.snapshot(), None, supposed)).codes
    assert codes is not None
    assert codes.tolist() == [1]


def _gone(scene: Scene) -> tuple[Any, Any]:
    rows = np.array(scene.cache.snapshot().pods.rows_of(["low"]), np.intp)
    return np.zeros(1, np.intp), rows


def test_no_pod_is_evicted_to_cool_a_node() -> None:
    objects = [node("a"), metrics("a", "6", "1Gi"), running("low", "a", None, cpu="2")]
    decision = Scene(objects, {"estimates": {"cpu": 100}}).decide(new(priority=1000))
    refusal = decision.diagnosis.of(0)
    assert refusal is not None
    assert refusal.reason.code is Code.UNRESOLVABLE
