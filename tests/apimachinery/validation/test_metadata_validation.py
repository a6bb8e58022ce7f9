from __future__ import annotations

from typing import Any

import pytest

from moorage.api.manifests import Manifest
from moorage.api.names import dns_label_problems
from moorage.apimachinery.validation.metadata import validate_metadata, validate_metadata_update

_NAME = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used "
    "for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "u"}


def meta(**fields: Any) -> Manifest:
    return {"name": "web", "namespace": "default", "uid": "u-1", "resourceVersion": "7", **fields}


REFUSED: dict[str, tuple[Manifest, list[str]]] = {
    "no name": ({}, ["metadata.name: Required value: name or generateName is required"]),
    "label key": (
        meta(labels={"a b": "c"}),
        [f'metadata.labels: Invalid value: "a b": name part {_NAME}'],
    ),
    "label key with two slashes": (
        meta(labels={"a/b/c": ""}),
        [
            f'metadata.labels: Invalid value: "a/b/c": a valid label key {_NAME} with an optional DNS '
            "subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ],
    ),
    "long label key": (
        meta(labels={"k" * 64: ""}),
        [f'metadata.labels: Invalid value: "{"k" * 64}": name part must be no more than 63 bytes'],
    ),
    "label value": (meta(labels={"a": "b c"}), [f'metadata.labels: Invalid value: "b c": {_VALUE}']),
    "long label value": (
        meta(labels={"a": "v" * 64}),
        [f'metadata.labels: Invalid value: "{"v" * 64}": must be no more than 63 bytes'],
    ),
    "annotation key": (
        meta(annotations={"/a": "b"}),
        ['metadata.annotations: Invalid value: "/a": prefix part must be non-empty'],
    ),
    "long annotations": (
        meta(annotations={"a": "x" * 200_000, "b": "y" * 100_000}),
        ["metadata.annotations: Too long: may not be more than 262144 bytes"],
    ),
    "annotations long in bytes only": (
        meta(annotations={"a": "ü" * 131_072}),
        ["metadata.annotations: Too long: may not be more than 262144 bytes"],
    ),
    "owner without a name": (
        meta(ownerReferences=[{**OWNER, "name": ""}]),
        ['metadata.ownerReferences.name: Invalid value: "": must not be empty'],
    ),
    "owner without a version": (
        meta(ownerReferences=[{**OWNER, "apiVersion": "apps/"}]),
        ['metadata.ownerReferences.apiVersion: Invalid value: "apps/": version must not be empty'],
    ),
    "finalizer": (
        meta(finalizers=["a b"]),
        [f'metadata.finalizers: Invalid value: "a b": name part {_NAME}'],
    ),
    "finalizers that contradict": (
        meta(finalizers=["orphan", "foregroundDeletion"]),
        [
            'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and '
            "foregroundDeletion cannot be both set"
        ],
    ),
    "managed by an unknown operation": (
        meta(managedFields=[{"operation": "Guess"}]),
        ['metadata.managedFields[0].operation: Invalid value: "Guess": must be `Apply` or `Update`'],
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_the_message(name: str) -> None:
    given, expected = REFUSED[name]
    assert [str(error) for error in validate_metadata(given)] == expected


def test_two_controllers_are_one_too_many() -> None:
    owners = [{**OWNER, "controller": True}, {**OWNER, "name": "other", "controller": True}]
    (error,) = validate_metadata(meta(ownerReferences=owners))
    assert error.detail == (
        "Only one reference can have Controller set to true. "
        'Found "true" in references for ReplicaSet/rs and ReplicaSet/other'
    )


@pytest.mark.parametrize(
    "given",
    [
        meta(),
        meta(generateName="web-"),
        meta(labels={"example.com/a": "", "b": "x"}, annotations={"UPPER.example/Key": "any thing"}),
        meta(ownerReferences=[OWNER], finalizers=["example.com/f", "orphan"]),
        meta(annotations={"a": "x" * 262_143}),
    ],
)
def test_accepted(given: Manifest) -> None:
    assert validate_metadata(given) == []


def test_names_follow_the_kind_and_prefixes_may_end_in_a_dash() -> None:
    given = meta(name="a.b", generateName="web-")
    (error,) = validate_metadata(given, name_problems=dns_label_problems)
    assert str(error) == 'metadata.name: Invalid value: "a.b": must not contain dots'


CHANGES: dict[str, tuple[Manifest, Manifest, list[str]]] = {
    "nothing": (meta(), meta(), []),
    "labels": (meta(labels={"a": "b"}), meta(), []),
    "no version": (
        meta(resourceVersion=""),
        meta(),
        ['metadata.resourceVersion: Invalid value: "": must be specified for an update'],
    ),
    "name": (meta(name="b"), meta(), ['metadata.name: Invalid value: "b": field is immutable']),
    "uid": (meta(uid=""), meta(), ['metadata.uid: Invalid value: "": field is immutable']),
    "deletion": (
        meta(deletionTimestamp="2026-01-01T00:00:00Z"),
        meta(),
        ['metadata.deletionTimestamp: Invalid value: "2026-01-01T00:00:00Z": field is immutable'],
    ),
    "no deletion": (
        meta(),
        meta(deletionGracePeriodSeconds=30),
        ["metadata.deletionGracePeriodSeconds: Invalid value: null: field is immutable"],
    ),
    "generation": (
        meta(generation=1),
        meta(generation=2),
        ["metadata.generation: Invalid value: 1: must not be decremented"],
    ),
    "finalizer of a dying object": (
        meta(deletionTimestamp="t", finalizers=["b", "a", "old"]),
        meta(deletionTimestamp="t", finalizers=["old"]),
        [
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
            'found new finalizers []string{"a", "b"}'
        ],
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes(name: str) -> None:
    new, old, expected = CHANGES[name]
    assert [str(error) for error in validate_metadata_update(new, old)] == expected
