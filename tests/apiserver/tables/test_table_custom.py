from __future__ import annotations

from typing import Any

import pytest

from moorage_cluster.apiserver.tables.base import TableColumn
from moorage_cluster.apiserver.tables.custom import columns_of_custom
from moorage_cluster.apiserver.tables.jsonpath import JsonPath, PathError
from tests.apiserver.tables.table_rows import NOW, an_object, before, cells

WIDGET = an_object(
    "w",
    {"labels": {"app": "web", "example.com/tier": "gold"}, "annotations": {"a.b/c": "dotted"}},
    spec={
        "size": 3,
        "ratio": 2.5,
        "whole": 4.0,
        "on": True,
        "text": "plain",
        "nothing": None,
        "list": ["a", "b", "c"],
        "map": {"z": 1, "a": "<&>"},
        "servers": [{"name": "one", "port": 80, "hosts": ["h1", "h2"]}, {"name": "two", "port": 443}],
        "empty": [],
    },
    status={
        "conditions": [
            {"type": "Synced", "status": "False"},
            {"type": "Ready", "status": "True", "reason": "AllGood"},
        ],
        "since": before(hours=26),
        "junk": "yesterday",
    },
)


def shown_as(kind: str, path: str) -> Any:
    printer = columns_of_custom([{"name": "C", "type": kind, "jsonPath": path}])
    return cells(printer, WIDGET)["C"]


PATHS: dict[str, list[Any]] = {
    ".spec.size": [3],
    ".spec.missing": [],
    ".spec.text.deeper": [],
    ".spec.nothing": [None],
    ".spec.nothing.deeper": [],
    ".spec['text']": ["plain"],
    ".metadata.labels.example\\.com/tier": ["gold"],
    ".metadata.labels['example\\.com/tier']": ["gold"],
    ".metadata.labels['example.com/tier']": [],
    ".metadata.annotations.a\\.b/c": ["dotted"],
    ".spec.list[0]": ["a"],
    ".spec.list[-1]": ["c"],
    ".spec.list[3]": [],
    ".spec.list[-4]": [],
    ".spec.list[*]": ["a", "b", "c"],
    ".spec.list[:]": ["a", "b", "c"],
    ".spec.list[1:]": ["b", "c"],
    ".spec.list[:2]": ["a", "b"],
    ".spec.list[1:-1]": ["b"],
    ".spec.list[0:9]": [],
    ".spec.list[2:1]": [],
    ".spec.list[1:1]": [],
    ".spec.list[0:3:2]": ["a", "c"],
    ".spec.list[0,2]": ["a", "c"],
    ".spec.list[0:3:0]": [],
    ".spec['size','text']": [3, "plain"],
    ".spec.empty[0]": [],
    ".spec.empty[*]": [],
    ".spec.text[0]": [],
    ".spec.missing[0]": [],
    ".spec.nothing[0]": [],
    ".spec.servers[*].name": ["one", "two"],
    ".spec.servers[*].hosts[0]": ["h1"],
    ".spec.servers[0].hosts[*]": ["h1", "h2"],
    ".spec.map.*": [1, "<&>"],
    "..name": ["w", "one", "two"],
    '.status.conditions[?(@.type=="Ready")].status': ["True"],
    ".status.conditions[?(@.type=='Ready')].reason": ["AllGood"],
    '.status.conditions[?(@.type == "Ready")].status': ["True"],
    '.status.conditions[?(@.type!="Ready")].status': ["False"],
    '.status.conditions[?(@.type=="Gone")].status': [],
    ".status.conditions[?(@.reason)].type": ["Ready"],
    ".spec.servers[?(@.port>100)].name": ["two"],
    ".spec.servers[?(@.port>=80)].name": ["one", "two"],
    ".spec.servers[?(@.port<443)].name": ["one"],
    ".spec.servers[?(@.port<=79)].name": [],
    ".spec.servers[?(@.port==80.0)].name": [],
    '.spec.servers[?(@.port=="80")].name': [],
    ".spec.servers[?(@.port=80)].name": [],
    '.spec.list[?(@=="b")]': ["b"],
    ".spec[?(@.on==true)].size": [],
    ".spec.size range": [],
    ".": [],
}


@pytest.mark.parametrize(("path", "expected"), PATHS.items(), ids=PATHS)
def test_path(path: str, expected: list[Any]) -> None:
    found = JsonPath(path).find(WIDGET)
    assert found == expected
    assert [type(each) for each in found] == [type(each) for each in expected]


@pytest.mark.parametrize(
    "path",
    [
        ".spec[",
        ".spec[a]",
        ".spec[-]",
        ".a[?(@.x=='y']",
        '.a[?(@.x=="y" && @.z=="w")]',
        ".a |x",
        ".a,.b",
        ".a}",
    ],
)
def test_wrong_path(path: str) -> None:
    with pytest.raises(PathError):
        JsonPath(path)


CELLS: dict[tuple[str, str], Any] = {
    ("string", ".spec.text"): "plain",
    ("string", ".spec.size"): "3",
    ("string", ".spec.ratio"): "2.5",
    ("string", ".spec.whole"): "4",
    ("string", ".spec.on"): "true",
    ("string", ".spec.nothing"): "<no value>",
    ("string", ".spec.missing"): None,
    ("string", ".spec.list"): '["a","b","c"]',
    ("string", ".spec.list[*]"): "a",
    ("string", ".spec.map"): '{"a":"\\u003c\\u0026\\u003e","z":1}',
    ("integer", ".spec.size"): 3,
    ("integer", ".spec.ratio"): 2,
    ("integer", ".spec.on"): None,
    ("integer", ".spec.text"): None,
    ("integer", ".spec.nothing"): None,
    ("number", ".spec.ratio"): 2.5,
    ("number", ".spec.size"): 3,
    ("number", ".spec.text"): None,
    ("boolean", ".spec.on"): True,
    ("boolean", ".spec.size"): None,
    ("date", ".metadata.creationTimestamp"): "5m",
    ("date", ".status.since"): "26h",
    ("date", ".status.junk"): "<invalid>",
    ("date", ".spec.size"): None,
    ("date", ".status.missing"): None,
    ("colour", ".spec.text"): None,
}


@pytest.mark.parametrize(("kind", "path"), CELLS)
def test_cell(kind: str, path: str) -> None:
    cell = shown_as(kind, path)
    assert cell == CELLS[kind, path]
    assert type(cell) is type(CELLS[kind, path])


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        ("", "<unknown>"),
        ("2026-03-14T11:59:00.123456789Z", "59s"),
        ("2026-03-14T13:59:00+02:00", "60s"),
        ("2026-03-14", "<invalid>"),
        ("2026-13-14T00:00:00Z", "<invalid>"),
        ("2027-01-01T00:00:00Z", "<invalid>"),
    ],
)
def test_date(moment: str, expected: str) -> None:
    printer = columns_of_custom([{"name": "Since", "type": "date", "jsonPath": ".since"}])
    assert cells(printer, an_object(since=moment))["Since"] == expected


@pytest.mark.parametrize("columns", [None, []])
def test_without_columns_there_are_name_and_age(columns: list[dict[str, Any]] | None) -> None:
    printer = columns_of_custom(columns)
    assert [(column.name, column.type) for column in printer.columns] == [("Name", "string"), ("Age", "date")]
    assert printer.row(WIDGET, NOW) == ["w", "5m"]


def test_columns_are_as_defined_and_no_age_is_added() -> None:
    printer = columns_of_custom(
        [
            {"name": "Size", "type": "integer", "format": "int32", "priority": 1, "jsonPath": ".spec.size"},
            {"name": "On", "type": "boolean", "description": "Whether it is on.", "jsonPath": ".spec.on"},
        ]
    )
    described = "Custom resource definition column (in JSONPath format): .spec.size"
    assert printer.columns[1:] == (
        TableColumn("Size", "integer", "int32", described, 1),
        TableColumn("On", "boolean", "", "Whether it is on.", 0),
    )
    assert printer.row(WIDGET, NOW) == ["w", 3, True]


def test_a_wrong_path_ends_the_table() -> None:
    printer = columns_of_custom(
        [
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
            {"name": "Wrong", "type": "string", "jsonPath": ".spec[x]"},
            {"name": "On", "type": "boolean", "jsonPath": ".spec.on"},
        ]
    )
    assert [column.name for column in printer.columns] == ["Name", "Size"]
    assert printer.row(WIDGET, NOW) == ["w", 3]
