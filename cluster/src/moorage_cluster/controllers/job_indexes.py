"""Completion indexes of jobs, in the short form their status has: `1,3-5,7`."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count, islice
from typing import Final

from moorage.api.manifests import Manifest, annotations_of

INDEX: Final = "batch.kubernetes.io/job-completion-index"
"""The annotation and label with a pod's index."""


def index_of(pod: Manifest) -> int | None:
    """A pod's completion index, if it has one."""
    text = annotations_of(pod).get(INDEX, "")
    return int(text) if text.isascii() and text.isdigit() else None


def parse_indexes(text: str, completions: int) -> set[int]:
    """The indexes in a text, up to the number of completions; invalid parts are ignored."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and (last or first).isdigit():
            found.update(range(int(first), min(int(last or first), completions - 1) + 1))
    return found


def format_indexes(indexes: Iterable[int]) -> str:
    """Indexes in short form: runs of three and more as `first-last`."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    parts: list[str] = []
    for run in runs:
        parts += [f"{run[0]}-{run[-1]}"] if len(run) > 2 else map(str, run)
    return ",".join(parts)


def first_free(taken: set[int], wanted: int, completions: int) -> list[int]:
    """The first `wanted` indexes that are not taken."""
    free = (index for index in count() if index not in taken)
    return [index for index in islice(free, max(0, wanted)) if index < completions]
