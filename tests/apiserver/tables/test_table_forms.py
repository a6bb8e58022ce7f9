from __future__ import annotations

from typing import Any

import pytest

from moorage.apimachinery.errors import ApiError
from moorage_cluster.apiserver.tables.base import NAME_AND_AGE
from moorage_cluster.apiserver.tables.registry import printer_for
from moorage_cluster.apiserver.tables.table import partial_metadata, partial_metadata_list, table
from tests.apiserver.tables.table_rows import NOW, an_object

OBJECT = an_object(_metadata={"uid": "u", "managedFields": [{"manager": "kubectl"}]}, spec={"a": 1})
LIST_METADATA = {"resourceVersion": "7", "continue": "next", "remainingItemCount": 3}


def pod(phase: str) -> dict[str, Any]:
    return an_object(phase.lower(), status={"phase": phase})


def test_a_table() -> None:
    made = table(NAME_AND_AGE, [OBJECT], NOW, LIST_METADATA)
    assert made["kind"] == "Table"
    assert made["apiVersion"] == "meta.k8s.io/v1"
    assert made["metadata"] == LIST_METADATA
    assert [column["name"] for column in made["columnDefinitions"]] == ["Name", "Age"]
    assert set(made["columnDefinitions"][0]) == {"name", "type", "format", "description", "priority"}
    [row] = made["rows"]
    assert row["cells"] == ["x", "5m"]
    assert row["object"] == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"name": "x", "uid": "u", "creationTimestamp": "2026-03-14T11:55:00Z"},
    }


def test_a_table_leaves_the_objects_as_they_are() -> None:
    table(NAME_AND_AGE, [OBJECT], NOW)
    assert OBJECT["metadata"]["managedFields"] == [{"manager": "kubectl"}]


def test_nothing_in_a_table() -> None:
    made = table(NAME_AND_AGE, [], NOW, {"resourceVersion": "7"})
    assert made["rows"] == []
    assert len(made["columnDefinitions"]) == 2


def test_later_events_of_a_watch_have_no_headers() -> None:
    assert table(NAME_AND_AGE, [OBJECT], NOW, headers=False)["columnDefinitions"] is None


def test_whole_objects() -> None:
    assert table(NAME_AND_AGE, [OBJECT], NOW, {}, "Object")["rows"][0]["object"] is OBJECT


def test_no_objects() -> None:
    assert table(NAME_AND_AGE, [OBJECT], NOW, {}, "None")["rows"][0]["object"] is None


def test_the_end_of_initial_events_is_never_hidden() -> None:
    bookmark = {"metadata": {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}}}
    [row] = table(NAME_AND_AGE, [bookmark], NOW, {}, "None")["rows"]
    assert row["object"]["metadata"] == bookmark["metadata"]


@pytest.mark.parametrize("asked", ["", "Metadata"])
def test_metadata_is_what_is_included_unasked(asked: str) -> None:
    [row] = table(NAME_AND_AGE, [OBJECT], NOW, {}, asked)["rows"]
    assert row["object"]["kind"] == "PartialObjectMetadata"


def test_something_else_cannot_be_included() -> None:
    with pytest.raises(ApiError) as caught:
        table(NAME_AND_AGE, [], NOW, {}, "All")
    assert caught.value.code == 400
    assert caught.value.message == (
        'Unable to convert to Table as requested: includeObject: Invalid value: "All": '
        "must be 'Metadata', 'Object', 'None', or empty"
    )


def test_only_rows_of_finished_pods_have_conditions() -> None:
    pods = table(printer_for("", "Pod"), [pod("Running"), pod("Failed")], NOW)["rows"]
    assert ["conditions" in row for row in pods] == [False, True]
    assert pods[1]["conditions"][0]["reason"] == "Failed"
    [other] = table(NAME_AND_AGE, [pod("Failed")], NOW)["rows"]
    assert "conditions" not in other


def test_partial_metadata() -> None:
    assert partial_metadata(OBJECT) == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": OBJECT["metadata"],
    }


def test_a_list_of_partial_metadata() -> None:
    made = partial_metadata_list([OBJECT], LIST_METADATA)
    assert made == {
        "kind": "PartialObjectMetadataList",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": LIST_METADATA,
        "items": [partial_metadata(OBJECT)],
    }
