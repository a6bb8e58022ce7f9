"""Revisions of StatefulSets and DaemonSets: the history of their templates, for rollbacks.

A revision's data is a patch that restores its template, which is what `kubectl rollout undo` sends.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

from moorage.api.manifests import Manifest, annotations_of, copy, labels_of, status_of
from moorage.client.kinds import CONTROLLER_REVISION, Kind
from moorage.http.errors import RequestError
from moorage_cluster.controllers.adoption import claim
from moorage_cluster.controllers.cluster import Cluster, controller_of, owner_reference
from moorage_cluster.controllers.pods import created_at
from moorage_cluster.controllers.templates import content_hash, with_label, without_label

REVISION_LABEL: Final = "controller-revision-hash"
"""The label with a pod's revision."""
_NO_LABEL: Final = ""
_MAX_PREFIX_LENGTH: Final = 223


class History(NamedTuple):
    """All revisions of an owner, the oldest first, and the one of its current template."""

    revisions: list[Manifest]
    update: Manifest
    collisions: int

    @property
    def old(self) -> list[Manifest]:
        """All but the current one."""
        return [each for each in self.revisions if name_of(each) != name_of(self.update)]


def name_of(obj: Manifest) -> str:
    """An object's name."""
    return str(obj["metadata"]["name"])


def template_of(revision: Manifest) -> Manifest:
    """The pod template in a revision."""
    template: Manifest = copy(revision["data"]["spec"]["template"])
    template.pop("$patch", None)
    return template


async def history_of(cluster: Cluster, kind: Kind, owner: Manifest, hash_label: str) -> History:
    """An owner's revisions; one is created for a new template, one that is used again becomes the newest."""
    known = _ordered(await claim(cluster, kind, owner, CONTROLLER_REVISION))
    data = _data(owner)
    newest = max((each["revision"] for each in known), default=0)
    equal = [each for each in known if _is_same(each["data"], data)]
    collisions = int(status_of(owner).get("collisionCount") or 0)
    if not equal:
        update, collisions = await _created(cluster, owner, data, newest + 1, hash_label, collisions)
        return History([*known, update], update, collisions)
    update = equal[-1]
    if update["revision"] < newest:
        update = await cluster.patch(CONTROLLER_REVISION, update, {"revision": newest + 1})
    others = [each for each in known if name_of(each) != name_of(update)]
    return History(_ordered([*others, update]), update, collisions)


async def forget_old(
    cluster: Cluster, owner: Manifest, revisions: list[Manifest], is_live: Iterable[str]
) -> None:
    """Delete the oldest revisions beyond those to keep; `is_live` names those that are in use."""
    live = set(is_live)
    unused = [each for each in revisions if name_of(each) not in live]
    limit = int(owner["spec"].get("revisionHistoryLimit", 10))
    for each in unused[: max(0, len(unused) - limit)]:
        await cluster.delete(CONTROLLER_REVISION, each)


def _ordered(revisions: list[Manifest]) -> list[Manifest]:
    return sorted(revisions, key=lambda each: (each["revision"], created_at(each), name_of(each)))


def _data(owner: Manifest) -> Manifest:
    """A patch that restores the owner's template, with sorted keys: clients compare its bytes."""
    patch = {"spec": {"template": {**owner["spec"]["template"], "$patch": "replace"}}}
    data: Manifest = msgspec.json.decode(msgspec.json.encode(patch, order="sorted"))
    return data


def _is_same(data: Any, other: Any) -> bool:
    one, two = data["spec"]["template"], other["spec"]["template"]
    return without_label(one, _NO_LABEL) == without_label(two, _NO_LABEL)


async def _created(
    cluster: Cluster, owner: Manifest, data: Manifest, revision: int, hash_label: str, collisions: int
) -> tuple[Manifest, int]:
    """A new revision, and the number of name collisions."""
    meta = owner["metadata"]
    while True:
        hash_of_data = content_hash(data, collisions)
        name = f"{meta['name'][:_MAX_PREFIX_LENGTH]}-{hash_of_data}"
        labels = labels_of(with_label(owner["spec"]["template"], hash_label, hash_of_data))
        made: Manifest = {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": name,
                "namespace": meta["namespace"],
                "labels": labels,
                "annotations": dict(annotations_of(owner)),
                "ownerReferences": [owner_reference(owner)],
            },
            "data": data,
            "revision": revision,
        }
        try:
            return await cluster.create(CONTROLLER_REVISION, meta["namespace"], made), collisions
        except RequestError as error:
            if not error.already_exists:
                raise
        known = await cluster.client.get(CONTROLLER_REVISION, meta["namespace"], name)
        by = controller_of(known)
        if by is not None and by["uid"] == meta["uid"] and _is_same(known["data"], data):
            return known, collisions
        collisions += 1
