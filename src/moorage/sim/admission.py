"""Objects from manifests, as a scheduler would read them.

A pod that an API server has stored has a uid. One without is new: it gets an API server's defaults, admission
and validation, with the LimitRanges, PriorityClasses, RuntimeClasses, Namespaces and Nodes that are in the
cluster. Its status, if the manifest has one, is kept: in a hand-written cluster, pods may be running. New
groups of pods get the same, if groups are scheduled at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from moorage.api.as_sent import kept
from moorage.api.base import Object
from moorage.api.decode import InputError, decode_object, kind_of
from moorage.api.files import Located, completed
from moorage.api.manifests import Manifest
from moorage.api.pod import Pod
from moorage.api.pod_groups import Group
from moorage.emulation.feature_gates import Features
from moorage.emulation.kubernetes_version import DEFAULT_VERSION
from moorage.http.api_error import ApiError

if TYPE_CHECKING:
    from moorage.admission.groups.creation import GroupCreation
    from moorage.admission.pod_creation import PodCreation

_KEPT: Final = ("creationTimestamp", "deletionTimestamp")
"""Metadata that a server does not accept from clients, but that is kept in a hand-written cluster."""


class Admission:
    """The admission of new pods and groups by an API server with the objects of a cluster."""

    def __init__(self, cluster: Iterable[Located], features: Features = DEFAULT_VERSION.features) -> None:
        self._cluster = tuple(cluster)
        self._features = features

    def objects(self, manifests: Iterable[Located], *, keeps_whole: bool = False) -> list[Object]:
        """Manifests as objects, without the kinds that scheduling does not read.

        keeps_whole: whether pods and nodes keep all fields of their manifests.
        """
        objects = []
        for number, (given, where) in enumerate(manifests):
            manifest = self._stored(completed(given, number, where), where)
            decoded = decode_object(manifest, where)
            if decoded is not None:
                objects.append(kept(decoded, manifest) if keeps_whole else decoded)
        return objects

    def _stored(self, manifest: Any, where: str) -> Any:
        """A manifest as it would be stored, but with its own status; InputError if it would be rejected."""
        kind = kind_of(manifest)
        meta = manifest.get("metadata") if kind is not None else None
        if kind is None or not isinstance(meta, dict) or meta.get("uid"):
            return manifest
        try:
            if kind is Pod:
                return _with_own_status(self._pods.created(manifest), manifest)
            if issubclass(kind, Group) and self._features.generic_workload:
                return _with_own_status(self._groups.created(manifest), manifest)
        except ApiError as error:
            raise InputError(where, error.message) from None
        return manifest

    @cached_property
    def _pods(self) -> PodCreation:
        # Imported for new objects only: stored ones need none of it.
        from moorage.admission.pod_creation import PodCreation

        return PodCreation(self._cluster)

    @cached_property
    def _groups(self) -> GroupCreation:
        from moorage.admission.groups.creation import GroupCreation

        return GroupCreation(self._pods.objects, self._features)


def _with_own_status(new: Manifest, given: Manifest) -> Manifest:
    meta = {key: given["metadata"][key] for key in _KEPT if key in given["metadata"]}
    return {**new, "metadata": {**new["metadata"], **meta}, "status": given.get("status") or {}}
