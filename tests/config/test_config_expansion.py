"""From plugin sets to ordered lists, against kube-scheduler v1.36's framework."""

from __future__ import annotations

import pytest

from moorage.config.expansion import ExpansionError, expand
from moorage.config.load import parse_profiles
from moorage.config.types import EXTENSION_POINTS, UNNAMED_POINTS, PluginRef, Plugins, PluginSet

EVERYTHING = frozenset((*EXTENSION_POINTS, *UNNAMED_POINTS))
IMPLEMENTED = {
    "All": EVERYTHING,
    "Also": EVERYTHING - {"queue_sort", "placement_generate"},
    "Score1": frozenset({"pre_score", "score"}),
    "Score2": frozenset({"score"}),
    "Filter": frozenset({"filter"}),
    "Sort": frozenset({"queue_sort"}),
    "Bind": frozenset({"bind"}),
    "Generate1": frozenset({"placement_generate"}),
    "Placement": frozenset({"placement_score"}),
}


def implements(plugin: str, point: str) -> bool:
    return point in IMPLEMENTED[plugin]


def refs(text: str) -> tuple[PluginRef, ...]:
    found = []
    for word in text.split():
        name, _, weight = word.partition(":")
        found.append(PluginRef(name=name, weight=int(weight) if weight else None))
    return tuple(found)


def plugins(**points: str) -> Plugins:
    """Sets as `enabled - disabled`, by point."""
    sets = {}
    for point, text in points.items():
        enabled, _, disabled = text.partition("-")
        sets[point] = PluginSet(enabled=refs(enabled), disabled=refs(disabled))
    return Plugins(**sets)


def test_one_plugin_everywhere() -> None:
    expected = {point: refs("All") for point in EVERYTHING}
    expected["score"] = expected["placement_score"] = refs("All:5")
    assert expand(plugins(multi_point="All:5"), implements) == expected


ORDERS = {
    "several of multiPoint": (plugins(multi_point="All Score1"), "score", "All:1 Score1:1"),
    "not implemented is skipped": (plugins(multi_point="All Filter"), "score", "All:1"),
    "disabled at the point": (plugins(multi_point="All Score1", score="- Score1"), "score", "All:1"),
    "disabled at one point only": (
        plugins(multi_point="All Score1", score="- Score1"),
        "pre_score",
        "All Score1",
    ),
    "star at the point": (plugins(multi_point="All Score1", pre_score="- *"), "pre_score", ""),
    "star keeps the point's own": (
        plugins(multi_point="All Score2", score="Score1:3 - *"),
        "score",
        "Score1:3",
    ),
    "the point's order first": (
        plugins(multi_point="Score2 All Score1", score="Score1 All"),
        "score",
        "Score1:1 All:1 Score2:1",
    ),
    "only what multiPoint has goes first": (
        plugins(multi_point="All Score1", score="Score2 Score1 All"),
        "score",
        "Score1:1 All:1 Score2:1",
    ),
    "the point's weights first": (
        plugins(multi_point="All:9 Score1", score="Score1:5 Score2:5 All:3"),
        "score",
        "Score1:5 All:3 Score2:5",
    ),
    "the point's missing weight is one": (plugins(multi_point="All:9", score="All"), "score", "All:1"),
    "zero is one": (plugins(multi_point="All:0"), "score", "All:1"),
    "placement scores have their own": (
        plugins(multi_point="All:7 Placement", placement_score="All:2 Placement:6"),
        "placement_score",
        "All:2 Placement:6",
    ),
    "multiPoint's weight where the point is silent": (
        plugins(multi_point="All:7", placement_score="All:2"),
        "score",
        "All:7",
    ),
    "enabled goes before disabled at multiPoint": (
        plugins(multi_point="Sort Bind Score1 - Score1"),
        "score",
        "Score1:1",
    ),
    "star at multiPoint says nothing any more": (
        plugins(multi_point="Sort Bind Score1 - *"),
        "score",
        "Score1:1",
    ),
    "disabled and enabled at the point": (
        # A plugin that its point disables and enables is no override: it goes behind multiPoint's.
        plugins(multi_point="All Score1 Score2", score="Score1:4 - Score1"),
        "score",
        "All:1 Score2:1 Score1:4",
    ),
    "without multiPoint": (
        plugins(queue_sort="Sort", bind="Bind", filter="Filter All"),
        "filter",
        "Filter All",
    ),
}


@pytest.mark.parametrize(("given", "point", "expected"), ORDERS.values(), ids=ORDERS.keys())
def test_order_and_weights(given: Plugins, point: str, expected: str) -> None:
    assert expand(given, implements)[point] == refs(expected)


REFUSED = {
    "twice in multiPoint": (
        plugins(multi_point="All All"),
        'plugin "All" already registered as "PreEnqueuePlugin"',
    ),
    "twice at a point": (
        plugins(multi_point="All", score="Score1 Score1"),
        'plugin "Score1" already registered as "ScorePlugin"',
    ),
    "not implemented at its point": (
        plugins(multi_point="All", filter="Score1"),
        'plugin "Score1" does not extend FilterPlugin plugin',
    ),
    "interface of several words": (
        plugins(multi_point="All", pre_filter="Score1"),
        'plugin "Score1" does not extend PreFilterPlugin plugin',
    ),
    "unknown at a point": (plugins(multi_point="All", filter="Ghost"), 'FilterPlugin "Ghost" does not exist'),
    "unknown in multiPoint": (plugins(multi_point="Ghost"), 'PreEnqueuePlugin "Ghost" does not exist'),
    "unknown and disabled at every point": (
        plugins(
            multi_point="Ghost",
            **{point: "- *" for point in EXTENSION_POINTS if point not in ("queue_sort", "bind")},
            queue_sort="Sort - *",
            bind="Bind - *",
        ),
        'ScorePlugin "Ghost" does not exist',
    ),
    "no queue sort": (
        plugins(multi_point="Also"),
        'only one queue sort plugin required for profile with scheduler name "mine", but got 0',
    ),
    "two queue sorts": (
        plugins(multi_point="All Sort"),
        'only one queue sort plugin required for profile with scheduler name "mine", but got 2',
    ),
    "no bind": (
        plugins(multi_point="Sort"),
        'at least one bind plugin is needed for profile with scheduler name "mine"',
    ),
    "two placement generators": (
        plugins(multi_point="All Generate1"),
        'at most one placement generate plugin is allowed for profile with scheduler name "mine"',
    ),
    "overflowing weights": (
        plugins(multi_point=f"All:{1 << 56} Score1:{1 << 56}"),
        "score plugins: total score of Score plugins could overflow",
    ),
}


@pytest.mark.parametrize(("given", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(given: Plugins, message: str) -> None:
    with pytest.raises(ExpansionError) as caught:
        expand(given, implements, scheduler_name="mine")
    assert str(caught.value) == message


def test_a_recorded_profile() -> None:
    """The recording profile-0: a default plugin disabled and enabled at score, with a new weight."""
    config = parse_profiles(
        [
            {
                "schedulerName": "default-scheduler",
                "plugins": {
                    "multiPoint": {"disabled": [{"name": "NodeResourcesBalancedAllocation"}]},
                    "score": {
                        "disabled": [{"name": "TaintToleration"}, {"name": "NodeResourcesFit"}],
                        "enabled": [{"name": "NodeResourcesFit", "weight": 4}],
                    },
                },
            }
        ]
    )
    scoring = {
        "TaintToleration",
        "NodeAffinity",
        "NodeResourcesFit",
        "NodeResourcesBalancedAllocation",
        "PodTopologySpread",
        "InterPodAffinity",
        "ImageLocality",
        "VolumeBinding",
        "DynamicResources",
    }
    single = {"queue_sort": "PrioritySort", "bind": "DefaultBinder"}

    def built_in(plugin: str, point: str) -> bool:
        return plugin in scoring if point == "score" else single.get(point) == plugin

    assert expand(config.profiles[0].plugins, built_in)["score"] == refs(
        "NodeAffinity:2 VolumeBinding:1 PodTopologySpread:2 InterPodAffinity:2 DynamicResources:2 "
        "ImageLocality:1 NodeResourcesFit:4"
    )
