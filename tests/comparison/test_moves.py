"""Which pods another configuration moves, and which plugin is said to have moved them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.base import Object
from moorage.api.node import ContainerImage, Node, Taint
from moorage.comparison.attribution import Cause
from moorage.emulation.kubernetes_version import V1_36, V1_37
from moorage.sim.admission import Admission
from moorage.simulation.script import ScriptEvent
from tests.comparison.comparing import SPREADING, difference, fit, moves, settings, without
from tests.simulation.simulating import arrivals, manifest, nodes

LEAST, MOST = "LeastAllocated", "MostAllocated"


def large_and_small() -> list[Object]:
    return [*nodes(1, "16", "large"), *nodes(1, "4", "small")]


def tainted(cluster: list[Object]) -> list[Object]:
    taint = Taint(key="dedicated", value="batch", effect="NoSchedule")
    return [
        replace(each, spec=replace(each.spec, taints=(taint,))) for each in cluster if isinstance(each, Node)
    ]


def preferring(node: str) -> dict[str, Any]:
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    term = {"weight": 100, "preference": {"matchExpressions": [expression]}}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_another_strategy_moves_a_pod_and_the_first_difference_has_all_scores() -> None:
    found = difference(
        large_and_small(), arrivals(manifest("a", "1")), settings(fit(LEAST)), settings(fit(MOST))
    )
    (move,) = found.moves
    assert (move.pod, move.former_node, move.node) == ("default/a", "large-0", "small-0")
    assert (move.by.cause, move.by.plugin) == (Cause.CONFIGURATION, "NodeResourcesFit")
    assert move.by.instead == "large-0"
    assert move.by.scores == {"NodeResourcesFit": (6, 25)}
    assert move.by.other_scores == {"NodeResourcesFit": (93, 75)}
    first = found.first_difference
    assert first is not None
    assert (first.pod, first.former_node, first.node, first.at_seconds) == (
        "default/a",
        "large-0",
        "small-0",
        0,
    )
    (here,), (former,) = first.scores, first.former_scores
    assert (here.plugin, here.weight, here.raw, here.weighted) == ("NodeResourcesFit", 1, (6, 25), (6, 25))
    assert (former.plugin, former.raw, former.normalised) == ("NodeResourcesFit", (93, 75), (93, 75))
    assert {each.node: (each.former, each.share) for each in found.nodes} == {
        "large-0": (0.0625, 0),
        "small-0": (0, 0.25),
    }


def test_a_pod_that_both_configurations_would_move_is_moved_by_the_cluster() -> None:
    workload = arrivals(
        manifest("first", "1"), manifest("second", "4", at="1m", affinity=preferring("small-0"))
    )
    found = difference(large_and_small(), workload, settings(fit(LEAST)), settings(fit(MOST)))
    moved = moves(found)
    assert moved["first"].by.cause is Cause.CONFIGURATION
    second = moved["second"]
    assert (second.former_node, second.node, second.by.cause) == ("small-0", "large-0", Cause.CLUSTER)
    assert (second.by.plugin, second.by.reason) == (
        "NodeResourcesFit",
        "rejects the former node: Insufficient cpu",
    )
    assert found.first_difference is not None
    assert found.first_difference.pod == "default/first"


def test_a_plugin_that_does_not_score_any_more_has_moved_the_pod() -> None:
    workload = arrivals(manifest("a", "1", affinity=preferring("small-0")))
    disabled = fit(LEAST)
    disabled["plugins"]["score"]["disabled"].append({"name": "NodeAffinity"})
    found = difference(large_and_small(), workload, settings(fit(LEAST)), settings(disabled))
    move = moves(found)["a"]
    assert (move.former_node, move.node) == ("small-0", "large-0")
    assert (move.by.cause, move.by.plugin) == (Cause.CONFIGURATION, "NodeAffinity")
    assert move.by.other_scores["NodeAffinity"] == (200, 0)
    assert "NodeAffinity" not in move.by.scores


def test_another_weight_moves_a_pod() -> None:
    workload = arrivals(manifest("a", "1", affinity=preferring("small-0")))
    heavier = fit(LEAST)
    heavier["plugins"]["multiPoint"] = {"enabled": [{"name": "NodeResourcesFit", "weight": 20}]}
    found = difference(large_and_small(), workload, settings(fit(LEAST)), settings(heavier))
    move = moves(found)["a"]
    assert (move.node, move.by.cause, move.by.plugin) == ("large-0", Cause.CONFIGURATION, "NodeResourcesFit")
    assert move.by.scores == {"NodeAffinity": (200, 0), "NodeResourcesFit": (75 * 20, 93 * 20)}


@pytest.mark.parametrize("is_disabled_there", [False, True])
def test_a_filter_that_only_one_configuration_has_moves_a_pod(is_disabled_there: bool) -> None:
    cluster = [*tainted(nodes(1, "16", "large")), *nodes(2, "4", "small")]
    usual, disabled = settings(fit(LEAST)), fit(LEAST)
    disabled["plugins"]["filter"] = {"disabled": [{"name": "TaintToleration"}]}
    both = [settings(disabled), usual] if is_disabled_there else [usual, settings(disabled)]
    found = difference(cluster, arrivals(manifest("a", "1")), *both)
    move = moves(found)["a"]
    assert (move.by.cause, move.by.plugin) == (Cause.CONFIGURATION, "TaintToleration")
    if is_disabled_there:
        assert move.former_node == "large-0"
        assert move.by.reason.startswith("rejects the other node: node(s) had untolerated taint")
    else:
        assert move.node == "large-0"
        assert move.by.reason.startswith("does not reject the node any more: node(s) had untolerated taint")


def test_versions_of_kubernetes_are_compared() -> None:
    """v1.37 counts an image volume among the images that a node may have, and so values each of them less."""
    large, small = large_and_small()
    assert isinstance(small, Node)
    image = ContainerImage(names=("registry.example/models:1",), size_bytes=500 << 20)
    cluster = [large, replace(small, status=replace(small.status, images=(image,)))]
    volume = {"name": "models", "image": {"reference": "registry.example/models:1"}}
    workload = arrivals(manifest("a", "1", volumes=[volume]))
    profile = fit(LEAST)
    profile["plugins"]["score"]["disabled"] = [
        {"name": each} for each in SPREADING if each != "ImageLocality"
    ]
    found = difference(cluster, workload, settings(profile, V1_36), settings(profile, V1_37))
    move = moves(found)["a"]
    assert (move.former_node, move.node) == ("small-0", "large-0")
    assert (move.by.cause, move.by.plugin) == (Cause.CONFIGURATION, "ImageLocality")
    assert move.by.other_scores == {"ImageLocality": (23, 0), "NodeResourcesFit": (75, 93)}
    assert move.by.scores == {"ImageLocality": (11, 0), "NodeResourcesFit": (75, 93)}


def test_chance_is_named_as_such() -> None:
    """Without one filter there is another number of nodes to choose among, and chance chooses differently."""
    cluster = [*nodes(4, "16", "node"), *tainted(nodes(3, "16", "tainted"))]
    scores = (*SPREADING, "NodeResourcesFit", "TaintToleration")
    profile, other = without(*scores), without(*scores)
    other["plugins"]["filter"] = {"disabled": [{"name": "TaintToleration"}]}
    workload = arrivals(*(manifest(f"pod-{each}", at=f"{each}s") for each in range(24)))
    found = difference(cluster, workload, settings(profile), settings(other))
    by_kind = {
        name: [each for each in found.moves if each.node.startswith(name)] for name in ("node", "taint")
    }
    assert {each.by.cause for each in by_kind["node"]} == {Cause.TIE}
    assert {(each.by.cause, each.by.plugin) for each in by_kind["taint"]} == {
        (Cause.CONFIGURATION, "TaintToleration")
    }


def test_a_pod_moves_from_a_node_that_is_full_or_gone_by_the_cluster() -> None:
    """The first pod is on the node that fails; a second one takes the place of the first."""
    script = [ScriptEvent(60, "remove", "small-0", "test")]
    workload = arrivals(manifest("a", "1"), manifest("late", "1", at="2m"))
    found = difference(large_and_small(), workload, settings(fit(LEAST)), settings(fit(MOST)), script=script)
    assert set(moves(found)) == {"a"}
    assert [(each.pod, each.node) for each in found.bound_only_here] == [
        ("default/a (created again, 1)", "large-0")
    ]
    assert found.bound_only_before == []


def test_a_pod_that_is_unschedulable_only_here_is_the_first_difference() -> None:
    cluster = tainted(nodes(1, "4", "small"))
    disabled = fit(MOST)
    disabled["plugins"]["filter"] = {"disabled": [{"name": "TaintToleration"}]}
    found = difference(cluster, arrivals(manifest("a", "1")), settings(disabled), settings(fit(MOST)))
    assert found.moves == []
    (lost,) = found.bound_only_before
    assert lost.pod == "default/a"
    assert lost.message.startswith("0/1 nodes are available: 1 node(s) had untolerated taint")
    assert found.first_difference is not None
    assert found.first_difference.node == ""
    assert found.first_difference.message.startswith("0/1 nodes are available")


def test_equal_configurations_have_no_differences() -> None:
    workload = arrivals(
        *(manifest(f"pod-{each}", "2", at=f"{each}s", duration="1m") for each in range(12)),
        manifest("high", "4", at="20s", priorityClassName="system-node-critical", duration="1m"),
    )
    found = difference(nodes(2), workload, settings({}), settings({}))
    assert found.is_empty
    assert (found.moved, found.nodes, found.first_difference) == (0, [], None)
    assert found.unmoved == 13 + 2  # Two pods are preempted, and created again.


def test_a_plugin_reads_objects_that_only_its_own_configuration_follows() -> None:
    names = ("VolumeBinding", "VolumeRestrictions", "VolumeZone", "NodeVolumeLimits")
    other = fit(LEAST)
    other["plugins"]["multiPoint"] = {"disabled": [{"name": each} for each in names]}
    affinity = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["small-0"]}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "local"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "claimRef": {"namespace": "default", "name": "data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [affinity]}]}},
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "data",
            "namespace": "default",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": {"volumeName": "local"},
    }
    located = [(volume, "test"), (claim, "test")]
    cluster = [*large_and_small(), *Admission(located).objects(located)]
    pod = manifest("a", "1", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
    found = difference(cluster, arrivals(pod), settings(fit(LEAST)), settings(other))
    move = moves(found)["a"]
    assert (move.former_node, move.node, move.by.instead) == ("small-0", "large-0", "small-0")
    assert (move.by.cause, move.by.plugin) == (Cause.CONFIGURATION, "VolumeBinding")
    assert move.by.reason.startswith(
        "does not reject the node any more: node(s) didn't match PersistentVolume"
    )
