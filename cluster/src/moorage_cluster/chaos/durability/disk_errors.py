"""Disks that fail at each operation on files: a full disk, and an input/output error.

The write is refused, and is neither there then nor after a kill; others go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from moorage.http.api_error import ApiError
from moorage_cluster.apiserver.journal import JournalError
from moorage_cluster.chaos.durability.recording_vfs import SQLITE_FULL, SQLITE_IOERR, SQLITE_OK, RecordingVfs
from moorage_cluster.chaos.durability.report import Result
from moorage_cluster.chaos.durability.scratch import scratch_directory
from moorage_cluster.chaos.durability.writes import Expected, Id, Write, do, found_in, opened
from moorage_cluster.chaos.quiet_logs import quiet

_JOURNAL: Final = "moorage_cluster.apiserver.journal"
"""The logger that names each failed write."""
_CODES: Final = {SQLITE_FULL: "disk full", SQLITE_IOERR: "I/O error"}


def disk_errors(result: Result, writes: Sequence[Write], seed: int, begin: int, end: int) -> None:
    """Fail each operation of a range, once with each error."""
    with scratch_directory() as directory, quiet(_JOURNAL):
        for number in range(begin, end):
            for code, name in _CODES.items():
                folder = directory / f"{number}-{code}"
                outcome, problem = _run(folder, writes, number, code)
                where = f"{name} at operation {number}"
                result.add(outcome, seed, f"{where}: {problem}" if problem else "")


def _run(directory: Path, writes: Sequence[Write], number: int, code: int) -> tuple[str, str]:
    """Do writes of which one fails, then kill the process; returns what came of it, and what is wrong."""
    directory.mkdir(mode=0o700)
    expected = Expected()
    lives: set[Id] = set()
    refused = 0
    with RecordingVfs(
        directory, lambda at: code if at == number and not vfs.has_failed else SQLITE_OK
    ) as vfs:
        try:
            journal, store = opened(directory)
        except JournalError:
            return _judge(directory, expected, "start refused")
        for write in writes:
            if write.data is None and write.id not in lives:
                continue  # It was not created.
            try:
                raw = do(store, write)
            except ApiError:
                refused += 1
                continue
            (lives.discard if raw is None else lives.add)(write.id)
            expected.add(write.id, raw)
        # What a kill leaves: the files before the journal is closed.
        killed = directory.with_name(f"{directory.name}-killed")
        killed.mkdir(mode=0o700)
        for path in directory.iterdir():
            (killed / path.name).write_bytes(path.read_bytes())
        journal.close()
    if refused > 1:
        return "", f"{refused} writes were refused, not one"
    outcome, problem = _judge(killed, expected, "one write refused" if refused else "all written")
    return (outcome, problem) if problem else _judge(directory, expected, outcome)


def _judge(directory: Path, expected: Expected, outcome: str) -> tuple[str, str]:
    found = found_in(directory, expected)
    if not found.problem and found.revision != expected.revision:
        return "", found.refusal or f"revision {found.revision}, not {expected.revision}"
    return outcome, found.problem
