"""Parts of the hints that several plugins give: which pods an event can concern."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.selectors import label_selector
from moorage.plugins.hint_helpers import event_labels, is_placed, selector_labels, uses_claim
from tests.builders import expression, make, make_pod

Labels = set[tuple[str, str]]

SELECTORS: dict[str, tuple[list[Any], Labels | None]] = {
    "no selector": ([], set()),
    "a label must have a value": ([{"matchLabels": {"app": "web"}}], {("app", "web")}),
    "a label must have one of some values": (
        [{"matchExpressions": [expression("app", "In", "web", "db")]}],
        {("app", "web"), ("app", "db")},
    ),
    "of several selectors, the labels of each": (
        [{"matchLabels": {"app": "web"}}, {"matchLabels": {"tier": "x"}}],
        {("app", "web"), ("tier", "x")},
    ),
    "a selector that names no value matches any label": (
        [{"matchLabels": {"app": "web"}}, {"matchExpressions": [expression("tier", "Exists")]}],
        None,
    ),
    "no selector at all matches no pod": ([None], set()),
}


@pytest.mark.parametrize(("selectors", "labels"), SELECTORS.values(), ids=SELECTORS.keys())
def test_labels_of_selectors(selectors: list[Any], labels: Labels | None) -> None:
    read = [None if each is None else _selector(each) for each in selectors]
    assert selector_labels(label_selector(each) for each in read) == labels


def _selector(manifest: dict[str, Any]) -> Any:
    pod: Any = make_pod("p", topology_spread_constraints=[{"labelSelector": manifest}])
    return pod.spec.topology_spread_constraints[0].label_selector


def test_an_event_has_the_labels_before_and_after() -> None:
    old, new = make_pod("p", labels={"a": "1"}), make_pod("p", labels={"a": "2"})
    assert event_labels(old, new) == {("a", "1"), ("a", "2")}
    assert event_labels(None, new) == {("a", "2")}


PLACES: dict[str, tuple[dict[str, Any], bool]] = {
    "a waiting pod": ({}, False),
    "a pod on a node": ({"on": "n"}, True),
    "a nominated pod": ({"status": {"nominatedNodeName": "n"}}, True),
}


@pytest.mark.parametrize(("fields", "placed"), PLACES.values(), ids=PLACES.keys())
def test_which_pods_take_room(fields: dict[str, Any], placed: bool) -> None:
    assert is_placed(make_pod("p", **fields)) is placed


CLAIMS: dict[str, tuple[dict[str, Any], str, bool, bool]] = {
    "a claim by its name": ({"persistentVolumeClaim": {"claimName": "c"}}, "c", False, True),
    "another claim": ({"persistentVolumeClaim": {"claimName": "c"}}, "d", False, False),
    "the claim of an ephemeral volume": ({"ephemeral": {"volumeClaimTemplate": {}}}, "p-v", True, True),
    "ephemeral volumes may not count": ({"ephemeral": {"volumeClaimTemplate": {}}}, "p-v", False, False),
}


@pytest.mark.parametrize(("source", "name", "ephemeral", "uses"), CLAIMS.values(), ids=CLAIMS.keys())
def test_which_pods_use_a_claim(source: dict[str, Any], name: str, ephemeral: bool, uses: bool) -> None:
    claim: Any = make(
        {"kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"}, "spec": {}}
    )
    pod = make_pod("p", volumes=[{"name": "v", **source}])
    assert uses_claim(pod, claim, ephemeral=ephemeral) is uses
