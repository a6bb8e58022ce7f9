"""A deployment's ReplicaSets: which is the new one, what it is called, and which revision it is."""

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
_LONGEST_HISTORY: Final = 2000
_LONGEST_NAME: Final = 253


class Sets(NamedTuple):
    """A deployment's sets: the one with its present template, if there is one, and all others."""

    new: Manifest | None
    old: list[Manifest]

    @property
    def all(self) -> list[Manifest]:
        """Old and new ones."""
        return [*self.old, self.new] if self.new is not None else list(self.old)

    @property
    def active(self) -> list[Manifest]:
        """Those that ought to have pods."""
        return [each for each in self.all if size_of(each) > 0]


def size_of(replica_set: Manifest) -> int:
    """How many pods a set, or a deployment, is to have."""
    return int(replica_set["spec"].get("replicas", 1))


def total_size(sets: list[Manifest]) -> int:
    """How many pods sets are to have together."""
    return sum(map(size_of, sets))


def counted(sets: list[Manifest], field: str) -> int:
    """A count of sets' statuses, added up."""
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
    """Whether old pods are replaced bit by bit instead of all at once."""
    strategy = deployment["spec"].get("strategy") or {}
    return bool(strategy.get("type", "RollingUpdate") == "RollingUpdate")


def fenceposts(deployment: Manifest) -> tuple[int, int]:
    """How many pods there may be too many, and too few, during a rolling update."""
    if not is_rolling(deployment):
        return 0, 0
    limits = (deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    size = size_of(deployment)
    surge = share(limits.get("maxSurge", 0), size, round_up=True)
    unavailable = share(limits.get("maxUnavailable", 0), size, round_up=False)
    if surge == 0 and unavailable == 0:
        # Both were rounded away; without either nothing could ever be replaced.
        unavailable = 1
    return surge, min(unavailable, size)


def revision_of(obj: Manifest) -> int:
    """Which revision a set is; 0 if it does not say."""
    text = annotations_of(obj).get(REVISION, "")
    return int(text) if text.isascii() and text.isdigit() else 0


def next_revision(old: list[Manifest]) -> int:
    """The revision of the set that is newer than all old ones."""
    return max(map(revision_of, old), default=0) + 1


def replica_annotations(deployment: Manifest) -> dict[str, str]:
    """What a set is told of its deployment's size, so that a change of it can be noticed."""
    size, (surge, _) = size_of(deployment), fenceposts(deployment)
    return {DESIRED_REPLICAS: str(size), MAX_REPLICAS: str(size + surge)}


def annotation_number(replica_set: Manifest, annotation: str) -> int | None:
    """A count that a set was told, if it is one."""
    text = annotations_of(replica_set).get(annotation, "")
    return int(text) if text.isascii() and text.isdigit() else None


def shared_annotations(deployment: Manifest) -> dict[str, str]:
    """The annotations that a deployment passes on to its new set."""
    return {key: value for key, value in annotations_of(deployment).items() if key not in _OWN_ANNOTATIONS}


def changed_annotations(deployment: Manifest, new: Manifest, revision: int) -> dict[str, str]:
    """The annotations of the new set that are to be changed, so that it is a revision."""
    known = annotations_of(new)
    wanted = shared_annotations(deployment)
    before = revision_of(new)
    if before < revision:
        wanted[REVISION] = str(revision)
        if REVISION in known:
            wanted[REVISION_HISTORY] = _history(known.get(REVISION_HISTORY, ""), known[REVISION])
    return {key: value for key, value in wanted.items() if known.get(key) != value}


def _history(before: str, revision: str) -> str:
    """The revisions that a set has been, the oldest forgotten when there are too many."""
    revisions = [*filter(None, before.split(",")), revision]
    while len(",".join(revisions)) > _LONGEST_HISTORY and len(revisions) > 1:
        revisions.pop(0)
    return ",".join(revisions)


def new_set(deployment: Manifest, revision: int, size: int) -> Manifest:
    """The set for a deployment's present template."""
    spec, meta = deployment["spec"], deployment["metadata"]
    collisions = int(status_of(deployment).get("collisionCount") or 0)
    name_of_template = content_hash(without_label(spec["template"], HASH_LABEL), collisions)
    template = with_label(spec["template"], HASH_LABEL, name_of_template)
    selector = {
        **spec["selector"],
        "matchLabels": {**(spec["selector"].get("matchLabels") or {}), HASH_LABEL: name_of_template},
    }
    prefix = meta["name"][: _LONGEST_NAME - 1 - len(name_of_template)]
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
