"""Damaged files: cut off, or with wrong bytes, anywhere.

A server opens what was there after one of the writes, or refuses to start with one line.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from moorage_cluster.chaos.durability.file_operations import SECTOR_BYTES, Image
from moorage_cluster.chaos.durability.recording import Recording
from moorage_cluster.chaos.durability.report import Result
from moorage_cluster.chaos.durability.scratch import scratch_directory
from moorage_cluster.chaos.durability.writes import Found

_LOG: Final = "objects.db-wal"
_FRAME_BYTES: Final = 24 + 4096
_HEADER_BYTES: Final = 32
_LOG_SHARE: Final = 0.8

Damage = Callable[[bytearray, int, Random], None]
"""Damages a log at an offset."""


def _cut(log: bytearray, at: int, random: Random) -> None:
    del log[at:]


def _flip(log: bytearray, at: int, random: Random) -> None:
    log[at] ^= 1 << random.randrange(8)


def _zero(log: bytearray, at: int, random: Random) -> None:
    end = min(len(log), at + random.randrange(1, 2 * _FRAME_BYTES))
    log[at:end] = bytes(end - at)


def _garble(log: bytearray, at: int, random: Random) -> None:
    end = min(len(log), at + random.randrange(1, SECTOR_BYTES))
    log[at:end] = random.randbytes(end - at)


def _repeat(log: bytearray, at: int, random: Random) -> None:
    """A frame of the log once more, in place of another or behind the end."""
    begin = _HEADER_BYTES + random.randrange(max(len(log) // _FRAME_BYTES, 1)) * _FRAME_BYTES
    frame = _HEADER_BYTES + (at - _HEADER_BYTES) // _FRAME_BYTES * _FRAME_BYTES
    log[max(frame, 0) : max(frame, 0) + _FRAME_BYTES] = log[begin : begin + _FRAME_BYTES]


def _append(log: bytearray, at: int, random: Random) -> None:
    log += random.randbytes(random.randrange(1, 2 * _FRAME_BYTES))


DAMAGES: Final[dict[str, Damage]] = {
    "cut off": _cut,
    "one bit": _flip,
    "zeros": _zero,
    "garbage": _garble,
    "a frame repeated": _repeat,
    "garbage behind the end": _append,
}


def damaged_files(result: Result, recording: Recording, seed: int, begin: int, end: int) -> None:
    """Damage the files of random moments; each number of a range is a case."""
    last = len(recording.operations)
    cases = sorted((Random(f"{seed} {case}").randrange(last + 1), case) for case in range(begin, end))
    images = recording.images(0, last + 1)
    with scratch_directory() as directory:
        number, image = next(images)
        for wanted, case in cases:
            while number < wanted:
                number, image = next(images)
            random = Random(f"damage {seed} {case}")
            damaged = image.copy()
            what = _damage(damaged, random)
            found = recording.look(damaged, directory / "data")
            outcome, problem = _judge(recording, number, found)
            where = f"{what} after operation {number}"
            result.add(outcome, seed, f"{where}: {problem}" if problem else "")


def _damage(image: Image, random: Random) -> str:
    """Damage a file, mostly the log; returns what was done."""
    files = sorted(name for name, content in image.files.items() if content)
    if not files:
        return "nothing damaged"
    is_log = _LOG in files and random.random() < _LOG_SHARE
    name = _LOG if is_log else random.choice(files)
    content, way = image.files[name], random.choice(list(DAMAGES))
    at = random.randrange(len(content))
    DAMAGES[way](content, at, random)
    return f"{name} damaged at byte {at} ({way})"


def _judge(recording: Recording, number: int, found: Found) -> tuple[str, str]:
    """What came of a case, and what is wrong with it."""
    if found.problem or found.refusal:
        return "refused", found.problem
    if found.revision > recording.recorded.begun(number):
        return "", f"revision {found.revision} was not given yet"
    missing = found.revision < recording.recorded.answered(number)
    return "last writes missing" if missing else "all there", ""
