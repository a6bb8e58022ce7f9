"""Seeded writes through the real store and journal, and what must be found on disk after any part of them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Final

import msgspec

from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.journal import JournalError, SqliteJournal
from moorage_cluster.apiserver.store import Key, Store, encode

COLLECTIONS: Final = ("/configmaps", "/secrets")
_KINDS: Final = {"/configmaps": "ConfigMap", "/secrets": "Secret"}
_NAMESPACE: Final = "default"
FIRST_REVISION: Final = 1
"""The revision of an empty journal."""
_SMALL_BYTES: Final = 2_000
_LARGE_BYTES: Final = 40_000
_LARGE_SHARE: Final = 0.03
_BIG_BYTES: Final = 450_000
_MIXED_SHARE: Final = 0.5
"""The part of the small writes that comes before the big ones."""
_WRITES_PER_LIFE: Final = 150
"""Number of writes after which the journal is closed and opened again."""

Id = tuple[str, Key]
"""Collection and key of an object."""


class Write(msgspec.Struct, frozen=True):
    """One write: content of an object, or None for a deletion. A life ends where the journal is closed."""

    id: Id
    data: str | None
    ends_life: bool = False


def planned(seed: int, count: int, big: int = 0) -> Iterator[Write]:
    """Writes of a seed; big: number of big objects that come and go in between, as a VACUUM needs them."""
    random = Random(f"writes {seed}")
    living: set[Id] = set()
    before = round(count * _MIXED_SHARE)
    for number in range(before):
        yield _small_write(random, living, number)
    bigs: list[Id] = [("/configmaps", (_NAMESPACE, f"big-{number}")) for number in range(big)]
    for number, each in enumerate(bigs, 1):
        yield Write(each, _text(random, _BIG_BYTES), ends_life=number == big)
    for number, each in enumerate(bigs, 1):
        yield Write(each, None, ends_life=number == big)
    for number in range(before, count):
        yield _small_write(random, living, number)


def _small_write(random: Random, living: set[Id], number: int) -> Write:
    ends = number % _WRITES_PER_LIFE == _WRITES_PER_LIFE - 1
    action = random.choice(("create", "create", "update", "update", "delete")) if living else "create"
    if action == "create":
        chosen: Id = (random.choice(COLLECTIONS), (_NAMESPACE, f"{random.randrange(10_000)}-{number}"))
        living.add(chosen)
    else:
        chosen = random.choice(sorted(living))
    if action == "delete":
        living.remove(chosen)
        return Write(chosen, None, ends)
    most = _LARGE_BYTES if random.random() < _LARGE_SHARE else _SMALL_BYTES
    return Write(chosen, _text(random, random.randrange(most)), ends)


def _text(random: Random, size: int) -> str:
    return random.randbytes(size // 2).hex()


def manifest(write: Write) -> Manifest:
    """The object of a write that is no deletion."""
    collection, (namespace, name) = write.id
    meta = {"name": name, "namespace": namespace, "uid": f"uid-{name}"}
    return {"apiVersion": "v1", "kind": _KINDS[collection], "metadata": meta, "data": {"x": write.data}}


def opened(directory: Path, *, is_synced: bool = False) -> tuple[SqliteJournal, Store]:
    """The journal of a directory, and a store with its objects."""
    journal = SqliteJournal(directory, is_synced=is_synced)
    store = Store(journal, journal.revision)
    for collection, version, obj in journal.objects():
        store.load(collection, obj, version, {})
    return journal, store


def do(store: Store, write: Write) -> bytes | None:
    """Do a write; returns what was stored."""
    collection = store.collection(write.id[0])
    if write.data is None:
        store.delete(collection, write.id[1])
        return None
    return store.put(collection, manifest(write), {}).raw


class Expected:
    """All states that acknowledged writes lead to, one for each revision."""

    def __init__(self) -> None:
        self.revision = FIRST_REVISION
        """The revision of the last write."""
        self._changes: list[tuple[Id, int, bytes | None]] = []
        self._contents: dict[tuple[Id, int], bytes] = {}

    def add(self, id: Id, raw: bytes | None) -> None:
        """The next write: what was stored, None for a deletion."""
        self.revision += 1
        self._changes.append((id, self.revision, raw))
        if raw is not None:
            self._contents[id, self.revision] = raw

    def difference(self, revision: int, found: dict[Id, tuple[int, bytes]]) -> str:
        """What is wrong with the objects found at a revision; empty if nothing is."""
        for id, (version, raw) in found.items():
            if self._contents.get((id, version)) != raw:
                return f"{_named(id)} at version {version} is not what was written"
        if not FIRST_REVISION <= revision <= self.revision:
            return f"revision {revision} was never given"
        wanted = self._versions(revision)
        for id in sorted(wanted.keys() | found.keys()):
            have = found[id][0] if id in found else None
            if have != wanted.get(id):
                return f"{_named(id)} is at version {have}, not {wanted.get(id)}, at revision {revision}"
        return ""

    def _versions(self, revision: int) -> dict[Id, int]:
        versions: dict[Id, int] = {}
        for id, version, raw in self._changes[: revision - FIRST_REVISION]:
            if raw is None:
                del versions[id]
            else:
                versions[id] = version
        return versions


def _named(id: Id) -> str:
    collection, (namespace, name) = id
    return f"{collection} {namespace}/{name}"


class Found(msgspec.Struct, frozen=True):
    """What came of opening a directory: a revision, or a refusal; problem: what is wrong, if something is."""

    revision: int = 0
    refusal: str = ""
    problem: str = ""


def found_in(directory: Path, expected: Expected) -> Found:
    """Open a directory as a server does, and compare all objects with what was written."""
    try:
        journal = SqliteJournal(directory)
        try:
            objects = {
                (collection, _key(obj)): (version, encode(obj))
                for collection, version, obj in journal.objects()
            }
            revision = journal.revision
        finally:
            journal.close()
    except JournalError as error:
        line = str(error)
        return Found(refusal=line, problem="a refusal of several lines" if "\n" in line else "")
    except Exception as error:
        return Found(problem=f"it does not open: {type(error).__name__}: {error}")
    return Found(revision, problem=expected.difference(revision, objects))


def _key(obj: Manifest) -> Key:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


Moment = Callable[[], int]
"""The number of file operations so far."""


class Recorded(msgspec.Struct):
    """Writes that were done, and when: each moment is a number of file operations."""

    expected: Expected
    answered_at: list[int] = []
    """When each write had returned."""
    begun_at: list[int] = []

    def answered(self, operations: int) -> int:
        """The revision of the last write that had returned at a moment."""
        return FIRST_REVISION + bisect_right(self.answered_at, operations)

    def begun(self, operations: int) -> int:
        """The revision of the last write that had begun at a moment."""
        return FIRST_REVISION + bisect_left(self.begun_at, operations)


def recorded(directory: Path, writes: Iterable[Write], moment: Moment, *, is_synced: bool) -> Recorded:
    """Do writes, in as many lives as they have."""
    result = Recorded(Expected())
    journal, store = opened(directory, is_synced=is_synced)
    for write in writes:
        result.begun_at.append(moment())
        raw = do(store, write)
        result.answered_at.append(moment())
        result.expected.add(write.id, raw)
        if write.ends_life:
            journal.close()
            journal, store = opened(directory, is_synced=is_synced)
    journal.close()
    return result
