"""A deployment's ReplicaSets: which is the new one, its name and its revision."""

from __future__ import annotations

from typing import Final, NamedTuple

from moorage.api.manifests import Manifest, annotations_of, status_of
from moorage_cluster.controllers.cluster import owner_reference
from moorage_cluster.controllers.pods import created_at
from moorage_cluster.controllers.statuses import share
from moorage_cluster.controllers.templates import content_hash, with_label, without_label

HASH_LABEL: Final = "pod-template-hash"
REVISION: Final = "deployment.kubernetes.io/revision"
REVISION_HISTORY: Final = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS: Final = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS: Final = "deployment.kubernetes.io/max-replicas"

_OWN_ANNOTATIONS: Final = frozenset(
    (
        "kubectl.kubernetes.io/last-applied-configuration",
        "deprecated.deployment.rollback.to",
        REVISION,
        REVISION_HISTORY,
        DESIRED_REPLICAS,
        MAX_REPLICAS,
    )
)
"""Annotations that deployments and their sets do not share."""
_MAX_HISTORY_LENGTH: Final = 2000
_MAX_NAME_LENGTH: Final = 253


class Sets(NamedTuple):
    """A deployment's sets: the one with its current template, if there is one, and all others."""

    new: Manifest | None
    old: list[Manifest]

    @property
    def all(self) -> list[Manifest]:
        """Old and new ones."""
        return [*self.old, self.new] if self.new is not None else list(self.old)

    @property
    def active(self) -> list[Manifest]:
        """Those with desired replicas."""
        return [each for each in self.all if size_of(each) > 0]


def size_of(replica_set: Manifest) -> int:
    """Desired replicas of a set or a deployment."""
    return int(replica_set["spec"].get("replicas", 1))


def total_size(sets: list[Manifest]) -> int:
    """Desired replicas of sets in total."""
    return sum(map(size_of, sets))


def counted(sets: list[Manifest], field: str) -> int:
    """The sum of a count over the sets' statuses."""
    return sum(int(status_of(each).get(field) or 0) for each in sets)


def by_age(sets: list[Manifest]) -> list[Manifest]:
    """Sets, the oldest first."""
    return sorted(sets, key=lambda each: (created_at(each), each["metadata"]["name"]))


def sort_out(deployment: Manifest, sets: list[Manifest]) -> Sets:
    """Which of a deployment's sets is the new one; if several could be, the oldest."""
    wanted = without_label(deployment["spec"]["template"], HASH_LABEL)
    ordered = by_age(sets)
    new = next(
        (each for each in ordered if without_label(each["spec"]["template"], HASH_LABEL) == wanted), None
    )
    return Sets(new, [each for each in ordered if each is not new])


def is_rolling(deployment: Manifest) -> bool:
    """Whether the strategy is RollingUpdate, not Recreate."""
    strategy = deployment["spec"].get("strategy") or {}
    return bool(strategy.get("type", "RollingUpdate") == "RollingUpdate")


def fenceposts(deployment: Manifest) -> tuple[int, int]:
    """maxSurge and maxUnavailable of a rolling update, as numbers of pods."""
    if not is_rolling(deployment):
        return 0, 0
    limits = (deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    size = size_of(deployment)
    surge = share(limits.get("maxSurge", 0), size, round_up=True)
    unavailable = share(limits.get("maxUnavailable", 0), size, round_up=False)
    if surge == 0 and unavailable == 0:
        # Both were rounded to zero; with both at zero nothing could ever be replaced.
        unavailable = 1
    return surge, min(unavailable, size)


def revision_of(obj: Manifest) -> int:
    """The revision of a set; 0 if it has none."""
    text = annotations_of(obj).get(REVISION, "")
    return int(text) if text.isascii() and text.isdigit() else 0


def next_revision(old: list[Manifest]) -> int:
    """The revision of the set that is newer than all old ones."""
    return max(map(revision_of, old), default=0) + 1


def replica_annotations(deployment: Manifest) -> dict[str, str]:
    """The annotations with the deployment's size on its sets, to detect a change of it."""
    size, (surge, _) = size_of(deployment), fenceposts(deployment)
    return {DESIRED_REPLICAS: str(size), MAX_REPLICAS: str(size + surge)}


def annotation_number(replica_set: Manifest, annotation: str) -> int | None:
    """A count in a set's annotation, if it is a number."""
    text = annotations_of(replica_set).get(annotation, "")
    return int(text) if text.isascii() and text.isdigit() else None


def shared_annotations(deployment: Manifest) -> dict[str, str]:
    """The annotations that a deployment passes on to its new set."""
    return {key: value for key, value in annotations_of(deployment).items() if key not in _OWN_ANNOTATIONS}


def changed_annotations(deployment: Manifest, new: Manifest, revision: int) -> dict[str, str]:
    """The annotations to change on the new set to make it a revision."""
    known = annotations_of(new)
    wanted = shared_annotations(deployment)
    before = revision_of(new)
    if before < revision:
        wanted[REVISION] = str(revision)
        if REVISION in known:
            wanted[REVISION_HISTORY] = _history(known.get(REVISION_HISTORY, ""), known[REVISION])
    return {key: value for key, value in wanted.items() if known.get(key) != value}


def _history(before: str, revision: str) -> str:
    """The revision history of a set; the oldest are dropped when there are too many."""
    revisions = [*filter(None, before.split(",")), revision]
    while len(",".join(revisions)) > _MAX_HISTORY_LENGTH and len(revisions) > 1:
        revisions.pop(0)
    return ",".join(revisions)


def new_set(deployment: Manifest, revision: int, size: int) -> Manifest:
    """The set for a deployment's current template."""
    spec, meta = deployment["spec"], deployment["metadata"]
    collisions = int(status_of(deployment).get("collisionCount") or 0)
    name_of_template = content_hash(without_label(spec["template"], HASH_LABEL), collisions)
    template = with_label(spec["template"], HASH_LABEL, name_of_template)
    selector = {
        **spec["selector"],
        "matchLabels": {**(spec["selector"].get("matchLabels") or {}), HASH_LABEL: name_of_template},
    }
    prefix = meta["name"][: _MAX_NAME_LENGTH - 1 - len(name_of_template)]
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{prefix}-{name_of_template}",
            "namespace": meta["namespace"],
            "labels": dict(template["metadata"]["labels"]),
            "annotations": {
                **shared_annotations(deployment),
                **replica_annotations(deployment),
                REVISION: str(revision),
            },
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": {
            "replicas": size,
            "minReadySeconds": spec.get("minReadySeconds", 0),
            "selector": selector,
            "template": template,
        },
    }
