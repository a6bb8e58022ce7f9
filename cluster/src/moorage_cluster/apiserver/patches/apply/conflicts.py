"""Conflicts between an applying manager and the owners of fields."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from moorage.apimachinery import errors
from moorage.apimachinery.errors import ApiError
from moorage_cluster.apiserver.patches.apply.fieldset import FieldSet, path_text
from moorage_cluster.apiserver.patches.apply.managers import FieldManager, Managers


class Conflict(NamedTuple):
    """A field that would change and is owned by another manager."""

    manager: FieldManager
    path: tuple[str, ...]


def find_conflicts(managers: Managers, changed: FieldSet, mine: FieldManager) -> list[Conflict]:
    """The changed fields that other managers own, by manager."""
    return [
        Conflict(manager, path)
        for manager in sorted(managers)
        if manager != mine
        for path in (managers[manager].fields & changed).paths()
    ]


def conflict_error(conflicts: Sequence[Conflict]) -> ApiError:
    """The error for conflicts."""
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {conflict.manager}",
            "field": path_text(conflict.path),
        }
        for conflict in conflicts
    ]
    if len(conflicts) == 1:
        manager, path = conflicts[0]
        text = f"Apply failed with 1 conflict: conflict with {manager}: {path_text(path)}"
        return errors.apply_conflict(text, causes)
    lines = []
    for manager, theirs in groupby(conflicts, key=lambda conflict: conflict.manager):
        lines.append(f"conflicts with {manager}:")
        lines += [f"- {path_text(conflict.path)}" for conflict in theirs]
    text = f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)
    return errors.apply_conflict(text, causes)
