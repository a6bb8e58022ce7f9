"""Recordings as files, in the format that `moorage replay` reads (docs/how-to/records.md).

The file is complete JSON after every step: a step is written over the end of the document, with a new end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from moorage.api.base import Object
from moorage.api.decode import InputError
from moorage.api.manifests import Manifest
from moorage.api.pod_groups import PodGroup
from moorage.client.declared_kinds import kind_of_object
from moorage.client.kinds import COSCHEDULING_POD_GROUP
from moorage.config.load import to_manifest
from moorage.config.types import SchedulerConfiguration
from moorage.emulation.kubernetes_version import KubernetesVersion
from moorage.scheduler.encoding import plain

_END: Final = b"\n]}\n"
_encode = msgspec.json.Encoder().encode


def recorded_object(obj: Object) -> Manifest:
    """An object as recordings have it: the fields that scheduling reads."""
    if isinstance(obj, PodGroup) and obj.coscheduling is not None:
        kind = COSCHEDULING_POD_GROUP
        meta, spec = plain(obj.metadata), plain(obj.coscheduling)
        return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": meta, "spec": spec}
    of = kind_of_object(obj)
    assert of is not None, obj
    manifest: Manifest = plain(obj)
    return {**manifest, "apiVersion": of.api_version, "kind": of.name}


def change_steps(changes: Iterable[tuple[bool, Object]]) -> list[Manifest]:
    """Changes as steps, in which objects are put before others are deleted.

    changes: whether the object was deleted, and the object.
    """
    steps: list[Manifest] = []
    for is_deleted, obj in changes:
        if not steps or (not is_deleted and "delete" in steps[-1]):
            steps.append({})
        steps[-1].setdefault("delete" if is_deleted else "replace", []).append(recorded_object(obj))
    return steps


class RecordingFile:
    """A file that a recording is written to; InputError if that is impossible.

    reference: the scheduler whose decisions are recorded, with the version of Kubernetes.
    """

    def __init__(
        self, path: Path, config: SchedulerConfiguration, version: KubernetesVersion, reference: str
    ) -> None:
        self._head = {
            "name": path.stem,
            "reference": reference,
            "everyAttempt": True,
            "config": _configuration(config),
            "featureGates": dict(version.gates.given),
        }
        self.has_begun = False
        self._separator = b""
        try:
            self._file = path.open("wb")
        except OSError as error:
            raise InputError(str(path), f"cannot be written: {error.strerror}") from None

    def begin(self, objects: Iterable[Object]) -> None:
        """Write the cluster before the first step."""
        self.has_begun = True
        head = _encode({**self._head, "objects": [recorded_object(each) for each in objects]})
        self._file.write(head.removesuffix(b"}") + b',"steps":[' + _END)
        self._file.flush()

    def add(self, *steps: Mapping[str, Any]) -> None:
        """Write steps; OSError if that fails."""
        self._file.seek(-len(_END), 2)
        for step in steps:
            self._file.write(self._separator + b"\n" + _encode(step))
            self._separator = b","
        self._file.write(_END)
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _configuration(config: SchedulerConfiguration) -> Manifest:
    manifest = to_manifest(config)
    fields = ("profiles", "percentageOfNodesToScore")
    return {field: manifest[field] for field in fields if field in manifest}
