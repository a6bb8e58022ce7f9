"""Fixtures for tests of plugins."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.cluster.object_tables import ObjectTable


@pytest.fixture
def lookups(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of objects that are looked up in any table, in order."""
    names: list[str] = []
    original = ObjectTable.get

    def noted(table: ObjectTable[Any], namespace: str, name: str) -> Any:
        names.append(name)
        return original(table, namespace, name)

    monkeypatch.setattr(ObjectTable, "get", noted)
    return names
