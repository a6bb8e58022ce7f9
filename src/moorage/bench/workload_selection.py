"""Selection of workloads by name and label."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from moorage.api.decode import InputError
from moorage.bench.workload_files import PlannedWorkload


def has_labels(expression: str, labels: Iterable[str]) -> bool:
    """Whether labels match an expression: `performance,-short` requires the first and excludes the second."""
    known = set(labels)
    for word in filter(None, (part.strip() for part in expression.split(","))):
        if (word.lstrip("+-") in known) == word.startswith("-"):
            return False
    return True


def is_named(wanted: str, workload: PlannedWorkload) -> bool:
    """Whether a name (`TestCase` or `TestCase/Workload`) matches a workload."""
    return wanted in (workload.case, workload.name)


def select(
    workloads: Sequence[PlannedWorkload], only: Sequence[str], labels: Sequence[str]
) -> list[PlannedWorkload]:
    """The selected workloads; InputError for an invalid one, a name that matches none, or if none is left.

    At least one of several label expressions has to match.
    """
    for wanted in only:
        if not any(is_named(wanted, each) for each in workloads):
            raise InputError("--only", f"there is no workload {wanted!r}")
    chosen = [
        each
        for each in workloads
        if (not only or any(is_named(wanted, each) for wanted in only))
        and (not labels or any(has_labels(expression, each.labels) for expression in labels))
    ]
    if not chosen:
        raise InputError("--label", "no workload has these labels")
    for each in chosen:
        if each.error is not None:
            raise each.error
    return chosen
