"""A process killed after each operation on files, also while it recovers from an earlier kill.

The files after any number of operations are made from a recording, so each boundary is met exactly.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Final

from moorage_cluster.apiserver.embedded import EmbeddedServer, Settings
from moorage_cluster.apiserver.journal import JournalError
from moorage_cluster.chaos.durability.file_operations import Image
from moorage_cluster.chaos.durability.recording import Recording
from moorage_cluster.chaos.durability.recording_vfs import RecordingVfs
from moorage_cluster.chaos.durability.report import Result
from moorage_cluster.chaos.durability.scratch import scratch_directory
from moorage_cluster.chaos.durability.writes import found_in

_RECOVERIES_EVERY: Final = 10
"""Each such boundary is also recovered from, with a kill within."""
_STARTS_EVERY: Final = 100
"""At each such boundary a whole server is started."""


def killed_at_boundaries(result: Result, recording: Recording, seed: int, begin: int, end: int) -> None:
    """Look at the files after each number of operations in a range."""
    with scratch_directory() as directory:
        for number, image in recording.images(begin, end):
            where = f"killed after operation {number}"
            lowest, highest = recording.recorded.answered(number), recording.recorded.begun(number)
            problem = recording.problem(recording.look(image, directory / "data"), lowest, highest)
            _add(result, "all there", seed, where, problem)
            if number % _RECOVERIES_EVERY == 0:
                _kill_recovery(result, recording, seed, number, image, directory)
            if number % _STARTS_EVERY == 0:
                _add(result, "server starts", seed, where, _start(image, directory / "data"))


def _add(result: Result, outcome: str, seed: int, where: str, problem: str) -> None:
    result.add(outcome, seed, f"{where}: {problem}" if problem else "")


def _kill_recovery(
    result: Result, recording: Recording, seed: int, number: int, image: Image, directory: Path
) -> None:
    """Open the files, and look at what is there if the process is killed while it opens or closes them."""
    first = directory / "first"
    image.write(first)
    with RecordingVfs(first, known=image.files) as vfs:
        before = found_in(first, recording.recorded.expected)
    again = image.copy()
    count = Random(f"{seed} {number}").randint(0, len(vfs.operations))
    for operation in vfs.operations[:count]:
        again.apply(operation)
    found = recording.look(again, directory / "data")
    where = f"killed after operation {number}, and after {count} operations of recovery"
    problem = recording.problem(found, before.revision, before.revision)
    _add(result, "recovery repeated", seed, where, problem)


def _start(image: Image, directory: Path) -> str:
    """Start a server; returns what is wrong."""
    image.write(directory)
    try:
        server = EmbeddedServer(Settings(directory))
    except JournalError as error:
        return f"no server starts: {error}"
    revision = server.store.revision
    server.close()
    again = EmbeddedServer(Settings(directory))
    again.close()
    return "" if again.store.revision >= revision else "the second server is behind the first"
