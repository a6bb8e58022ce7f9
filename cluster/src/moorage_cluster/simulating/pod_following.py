"""What happens to pods and nodes of a simulated API server, noted as it happens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from moorage.api.decode import convert
from moorage.api.manifests import Manifest, annotations_of
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.simulation.records import Outcome, Records
from moorage.simulation.simulator import outcome_of_deleted
from moorage.simulation.workload import DURATION
from moorage_cluster.apiserver.store import Change, Collection

_OUTCOMES: Final = {"Succeeded": Outcome.COMPLETED, "Failed": Outcome.FAILED}
"""What has become of a pod, by its phase."""


class PodFollowing:
    """Notes changes in records, and knows which pods will end.

    is_begun: whether the cluster is complete; pods that have a node before that are no part of the workload.
    deleted: called with a pod that has been deleted before it ended. ended: called after each end of a pod.
    """

    def __init__(
        self,
        records: Records,
        is_begun: Callable[[], bool],
        deleted: Callable[[Pod], None],
        ended: Callable[[], None],
    ) -> None:
        self.changes = 0
        """Number of changes of pods."""
        self._records = records
        self._is_begun = is_begun
        self._deleted = deleted
        self._ended = ended
        self._current: dict[str, bool] = {}
        """The pods that have not ended, by uid: whether they have a node."""
        self._finite: set[str] = set()

    @property
    def has_finite_pods(self) -> bool:
        """Whether there are pods on nodes that will end."""
        return bool(self._finite)

    def changed(self, collection: Collection, change: Change) -> None:
        """An object was created, changed or deleted."""
        if collection.name == "/pods":
            self.changes += 1
            self._pod_changed(change.type, change.stored.obj)
        elif collection.name == "/nodes" and change.type == "ADDED":
            self._records.node_added(convert(change.stored.obj, Node))
        elif collection.name == "/nodes" and change.type == "DELETED":
            self._records.node_removed(convert(change.stored.obj, Node))

    def _pod_changed(self, type: str, obj: Manifest) -> None:
        uid, has_node = obj["metadata"]["uid"], bool(obj["spec"].get("nodeName"))
        outcome = _outcome(obj)
        if uid not in self._current:
            if type == "DELETED" or outcome is not None:
                return
            self._arrived(uid, obj, has_node)
        if has_node and not self._current[uid]:
            self._bound(uid, obj)
        if outcome is not None:
            self._end(uid, obj, outcome)
        elif type == "DELETED":
            pod = convert(obj, Pod)
            self._end(uid, obj, outcome_of_deleted(pod))
            self._deleted(pod)

    def _arrived(self, uid: str, obj: Manifest, has_node: bool) -> None:
        self._current[uid] = False
        if not has_node or self._is_begun():
            self._records.arrived(convert(obj, Pod))

    def _bound(self, uid: str, obj: Manifest) -> None:
        self._current[uid] = True
        self._records.bound(convert(obj, Pod))
        if ends(obj):
            self._finite.add(uid)

    def _end(self, uid: str, obj: Manifest, outcome: Outcome) -> None:
        del self._current[uid]
        self._finite.discard(uid)
        self._records.ended(convert(obj, Pod), outcome)
        self._ended()


def _outcome(pod: Manifest) -> Outcome | None:
    """What has become of a pod that has ended by itself; containers of a pod that is deleted fail, too."""
    is_deleted = "deletionTimestamp" in pod["metadata"]
    return None if is_deleted else _OUTCOMES.get((pod.get("status") or {}).get("phase", ""))


def ends(pod: Manifest) -> bool:
    """Whether the containers of a pod end by themselves, and for good."""
    said = (key == DURATION or key.startswith(f"{DURATION}.") for key in annotations_of(pod))
    return pod["spec"].get("restartPolicy") != "Always" and any(said)
