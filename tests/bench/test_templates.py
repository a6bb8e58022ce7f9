from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.api.decode import InputError
from moorage.bench.object_templates import Template, Templates


def value(expression: str, index: int = 7, count: int = 20) -> Any:
    return Template(f"value: {expression}", "t.yaml").object(index, count)["value"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("{{ .Index }}", 7),
        ("{{.Count}}", 20),
        ("name-{{ .Index }}-of-{{ .Count }}", "name-7-of-20"),
        ("8{{ Mod .Index 3 }}", 81),
        ("{{ DivideInt 30000 .Count }}Mi", "1500Mi"),
        ("{{ DivideInt .Index 2 }}", 3),
        ("{{ DivideFloat .Index 2 }}", 3.5),
        ("{{ DivideFloat .Count 2 }}", 10),
        ("{{ AddInt 1 .Index 2.5 }}", 10),
        ("{{ AddFloat 1 0.5 }}", 1.5),
        ("{{ SubtractInt .Index .Count }}", -13),
        ("{{ SubtractFloat 1.5 1 }}", 0.5),
        ("{{ MultiplyInt 2 .Index 3 }}", 42),
        ("{{ MultiplyFloat 2 1.25 }}", 2.5),
        ("{{ Mod (SubtractInt .Index .Count) 5 }}", -3),
        ("{{ AddInt 20 (Mod .Index 5) }}m", "22m"),
        ("a   {{- .Index -}}   b", "a7b"),
        ("'{{ .Index }}'", "7"),
        ("plain", "plain"),
    ],
)
def test_expressions_are_evaluated_as_go_does(expression: str, expected: Any) -> None:
    assert value(expression) == expected


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("{{ if .Index }}x{{ end }}", "'if' is not supported"),
        ("{{ .Name }}", "there is no .Name; there are .Index and .Count"),
        ("{{ Mod .Index }}", "Mod does not take 1 arguments"),
        ("{{ Mod .Index 0 }}", "division by zero"),
        ("{{ DivideInt .Index 0 }}", "division by zero"),
        ("{{ AddInt (Mod .Index 2 }}", "a parenthesis is not closed"),
        ("{{ .Index | printf }}", "'|' is not understood here"),
        ("{{ Sqrt .Index }}", "'Sqrt' is not supported"),
        ("{{ }}", "something is missing"),
    ],
)
def test_what_is_not_understood_is_named(expression: str, reason: str) -> None:
    with pytest.raises(InputError) as error:
        value(expression)
    assert str(error.value).startswith("t.yaml: ")
    assert reason in str(error.value)


def test_fields_are_read_in_any_case_and_users_words_are_left_alone() -> None:
    text = """
    Kind: Pod
    metadata: {labels: {App: x}}
    spec:
      TopologySpreadConstraints:
      - {NodeTaintsPolicy: Honor, labelSelector: {MatchLabels: {App: x}}}
      nodeSelector: {Disk: fast}
      containers: [{resources: {requests: {Example.com/x: 1}}}]
    """
    assert Template(text, "t.yaml").object() == {
        "kind": "Pod",
        "metadata": {"labels": {"App": "x"}},
        "spec": {
            "topologySpreadConstraints": [
                {"nodeTaintsPolicy": "Honor", "labelSelector": {"matchLabels": {"App": "x"}}}
            ],
            "nodeSelector": {"Disk": "fast"},
            "containers": [{"resources": {"requests": {"Example.com/x": 1}}}],
        },
    }


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "expected one object"),
        ("[1]", "expected one object"),
        ("a: 1\n---\nb: 2", "expected one object"),
        ("a: [", "not YAML"),
        ("a: \ue0009\ue001", r"the characters U\+E000 and U\+E001 are not supported"),
    ],
)
def test_a_template_is_one_object(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "t.yaml").write_text(content)
    with pytest.raises(InputError, match=reason):
        Templates(tmp_path).get("t.yaml")


def test_a_template_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.yaml: No such file"):
        Templates(tmp_path).get("gone.yaml")


@pytest.mark.parametrize(
    "text",
    [
        "a: 0{{ .Index }}",
        "a: 1e{{ .Index }}",
        "a: -{{ .Index }}",
        "a: {{ .Index }}:{{ .Count }}",
        "a: [{{ .Index }}, '{{ .Index }}', {{ .Index }}.5, {x: {{ .Count }}}]",
        "labels: {x-{{ .Index }}: 0{{ .Index }}, {{ .Index }}: y, 3: z}",
        "a: &anchor v{{ .Index }}\nb: *anchor",
        "a: |\n  {{ .Index }}\n  of {{ .Count }}",
        "a: {{ .Index }} # {{ .Count }}",
        '{"a": {{ .Index }}, "b": "{{ .Index }}", "\\u0041": "\\/"}',
    ],
)
@pytest.mark.parametrize("index", [0, 7, 12])
def test_filling_in_equals_reading_the_text(text: str, index: int) -> None:
    written = text.replace("{{ .Index }}", str(index)).replace("{{ .Count }}", "20")
    assert repr(Template(text, "t.yaml").object(index, 20)) == repr(Template(written, "t.yaml").object())


def test_a_file_is_parsed_once_however_many_objects_it_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    load_all = yaml.load_all

    def counting(text: str, loader: Any) -> Any:
        parsed.append(text)
        return load_all(text, loader)

    monkeypatch.setattr(yaml, "load_all", counting)
    template = Template("name: node-{{ .Index }}\nspec: {fixed: [1, 2]}", "t.yaml")
    objects = [template.object(index, 5000) for index in range(5000)]
    assert [each["name"] for each in objects] == [f"node-{index}" for index in range(5000)]
    assert len(parsed) == 1
