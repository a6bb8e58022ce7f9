from __future__ import annotations

from typing import Any

import pytest

from moorage.api.base import LabelSelector, NodeSelector, NodeSelectorTerm
from moorage.api.decode import convert
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.selectors import (
    NOTHING,
    SelectorError,
    label_selector,
    node_term,
    node_terms,
    required_nodes,
    requirement,
    valid_selector,
    written_selector,
)


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("operator", "values", "matching", "others"),
    [
        ("In", ["a", "b"], ["a", "b"], ["c", "", None]),
        ("NotIn", ["a"], ["b", "", None], ["a"]),
        ("Exists", [], ["a", ""], [None]),
        ("DoesNotExist", [], [None], ["a", ""]),
        ("Gt", ["4"], ["5", "10", "+7"], ["4", "3", "x", "", "4.5", None, "9223372036854775808"]),
        ("Lt", ["4"], ["3", "-9"], ["4", "5", "x", None]),
    ],
)
def test_operators(
    operator: str, values: list[str], matching: list[str | None], others: list[str | None]
) -> None:
    condition = requirement("key", operator, values)
    for value in matching + others:
        labels = {} if value is None else {"key": value}
        assert condition.matches(labels) == (value in matching), value


@pytest.mark.parametrize(
    ("operator", "values", "reason"),
    [
        ("In", [], "for 'in', 'notin' operators, values set can't be empty"),
        ("Exists", ["a"], "values set must be empty for exists and does not exist"),
        ("Gt", ["1", "2"], "exactly one value is required"),
        ("Lt", ["one"], "the value must be an integer"),
        ("Near", ["a"], "Unsupported value"),
        ("In", ["not valid!"], "a valid label must be an empty string or consist of"),
    ],
)
def test_a_requirement_that_makes_no_sense_is_refused(operator: str, values: list[str], reason: str) -> None:
    with pytest.raises(SelectorError, match=reason.replace("(", r"\(")):
        requirement("key", operator, values)


def test_no_selector_matches_nothing_and_an_empty_one_everything() -> None:
    assert label_selector(None) is NOTHING
    assert not NOTHING.matches({"a": "b"})
    assert not NOTHING.empty
    assert label_selector(LabelSelector()).empty
    assert label_selector(LabelSelector()).matches({})


def test_a_selector_as_it_is_written() -> None:
    assert written_selector(None) is NOTHING
    assert written_selector({}).empty
    selector = written_selector(
        {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "Exists"}]}
    )
    assert selector.matches({"app": "web", "tier": "front"})
    assert not selector.matches({"app": "web"})


def test_a_written_selector_that_is_wrong_is_refused_or_matches_nothing() -> None:
    wrong = {"matchExpressions": [{"key": "size", "operator": "Gt", "values": ["1"]}]}
    with pytest.raises(SelectorError):
        written_selector(wrong)
    assert valid_selector(wrong) is NOTHING


def test_labels_and_expressions_must_all_match() -> None:
    selector = label_selector(
        convert(
            {"matchLabels": {"app": "web"}, "matchExpressions": [expression("tier", "NotIn", "test")]},
            LabelSelector,
        )
    )
    assert selector.matches({"app": "web"})
    assert selector.matches({"app": "web", "tier": "prod"})
    assert not selector.matches({"app": "web", "tier": "test"})
    assert not selector.matches({"tier": "prod"})


NODE = convert({"kind": "Node", "metadata": {"name": "n1", "labels": {"disk": "ssd", "gen": "5"}}}, Node)


@pytest.mark.parametrize(
    ("term", "matches"),
    [
        ({"matchExpressions": [expression("disk", "In", "ssd")]}, True),
        ({"matchExpressions": [expression("disk", "In", "ssd"), expression("gen", "Gt", "5")]}, False),
        ({"matchFields": [expression("metadata.name", "In", "n1")]}, True),
        ({"matchFields": [expression("metadata.name", "NotIn", "n1")]}, False),
        ({"matchFields": [expression("spec.other", "NotIn", "x")]}, True),
        ({}, False),
        ({"matchFields": [expression("metadata.name", "In", "n1", "n2")]}, False),
        ({"matchExpressions": [expression("disk", "Gt", "many")]}, False),
    ],
)
def test_node_terms_and_those_that_match_no_node_because_they_are_empty_or_malformed(
    term: dict[str, Any], matches: bool
) -> None:
    terms = node_terms(convert({"nodeSelectorTerms": [term]}, NodeSelector))
    assert any(each.matches(NODE) for each in terms) == matches


def test_a_malformed_term_says_where() -> None:
    term = convert({"matchExpressions": [expression("disk", "In")]}, NodeSelectorTerm)
    with pytest.raises(SelectorError) as error:
        node_term(term, "preference")
    assert error.value.path == "preference.matchExpressions[0].values"


def test_node_selector_and_affinity_must_both_match() -> None:
    pod = convert(
        {
            "kind": "Pod",
            "spec": {
                "nodeSelector": {"disk": "ssd"},
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {"matchExpressions": [expression("gen", "Lt", "3")]},
                                {"matchExpressions": [expression("gen", "Gt", "4")]},
                            ]
                        }
                    }
                },
            },
        },
        Pod,
    )
    assert required_nodes(pod).matches(NODE)
    assert not required_nodes(Pod()).labels
    assert required_nodes(Pod()).anything
