"""What runs tasks, on this machine or many."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Protocol

from moorage.sweep.task import Contents, Task, TaskResult

TaskResults = Generator[tuple[str, TaskResult], None, None]
"""The results of tasks by their keys, as they come; nothing is running any more once it is closed."""


class EngineError(Exception):
    """An engine that cannot go on; the message is one line."""


class Engine(Protocol):
    """Runs tasks."""

    def run(self, tasks: Mapping[str, Task], contents: Contents) -> TaskResults:
        """The results of tasks."""
        ...
