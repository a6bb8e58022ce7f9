"""SECURITY.md names tests that exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENT = ROOT / "SECURITY.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def attacks() -> dict[str, str]:
    """The column of tests of every row of the table, by attack."""
    _, table = DOCUMENT.read_text().split("\n| attack |")
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    assert all(len(row) == 4 for row in rows), [row for row in rows if len(row) != 4]
    assert len({row[0] for row in rows}) == len(rows)
    return {row[0]: row[3] for row in rows}


@cache
def functions_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {each.name for each in ast.walk(tree) if isinstance(each, functions)}


@pytest.mark.parametrize(("attack", "tests"), attacks().items(), ids=attacks())
def test_each_attack_has_tests_that_exist(attack: str, tests: str) -> None:
    entries = tests.split(", ")
    found = [NAMED.fullmatch(entry) for entry in entries]
    assert all(found), f"not a path::name: {entries}"
    for entry in found:
        assert entry is not None
        path = ROOT / entry[1]
        assert path.exists(), entry[1]
        assert entry[2].startswith("test_")
        assert entry[2] in functions_in(path), f"{entry[2]} is not in {entry[1]}"


def test_nothing_is_named_outside_of_the_table() -> None:
    assert len(NAMED.findall(DOCUMENT.read_text())) == sum(
        len(NAMED.findall(each)) for each in attacks().values()
    )
