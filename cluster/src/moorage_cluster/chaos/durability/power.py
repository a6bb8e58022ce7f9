"""Power failures at each operation on files: what was not synced is there in part.

`synchronous=NORMAL` does not sync each write. So the last ones may be missing, but what is there must be what
was there after one of the writes, the last that was synced or a later one. With `--sync`, nothing that was
acknowledged may be missing.
"""

from __future__ import annotations

from random import Random
from typing import Final

from moorage_cluster.chaos.durability.file_operations import Disk, Synced
from moorage_cluster.chaos.durability.recording import Recording
from moorage_cluster.chaos.durability.report import Result
from moorage_cluster.chaos.durability.scratch import scratch_directory

_SHARES: Final = (0.0, 0.1, 0.5, 0.9, 1.0)
"""Parts of what was not synced that reached the disk."""
_LOG: Final = "objects.db-wal"


def power_failures(result: Result, recording: Recording, seed: int, begin: int, end: int) -> None:
    """Look at what may be left after each number of operations in a range."""
    disk, lowest = Disk(), 0
    with scratch_directory() as directory:
        for number, operation in enumerate(recording.operations[: end - 1], 1):
            disk.apply(operation)
            if recording.is_synced:
                lowest = recording.recorded.answered(number)
            elif operation == Synced(_LOG):
                lowest = recording.recorded.answered(number - 1)
            if number < begin:
                continue
            random = Random(f"{seed} {number}")
            share = _SHARES[number % len(_SHARES)]
            found = recording.look(disk.after_power_failure(random, share), directory / "data")
            problem = recording.problem(found, lowest, recording.recorded.begun(number))
            lost = recording.recorded.answered(number) - found.revision
            where = f"power failed after operation {number} with {share:.0%} of what was not synced"
            result.add(
                "last writes missing" if lost > 0 else "all there",
                seed,
                f"{where}: {problem}" if problem else "",
            )
