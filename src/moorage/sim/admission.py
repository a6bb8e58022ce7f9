"""Objects from manifests, as a scheduler would read them.

A pod that an API server has stored has a uid. One without is new: it gets an API server's defaults, admission
and validation, with the LimitRanges, PriorityClasses, RuntimeClasses, Namespaces and Nodes that are in the
cluster. Its status, if the manifest has one, is kept: in a hand-written cluster, pods may be running.
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
from moorage.http.api_error import ApiError

if TYPE_CHECKING:
    from moorage.admission.pod_creation import PodCreation

_KEPT: Final = ("creationTimestamp", "deletionTimestamp")
"""Metadata that a server does not accept from clients, but that is kept in a hand-written cluster."""


class Admission:
    """The admission of new pods by an API server with the objects of a cluster."""

    def __init__(self, cluster: Iterable[Located]) -> None:
        self._cluster = tuple(cluster)

    def objects(self, manifests: Iterable[Located], *, keeps_whole: bool = False) -> list[Object]:
        """Manifests as objects, without the kinds that scheduling does not read.

        keeps_whole: whether pods and nodes keep all fields of their manifests.
        """
        objects = []
        for number, (given, where) in enumerate(manifests):
            manifest = completed(given, number, where)
            if _is_new_pod(manifest):
                manifest = self._admitted(manifest, where)
            decoded = decode_object(manifest, where)
            if decoded is not None:
                objects.append(kept(decoded, manifest) if keeps_whole else decoded)
        return objects

    def _admitted(self, pod: Manifest, where: str) -> Manifest:
        """A new pod as it would be stored, but with its own status; InputError if it would be rejected."""
        try:
            new = self._creation.created(pod)
        except ApiError as error:
            raise InputError(where, error.message) from None
        given = {key: pod["metadata"][key] for key in _KEPT if key in pod["metadata"]}
        return {**new, "metadata": {**new["metadata"], **given}, "status": pod.get("status") or {}}

    @cached_property
    def _creation(self) -> PodCreation:
        # Imported for new pods only: stored ones need none of it.
        from moorage.admission.pod_creation import PodCreation

        return PodCreation(self._cluster)


def _is_new_pod(manifest: Any) -> bool:
    """Whether a manifest is a pod that no API server has stored; one without metadata is not a pod."""
    meta = manifest.get("metadata") if kind_of(manifest) is Pod else None
    return isinstance(meta, dict) and not meta.get("uid")
