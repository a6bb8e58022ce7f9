"""The conditions of a namespace that is being deleted: what its deletion still waits for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from moorage.api.conditions import find_condition, set_condition
from moorage.api.manifests import Manifest

_SETTLED: Final = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}
"""Reason and message of each condition while it is False."""


@dataclass(slots=True)
class DeletionReport:
    """The outcome of one attempt to delete everything in a namespace."""

    errors: list[str] = field(default_factory=list)
    remaining: Counter[str] = field(default_factory=Counter)
    """Objects left, by `resource.group`."""
    finalizers: Counter[str] = field(default_factory=Counter)
    """Objects that wait for a finalizer."""


def deletion_conditions(status: Manifest, report: DeletionReport, now: datetime) -> list[Manifest]:
    """The conditions of a namespace after an attempt to empty it."""
    failing = dict(_failing(report))
    conditions: Sequence[Manifest] = status.get("conditions") or ()
    for kind, settled in _SETTLED.items():
        reason, message = failing.get(kind, settled)
        condition = {
            "type": kind,
            "status": "True" if kind in failing else "False",
            "reason": reason,
            "message": message,
        }
        before = find_condition({"conditions": conditions}, kind) or {}
        if any(before.get(key) != value for key, value in condition.items()):
            conditions = set_condition(conditions, condition, now)
    return list(conditions)


def _failing(report: DeletionReport) -> list[tuple[str, tuple[str, str]]]:
    found = []
    if report.errors:
        message = f"Failed to delete all resource types, {len(report.errors)} remaining: "
        message += ", ".join(sorted(report.errors))
        found.append(("NamespaceDeletionContentFailure", ("ContentDeletionFailed", message)))
    if report.remaining:
        left = [f"{name} has {number} resource instances" for name, number in report.remaining.items()]
        message = f"Some resources are remaining: {', '.join(sorted(left))}"
        found.append(("NamespaceContentRemaining", ("SomeResourcesRemain", message)))
    if report.finalizers:
        held = [f"{name} in {number} resource instances" for name, number in report.finalizers.items()]
        message = f"Some content in the namespace has finalizers remaining: {', '.join(sorted(held))}"
        found.append(("NamespaceFinalizersRemaining", ("SomeFinalizersRemain", message)))
    return found
