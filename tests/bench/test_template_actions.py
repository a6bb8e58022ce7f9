"""Go's template actions: conditions, ranges, variables and parameters; the index stays an expression."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moorage.api.decode import InputError
from moorage.api.quantity import parse_quantity
from moorage.bench.object_templates import Templates
from moorage.bench.template_actions import BadAction, expand_template
from moorage.client.kinds import NODE, POD
from tests.bench.files import MEASURED, NODES, EngineRun, Files, node, pod

EXPANDED: list[tuple[str, dict[str, Any], str]] = [
    ("a: {{ .Index }} of {{.Count}}", {}, "a: {{ .Index }} of {{ .Count }}"),
    ("a: {{.class}}-{{Mod .Index .classes}}", {"class": "gpu", "classes": 3}, "a: gpu-{{ Mod .Index 3 }}"),
    (
        "a: {{AddInt 7000 (Mod .Index (DivideInt .pods .nodes))}}",
        {"pods": 6, "nodes": 2},
        "a: {{ AddInt 7000 (Mod .Index (DivideInt 6 2)) }}",
    ),
    ("{{if .x}}yes{{else}}no{{end}}", {"x": 1}, "yes"),
    ("{{if .x}}yes{{else}}no{{end}}", {"x": 0}, "no"),
    ("{{if .x}}yes{{else}}no{{end}}", {}, "no"),
    ('{{if eq .x "a"}}A{{else if eq .x "b"}}B{{else}}C{{end}}', {"x": "b"}, "B"),
    ('{{if eq .x "a"}}A{{else if eq .x "b"}}B{{else}}C{{end}}', {"x": "c"}, "C"),
    ("{{if .x}}{{if .y}}both{{end}} x{{end}}!", {"x": True}, " x!"),
    ("{{$n := or .n 2}}{{range ($n | Int)}}<{{.}}>{{end}}", {}, "<0><1>"),
    ("{{$n := or .n 2}}{{range ($n | Int)}}<{{.}}>{{end}}", {"n": 1}, "<0>"),
    ("{{range $i := 3}}{{if ge $i 1}}{{$i}},{{end}}{{end}}", {}, "1,2,"),
    ("{{range $i, $v := .list}}{{$i}}{{$v}} {{end}}", {"list": ["a", "b"]}, "0a 1b "),
    ("{{range 2}}{{range 2}}x{{end}}y{{end}}", {}, "xxyxxy"),
    ("{{(or .list nil) | JSON}}", {"list": [{"a": 'x"'}]}, '[{"a":"x\\""}]'),
    ("{{(or .list nil) | JSON}}", {}, "null"),
    ("a\n{{- /* a comment */ -}}\n b {{- .x }}", {"x": 2.0}, "ab2"),
    ("{{.x}} {{not .x}} {{and 1 .y}}", {"x": True, "y": 2.5}, "true false 2.5"),
]


@pytest.mark.parametrize(("text", "params", "expected"), EXPANDED)
def test_actions_are_carried_out(text: str, params: dict[str, Any], expected: str) -> None:
    assert expand_template(text, params) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{{.missing}}", "it has no value"),
        ("{{if .x}}", "there is no end"),
        ("{{end}}", "nothing begins here that could end"),
        ("{{with .x}}{{end}}", "with is not supported"),
        ("{{if .Index}}{{end}}", "a condition cannot depend on the index"),
        ("{{range .Count}}{{end}}", "is neither a number nor a list"),
        ("{{or .Index 1}}", "or cannot depend on the index"),
        ("{{$gone}}", "there is no variable $gone"),
        ("{{(1}}", "a parenthesis is not closed"),
        ("{{1 2}}", "'2' is not understood here"),
        ("{{}}", "something is missing"),
        ("{{not 1 2}}", "not does not take these arguments"),
        ("{{range 1}}{{else}}{{end}}", "else is not supported here"),
        ("{{AddInt 1 %}}", "'%' is not understood here"),
    ],
)
def test_what_is_not_understood_is_named(text: str, reason: str) -> None:
    with pytest.raises(BadAction) as error:
        expand_template(text, {})
    assert reason in str(error.value)


def test_the_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text("a: {{.missing}}")
    with pytest.raises(InputError, match=r"t\.yaml: \{\{ \.missing \}\}: it has no value"):
        Templates(tmp_path).get("t.yaml")


def test_operations_have_template_parameters(files: Files) -> None:
    files.template(
        "node.yaml",
        node(
            metadata={"generateName": "node-", "labels": {"zone": "{{.zone}}"}},
            status={"capacity": {"cpu": "{{.cpu}}", "pods": "10"}},
        ),
    )
    files.template("pod.yaml", pod(labels={"size": "{{.size}}"}))
    harness = EngineRun(
        files,
        {**NODES, "templateParams": {"zone": "$zone|west", "cpu": "$cpu|1"}},
        {
            **MEASURED,
            "countMultiplierParam": "$groups",
            "signatureBatchSizeParam": "$batch",
            "templateParams": {"size": "large"},
        },
        workloads=[{"name": "tiny", "params": {"cpu": 4, "groups": 2, "batch": 4}}],
    )
    assert {each.labels["zone"] for each in harness.all(NODE)} == {"west"}
    assert {each.status.allocatable["cpu"] for each in harness.all(NODE)} == {parse_quantity("4")}
    labels = [each.labels for each in harness.all(POD)]
    assert [each["signature"] for each in labels].count("signature-label-0") == 4
    assert [each["signature"] for each in labels].count("signature-label-1") == 2
    assert {each["size"] for each in labels} == {"large"}
