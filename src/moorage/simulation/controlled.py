"""What a simulation with controllers begins with: objects as an API server takes them.

Controllers read fields that scheduling does not, so that these objects are kept as they were written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from moorage.api.decode import InputError
from moorage.api.files import Located
from moorage.api.manifests import Manifest
from moorage.laptop_cluster import is_installed, missing
from moorage.simulation.workload import ARRIVAL, seconds_of

OWNERS: Final = frozenset(
    (
        "Deployment",
        "ReplicaSet",
        "ReplicationController",
        "StatefulSet",
        "DaemonSet",
        "Job",
        "CronJob",
    )
)
"""The kinds of objects that controllers make into pods."""


class Owner(NamedTuple):
    """An object that a controller makes into pods, and when it is created."""

    at_seconds: float
    manifest: Manifest
    where: str


@dataclass(frozen=True, slots=True)
class ControlledObjects:
    """The objects of a cluster with controllers."""

    dump: Sequence[Manifest]
    """The objects that are there at the start, pods with their nodes among them."""
    files: Sequence[Located]
    """Objects beside the pods of a workload, created at the start."""
    owners: Sequence[Owner]
    """In the order in which they are created."""


def controlled_objects(
    dump: Iterable[Located], workload: Iterable[Located], wanted: bool
) -> ControlledObjects | None:
    """What controllers need; None if there is nothing for them to do, and they are not `wanted`.

    InputError if they are needed, but not installed, or if something is no object.
    """
    dump, workload = list(dump), list(workload)
    owners = [_owner(*each) for each in workload if _kind(each[0]) in OWNERS]
    if not owners and not wanted:
        return None
    if not is_installed():
        raise InputError(
            owners[0].where if owners else "--controllers", missing("a simulation of controllers")
        )
    for manifest, where in (*dump, *workload):
        _check_parts(manifest, where)
    files = [each for each in workload if _kind(each[0]) not in OWNERS | {"Pod"}]
    return ControlledObjects(
        [manifest for manifest, _ in dump], files, sorted(owners, key=lambda each: each.at_seconds)
    )


def _check_parts(manifest: Any, where: str) -> None:
    """InputError for what does not have the parts that objects have."""
    if not isinstance(manifest, dict):
        raise InputError(where, "expected an object with a kind")
    for part, default in (("metadata", None), ("spec", {})):
        if not isinstance(manifest.get(part, default), dict):
            raise InputError(where, f"{_kind(manifest)}: {part}: expected an object")


def _kind(manifest: Any) -> str:
    return str(manifest.get("kind") or "") if isinstance(manifest, dict) else ""


def _owner(manifest: Manifest, where: str) -> Owner:
    meta = manifest.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    annotations = meta.get("annotations")
    name = f"{where}: {_kind(manifest)} {meta.get('name', '')}".rstrip()
    said = seconds_of(annotations, ARRIVAL, name) if isinstance(annotations, dict) else None
    return Owner(said or 0.0, manifest, name)
