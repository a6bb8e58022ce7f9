"""What strict clients are told."""

from __future__ import annotations

import json

import pytest

from moorage.apimachinery.schema.strictness import (
    NO_PROBLEMS,
    BodyProblems,
    duplicate_fields,
    json_patch_problems,
    json_problems,
)


def test_strict_error() -> None:
    problems = BodyProblems(duplicates=["metadata.name"])
    assert problems.strict_error(["spec.foo", "spec.containers[0].bar"]) == (
        'strict decoding error: unknown field "spec.foo", unknown field "spec.containers[0].bar", '
        'duplicate field "metadata.name"'
    )


def test_strict_error_of_yaml() -> None:
    problems = BodyProblems(
        yaml_lines=['line 2: key "a" already set in map', 'line 5: key "b" already set in map']
    )
    assert problems.strict_error(["c"]) == (
        'strict decoding error: yaml: unmarshal errors:\n  line 2: key "a" already set in map\n'
        '  line 5: key "b" already set in map, unknown field "c"'
    )


def test_warnings_are_reported_once_and_not_without_end() -> None:
    assert BodyProblems(duplicates=["b"]).warnings(["a", "a"]) == ['unknown field "a"', 'duplicate field "b"']
    assert BodyProblems(duplicates=["a", "a.b", "a[0].c", "ab"]).warnings(["a"]) == [
        'unknown field "a"',
        'duplicate field "ab"',
    ]
    assert len(NO_PROBLEMS.warnings([str(number) for number in range(500)])) == 100


@pytest.mark.parametrize("validation", ["Warn", "Strict"])
@pytest.mark.parametrize(
    "body", [b'{"a":1,"a":2}', b'{"a": {"b": "\\":"}, "a": [{"a": 1}]}', b'{\n "a" : 1, "a":2}']
)
def test_bodies_with_more_keys_than_they_mean(body: bytes, validation: str) -> None:
    value = json.loads(body)
    assert json_problems(body, value, validation, is_typed=True) == BodyProblems(duplicates=["a"])
    assert json_problems(body, value, validation, is_typed=False) == BodyProblems(['duplicate field "a"'])
    assert json_problems(body, value, "Ignore", is_typed=True) is NO_PROBLEMS


@pytest.mark.parametrize("body", [b'{"a":1,"b":"\\":"}', b'{"a" : [{"a": 1}, {"a": 2}]}', b"[]"])
def test_bodies_without_duplicates(body: bytes) -> None:
    for validation in ("Warn", "Strict"):
        assert json_problems(body, json.loads(body), validation, is_typed=True) is NO_PROBLEMS


def test_json_patches() -> None:
    body = b'[{"op":"add","path":"/a","value":1,"foo":2},{"op":"add","path":"/b","path":"/c","value":1},3]'
    assert json_patch_problems(body, json.loads(body), "Warn").first == [
        'json patch unknown field "[0].foo"',
        'json patch duplicate field "[1].path"',
    ]
    assert json_patch_problems(body, json.loads(body), "Ignore") is NO_PROBLEMS


@pytest.mark.parametrize(
    ("body", "duplicates"),
    [
        (b'{"a": 1, "b": {"a": 1}}', []),
        (b'{"a": 1, "a": 2}', ["a"]),
        (b'{"a": 1, "a": 2, "a": 3}', ["a"]),
        (b'{"spec": {"x": [{"n": 1}, {"n": 1, "n": 2}]}}', ["spec.x[1].n"]),
        (b'{"spec": {"x": [[{"n": 1, "n": 2}]]}}', ["spec.x[0][0].n"]),
        (b'{"a": {"b": 1, "b": 1}, "a": 1}', ["a.b", "a"]),
        (b"not json", []),
        (b"[" * 100_000, []),
    ],
)
def test_duplicates(body: bytes, duplicates: list[str]) -> None:
    assert duplicate_fields(body) == duplicates
