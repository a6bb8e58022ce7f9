"""The alert rules and the dashboard: metrics and labels that exist, panels with a place, explained alerts."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any

import pytest
import yaml

from moorage.emulation.kubernetes_version import V1_36, V1_37
from moorage.services.metric_table import OWN_METRICS, metrics_of
from tests.deploy.monitoring import ALERTS, RULES, SOURCE, TARGET_LABELS, alerts, dashboard, expressions
from tests.deploy.promql import Named, PromQLError, named
from tests.test_documents import anchors

PROCESS = {
    "process_cpu_seconds_total",
    "process_max_fds",
    "process_open_fds",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
}
"""Metrics of every process, from the client library."""


def declared() -> dict[str, set[str]]:
    """The labels of each series that is served by default in both versions."""
    found: dict[str, set[str]] = {name: set() for name in PROCESS}
    both = metrics_of(V1_36).keys() & metrics_of(V1_37).keys()
    for name, spec in {**metrics_of(V1_37), **OWN_METRICS}.items():
        if name not in both | OWN_METRICS.keys():
            continue
        if spec.kind == "histogram":
            found[f"{name}_bucket"] = {*spec.labels, "le"}
            found[f"{name}_sum"] = found[f"{name}_count"] = {*spec.labels}
        else:
            found[name] = {*spec.labels}
    return found


DECLARED = declared()
EXPRESSIONS = expressions()


@pytest.mark.parametrize("where", EXPRESSIONS, ids=str)
def test_every_metric_and_label_is_declared(where: str) -> None:
    found = named(EXPRESSIONS[where])
    assert found.selected
    for metric, labels in found.selected:
        assert labels <= DECLARED[metric] | TARGET_LABELS, metric
    assert found.grouped <= {label for metric in found.metrics for label in DECLARED[metric]} | TARGET_LABELS


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("up", Named([("up", frozenset())], frozenset())),
        ('sum by (job, le) (rate(a_bucket{x="b{c}", y!~"d"}[5m])) > 1e-3',
         Named([("a_bucket", frozenset("xy"))], frozenset({"job", "le"}))),
        ("max(a) by (b) unless on (c) d offset 1h",
         Named([("a", frozenset()), ("d", frozenset())], frozenset("bc"))),
        ("max_over_time((sum(a))[1h:1m])", Named([("a", frozenset())], frozenset())),
    ],
)  # fmt: skip
def test_metrics_and_labels_of_an_expression_are_found(expression: str, says: Named) -> None:
    assert named(expression) == says


@pytest.mark.parametrize("expression", ["rates(a[5m])", "a ? b", "sum by job (a)"])
def test_what_is_no_promql_is_refused(expression: str) -> None:
    with pytest.raises(PromQLError):
        named(expression)


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: rule["alert"])
def test_an_alert_says_what_it_means_and_leads_to_what_to_do(rule: dict[str, Any]) -> None:
    annotations = rule["annotations"]
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert annotations.keys() == {"summary", "description", "runbook_url"}
    page, _, anchor = annotations["runbook_url"].partition("#")
    assert page == f"{SOURCE}/blob/main/docs/how-to/alerts.md"
    assert anchor == rule["alert"].lower()
    assert anchor in anchors(ALERTS)
    used = {label for text in annotations.values() for label in re.findall(r"\$labels\.(\w+)", text)}
    found = named(rule["expr"])
    assert used <= found.grouped | {label for metric in found.metrics for label in DECLARED[metric]} | (
        TARGET_LABELS
    )


def test_every_alert_has_a_case_in_which_it_fires() -> None:
    cases = yaml.safe_load((RULES.parent / "tests" / "rules.yaml").read_text())["tests"]
    samples = [
        sample["labels"]
        for case in cases
        for query in case["promql_expr_test"]
        for sample in query.get("exp_samples", ())
    ]
    fired = {name for sample in samples for name in re.findall(r'alertname="(\w+)"', sample)}
    assert fired == {rule["alert"] for rule in alerts()}
    assert len(alerts()) == len(fired)


def test_panels_have_ids_and_places_of_their_own() -> None:
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] >= 0
        assert place["x"] + place["w"] <= 24
    for one, other in combinations([panel["gridPos"] for panel in panels], 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or above, (one, other)


def test_panels_are_of_kinds_that_grafana_has_and_say_what_they_show() -> None:
    panels = dashboard()["panels"]
    assert {panel["type"] for panel in panels} == {"row", "stat", "timeseries"}
    shown = [panel for panel in panels if panel["type"] != "row"]
    assert len({panel["title"] for panel in shown}) == len(shown)
    for panel in shown:
        assert panel["title"]
        assert panel["description"].endswith(".")
        references = [target["refId"] for target in panel["targets"]]
        assert len(set(references)) == len(references) > 0
        assert all(target["legendFormat"] for target in panel["targets"])


def test_every_query_has_the_chosen_source_job_and_replicas() -> None:
    variables = {each["name"]: each for each in dashboard()["templating"]["list"]}
    assert variables.keys() == {"datasource", "job", "instance", "profile"}
    assert "__inputs" not in dashboard(), "a file that is provisioned asks for nothing"
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", ()):
            assert target["datasource"]["uid"] == panel["datasource"]["uid"] == "${datasource}"
            for _, labels in named(target["expr"]).selected:
                assert labels >= TARGET_LABELS
            used = set(re.findall(r"\$(\w+)", target["expr"])) - {"__rate_interval"}
            assert used <= variables.keys()


def test_a_legend_names_only_what_a_query_groups_by() -> None:
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", ()):
            names = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            found = named(target["expr"])
            assert names <= (found.grouped or TARGET_LABELS), panel["title"]
