"""What a task is for a Dask scheduler and its workers.

Both import this module in their event loops, so it imports the simulator only in the thread that runs a task.
"""

from __future__ import annotations

import pickle
from typing import Any


def kept(content: bytes) -> bytes:
    """The contents of a file, as a piece of data that tasks depend on."""
    return content


def run_pickled(task: bytes, digests: list[str], contents: list[bytes]) -> Any:
    """Run a task; its `TaskResult`. digests, contents: the files that it needs."""
    from moorage.sweep.worker import run_task

    return run_task(pickle.loads(task), dict(zip(digests, contents, strict=True)))
