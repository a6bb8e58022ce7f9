"""What strict clients are told."""

from __future__ import annotations

import pytest

from moorage.apiserver.schema import duplicate_fields, strict_decoding_error, strictness_problems


def test_strict_error() -> None:
    error = strict_decoding_error("Pod", "v1", ["spec.foo", "spec.containers[0].bar"], ["metadata.name"])
    assert error.code == 400
    assert error.message == (
        'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.foo", '
        'unknown field "spec.containers[0].bar", duplicate field "metadata.name"'
    )


def test_warnings_are_said_once_and_not_without_end() -> None:
    assert strictness_problems(["a", "a"], ["b"]) == ['unknown field "a"', 'duplicate field "b"']
    assert strictness_problems(["a"], ["a", "a.b", "a[0].c", "ab"]) == [
        'unknown field "a"',
        'duplicate field "ab"',
    ]
    assert len(strictness_problems([str(number) for number in range(500)], [])) == 100


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
