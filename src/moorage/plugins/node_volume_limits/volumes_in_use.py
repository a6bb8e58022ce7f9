"""Which CSI volumes are in use on nodes: those of the pods on them, and others that are attached.

A volume that several pods share counts once. A volume that is attached without a pod on the node using it
counts in addition to a new pod's volume, even if it is the same one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment
from moorage.cluster.grouped_objects import GroupedObjects
from moorage.cluster.journal import JournalReader
from moorage.cluster.object_tables import Objects
from moorage.cluster.pod_table import Disk
from moorage.cluster.row_reader import RowReader
from moorage.cluster.snapshot import Snapshot
from moorage.plugins.node_volume_limits.csi_volumes import (
    CSIVolumeId,
    attached_volume,
    volume_of_claim,
    volumes_of_disks,
)
from moorage.plugins.node_volume_limits.row_index import RowIndex

_UNKNOWN: Final = -1


class NodeVolumesInUse:
    """The volumes in use on one node.

    used: those of its pods. all: with those that are attached. volume_names: the names of all persistent
    volumes that were looked up, also of those that do not exist.
    """

    __slots__ = ("all", "used", "volume_names")

    def __init__(
        self,
        claims: Iterable[str],
        disks: Iterable[Disk],
        attached: Iterable[VolumeAttachment],
        objects: Objects,
    ) -> None:
        self.volume_names: set[str] = set()
        self.used = volumes_of_disks(disks)
        self.used.update(self._of_claims(claims, objects))
        self.all = self.used.union(self._of_attachments(attached, objects))

    def _of_claims(self, keys: Iterable[str], objects: Objects) -> Iterator[CSIVolumeId]:
        for key in keys:
            claim = objects.of(PersistentVolumeClaim).get(*key.split("/", 1))
            if claim is not None:
                volume = self._volume(claim.spec.volume_name, objects)
                if (found := volume_of_claim(claim, volume, objects)) is not None:
                    yield found

    def _of_attachments(
        self, attachments: Iterable[VolumeAttachment], objects: Objects
    ) -> Iterator[CSIVolumeId]:
        for each in attachments:
            volume = self._volume(each.spec.source.persistent_volume_name, objects)
            if (found := attached_volume(each, volume)) is not None:
                yield found

    def _volume(self, name: str | None, objects: Objects) -> PersistentVolume | None:
        if not name:
            return None
        self.volume_names.add(name)
        return objects.of(PersistentVolume).get("", name)

    def exceeds(self, requested: Collection[CSIVolumeId], limits: Mapping[str, int]) -> bool:
        """Whether the node would have too many volumes of a driver that gets a new one."""
        needed = Counter(volume[0] for volume in requested if volume not in self.used)
        needed.update(driver for driver, _ in self.all if driver in needed)
        return any(needed[driver] > limit for driver, limit in limits.items())


class _FoundBy(NamedTuple):
    """Under what a row is indexed."""

    claims: Collection[str]
    volume_names: Collection[str]
    used: Collection[CSIVolumeId]


class VolumesInUse:
    """The volumes in use on nodes, kept from pod to pod until an object changes by which they were found."""

    def __init__(self, attached: GroupedObjects[VolumeAttachment]) -> None:
        """attached: the attachments by the name of their node."""
        self._attached = attached
        self._found_by: dict[int, _FoundBy] = {}
        self._rows_of_claim: RowIndex[str] = RowIndex()
        self._rows_of_volume: RowIndex[str] = RowIndex()
        self._rows_using: RowIndex[CSIVolumeId] = RowIndex()
        self._counts: dict[str, NDArray[np.int64]] = {}
        """By driver, the number of volumes in use on each node, or _UNKNOWN."""
        self._row_reader = RowReader()
        self._attached_reader: JournalReader[str] = JournalReader()
        self._claim_reader: JournalReader[tuple[str, str]] = JournalReader()
        self._volume_reader: JournalReader[tuple[str, str]] = JournalReader()
        self._class_reader: JournalReader[tuple[str, str]] = JournalReader()

    def exceed(
        self,
        requested: Collection[CSIVolumeId],
        limits: Mapping[str, NDArray[np.int64]],
        rows: NDArray[np.intp],
        snapshot: Snapshot,
    ) -> NDArray[np.bool_]:
        """Where nodes would have too many volumes of a driver that gets a new one. Shape (rows,).

        limits: of each driver, shape (rows,). rows: the nodes that are asked about, each once.
        """
        self._catch_up(snapshot)
        exceeded = np.zeros(len(rows), bool)
        for driver, limit in limits.items():
            in_use = self._count(driver, rows, snapshot)
            new = np.zeros(len(rows), np.int64)
            for volume in requested:
                if volume[0] == driver:
                    users = self._rows_using.rows(volume)
                    new += ~np.isin(rows, list(users)) if users else 1
            exceeded |= (new > 0) & (in_use + new > limit)
        return exceeded

    def _count(self, driver: str, rows: NDArray[np.intp], snapshot: Snapshot) -> NDArray[np.int64]:
        counts = self._counts.get(driver)
        if counts is None:
            counts = self._counts[driver] = np.full(len(snapshot), _UNKNOWN, np.int64)
        for row in rows[counts[rows] == _UNKNOWN].tolist():
            self._find(row, snapshot)
        return counts[rows]

    def _find(self, row: int, snapshot: Snapshot) -> None:
        self._forget(row)
        objects, claims = snapshot.objects, snapshot.claims[row] or frozenset()
        attached = self._attached.members(objects.of(VolumeAttachment), snapshot.names[row])
        found = NodeVolumesInUse(claims, snapshot.disks[row] or (), attached, objects)
        by_driver = Counter(driver for driver, _ in found.all)
        for driver, counts in self._counts.items():
            counts[row] = by_driver[driver]
        kept = self._found_by[row] = _FoundBy(claims, tuple(found.volume_names), tuple(found.used))
        self._rows_of_claim.add(kept.claims, row)
        self._rows_of_volume.add(kept.volume_names, row)
        self._rows_using.add(kept.used, row)

    def _forget(self, row: int) -> None:
        kept = self._found_by.pop(row, None)
        if kept is not None:
            for counts in self._counts.values():
                counts[row] = _UNKNOWN
            self._rows_of_claim.remove(kept.claims, row)
            self._rows_of_volume.remove(kept.volume_names, row)
            self._rows_using.remove(kept.used, row)

    def _catch_up(self, snapshot: Snapshot) -> None:
        objects = snapshot.objects
        self._attached.follow(objects.of(VolumeAttachment))
        rows = self._row_reader.new_rows(snapshot, snapshot.load_changes)
        nodes = self._attached_reader.new_entries(self._attached.changes)
        claims = self._claim_reader.new_entries(objects.of(PersistentVolumeClaim).changes)
        volumes = self._volume_reader.new_entries(objects.of(PersistentVolume).changes)
        classes = self._class_reader.new_entries(objects.of(StorageClass).changes)
        if rows is None or nodes is None or claims is None or volumes is None or classes != []:
            self._forget_all()
            return
        changed = {
            *rows,
            *(snapshot.row_of[name] for name in nodes if name in snapshot.row_of),
            *chain.from_iterable(self._rows_of_claim.rows("/".join(key)) for key in claims),
            *chain.from_iterable(self._rows_of_volume.rows(name) for _, name in volumes),
        }
        for row in changed:
            self._forget(row)

    def _forget_all(self) -> None:
        self._found_by.clear()
        self._counts.clear()
        for index in (self._rows_of_claim, self._rows_of_volume, self._rows_using):
            index.clear()
