"""Objects as tables and as bare metadata: the forms of meta.k8s.io that clients ask for with `as=`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from moorage.api.manifests import Manifest
from moorage.apimachinery.errors import bad_request
from moorage.apimachinery.fields import invalid
from moorage_cluster.apiserver.tables.base import Printer, TableColumn
from moorage_cluster.apiserver.tables.cells import at, mapping
from moorage_cluster.apiserver.tables.pods import PodPrinter, row_conditions

_GROUP: Final = "meta.k8s.io"
_INCLUDED: Final = ("Metadata", "None", "Object", "")
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"


def table(
    printer: Printer,
    items: Iterable[Manifest],
    now: datetime,
    list_metadata: Manifest | None = None,
    include_object: str = "Metadata",
    *,
    headers: bool = True,
    version: str = "v1",
) -> Manifest:
    """Objects as rows: a list's items, a single object, or a watch event's.

    `list_metadata` is the list's, or `{"resourceVersion": ...}` of a single object. `include_object` is what
    the request says (`Metadata`, `None`, `Object`; empty for the first), ApiError if that is none of these.
    Of the events of one watch only the first carries `headers`. `version` is that of meta.k8s.io.
    """
    if include_object not in _INCLUDED:
        problem = invalid("includeObject", include_object, "must be 'Metadata', 'Object', 'None', or empty")
        raise bad_request(f"Unable to convert to Table as requested: {problem}")
    finished = row_conditions if isinstance(printer, PodPrinter) else None
    rows = []
    for obj in items:
        row: Manifest = {"cells": printer.row(obj, now)}
        if finished and (conditions := finished(obj)):
            row["conditions"] = conditions
        row["object"] = _object_of_row(obj, include_object, version)
        rows.append(row)
    return {
        "kind": "Table",
        "apiVersion": f"{_GROUP}/{version}",
        "metadata": list_metadata or {},
        "columnDefinitions": [_header(column) for column in printer.columns] if headers else None,
        "rows": rows,
    }


def partial_metadata(obj: Manifest, version: str = "v1") -> Manifest:
    """An object's partial metadata; shares the metadata with the original."""
    return _partial(mapping(obj, "metadata"), version)


def partial_metadata_list(
    items: Iterable[Manifest], list_metadata: Manifest | None = None, version: str = "v1"
) -> Manifest:
    """A list of partial object metadata."""
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": f"{_GROUP}/{version}",
        "metadata": list_metadata or {},
        "items": [partial_metadata(obj, version) for obj in items],
    }


def _partial(metadata: Manifest, version: str) -> Manifest:
    return {"kind": "PartialObjectMetadata", "apiVersion": f"{_GROUP}/{version}", "metadata": metadata}


def _object_of_row(obj: Manifest, include_object: str, version: str) -> Manifest | None:
    if include_object == "Object":
        return obj
    if include_object == "None" and at(obj, "metadata", "annotations", _INITIAL_EVENTS_END) != "true":
        return None
    # Tables need names and labels only; managed fields would be most of the bytes.
    metadata = mapping(obj, "metadata")
    if "managedFields" in metadata:
        metadata = {key: value for key, value in metadata.items() if key != "managedFields"}
    return _partial(metadata, version)


def _header(column: TableColumn) -> Manifest:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }
