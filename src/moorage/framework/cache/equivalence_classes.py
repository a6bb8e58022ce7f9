"""Equivalence classes of pods: pods of one class get equal answers where nothing has changed.

Two pods are of one class if and only if namespace, labels, spec and managing owner are equal, but for the
names of their volume claims and of their group: pods made from one template. A plugin keeps what it has
computed for a class there (`EquivalenceClass.write`), under a key of its own; it is freed with the class.

Classes are bounded in number, and each in size: the least recently used is evicted first, also while there
are pods of it, and a class may outlive its pods. Pods with very large specs, and those beyond the limits of
`api.limits`, have no class.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from moorage.api.limits import PodLimitError, check_pod, count_pod_terms
from moorage.api.pod import Pod, PodSpec
from moorage.api.remembered import IdentityCache
from moorage.api.selectors import named_nodes
from moorage.cluster.pod_table import PodInfo
from moorage.framework.interface.cycle_state import StateKey
from moorage.queue.equivalence_key import equivalence_key

T = TypeVar("T")

_MAX_BYTES: Final = 160 << 20
"""Maximum size of what all classes together hold."""
_CLASS_BYTES: Final = 8192
"""Size of what a class holds, besides its pod and its rows."""
_BYTES_PER_KEY_BYTE: Final = 16
"""Size of a class's pod, and of what plugins parse of it, for each byte of the class's key."""
_ROW_BYTES: Final = 14
"""Size of what a class holds for each node: the filter result, the feasible rows, and the total score."""
_MIN_CLASSES: Final = 16
"""Number of classes that are kept for any number of rows."""
MAX_CLASS_BYTES: Final = 16_384
"""Maximum size of the key of a class for which anything is cached."""
MAX_COUNTED_TERMS: Final = 16
"""Maximum number of inter-pod affinity terms and spread constraints of such a class.

Each of them has counts by domain: some 100 KB at 5,000 nodes, if every node is a domain."""


class EquivalenceClass:
    """What pods of one class have in common; compared by identity.

    key: equal for these pods alone.
    is_named: they differ in the one node that each of them requires by name, as the pods of a DaemonSet do.
    size_bytes: the estimated size of what the class holds.
    """

    __slots__ = ("_first", "_values", "is_named", "key", "size_bytes")

    def __init__(self, first: Pod, *, is_named: bool, key: bytes = b"", size_bytes: int = 0) -> None:
        self.key = key
        self.is_named = is_named
        self.size_bytes = size_bytes
        self._values: dict[StateKey[Any], Any] = {}
        # Annotations can be large, and scheduling does not read those of pods.
        self._first = PodInfo(replace(first, metadata=replace(first.metadata, annotations={})))

    def write(self, key: StateKey[T], value: T) -> None:
        """Keep a value for the pods of the class."""
        self._values[key] = value

    def read(self, key: StateKey[T]) -> T | None:
        """The value that was kept, or None."""
        return self._values.get(key)

    @property
    def spec(self) -> PodSpec:
        """The spec of the first pod."""
        return self._first.pod.spec

    def has_same_spec(self, pod: Pod) -> bool:
        """Whether a pod is of this class because it shares the first pod's spec, which is one object."""
        first = self._first.pod
        mine, its = first.metadata, pod.metadata
        return (
            first.spec is pod.spec
            and mine.labels == its.labels
            and mine.namespace == its.namespace
            and mine.owner_references == its.owner_references
        )

    def info(self, pod: Pod) -> PodInfo | None:
        """The `PodInfo` shared by pods of this class; None if it terminates or has container statuses."""
        return None if pod.terminating or pod.status.container_statuses else self._first


class EquivalenceClasses:
    """The most recently used equivalence classes."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, EquivalenceClass] = OrderedDict()
        self._by_spec: dict[int, EquivalenceClass] = {}
        """By the identity of the first pod's spec, the latest of the classes: pods often share specs."""
        self._size_bytes = 0
        self._exceeded = IdentityCache(_exceeded)

    def of(self, pod: Pod, rows: int) -> EquivalenceClass | None:
        """The equivalence class of a pod; None if nothing is cached for it. rows: the number of nodes.

        PodLimitError if the pod exceeds a limit, which is checked once for each class or pod.
        """
        if error := self._exceeded.get(pod):
            raise PodLimitError(error)
        found = self._by_spec.get(id(pod.spec))
        if found is None or not found.has_same_spec(pod):
            found = self._by_key(pod, rows)
            if found is None:
                return None
        self._known.move_to_end(found.key)
        return found

    def _by_key(self, pod: Pod, rows: int) -> EquivalenceClass | None:
        names = named_nodes(pod)
        is_named = names is not None and len(names) == 1
        key = equivalence_key(_unnamed(pod) if is_named else pod, any_claims=True, any_group=True)
        key += b"named" if is_named else b""
        found = self._known.get(key)
        if found is None:
            if error := self._exceeded(pod):
                raise PodLimitError(error)
            if _is_too_large(pod, key):
                return None
            size_bytes = _CLASS_BYTES + _BYTES_PER_KEY_BYTE * len(key) + _ROW_BYTES * rows
            found = EquivalenceClass(pod, is_named=is_named, key=key, size_bytes=size_bytes)
            self._known[key] = self._by_spec[id(pod.spec)] = found
            self._make_room(size_bytes)
        return found

    def _make_room(self, size_bytes: int) -> None:
        """Evict the least recently used classes beyond the limit, after one was added."""
        self._size_bytes += size_bytes
        while self._size_bytes > _MAX_BYTES and len(self._known) > _MIN_CLASSES:
            evicted = self._known.popitem(last=False)[1]
            self._size_bytes -= evicted.size_bytes
            if self._by_spec.get(id(evicted.spec)) is evicted:
                del self._by_spec[id(evicted.spec)]


def _exceeded(pod: Pod) -> str:
    """The error of a pod that exceeds a limit; empty if it exceeds none."""
    try:
        check_pod(pod)
    except PodLimitError as error:
        return str(error)
    return ""


def _is_too_large(pod: Pod, key: bytes) -> bool:
    """Whether a pod is too large for an equivalence class."""
    return (
        len(key) > MAX_CLASS_BYTES
        or count_pod_terms(pod) + len(pod.spec.topology_spread_constraints) > MAX_COUNTED_TERMS
    )


def _unnamed(pod: Pod) -> Pod:
    """A copy of a pod without the node that it requires by name."""
    affinity = pod.spec.affinity
    assert affinity is not None
    assert affinity.node_affinity is not None
    anywhere = replace(affinity.node_affinity, required_during_scheduling_ignored_during_execution=None)
    return replace(pod, spec=replace(pod.spec, affinity=replace(affinity, node_affinity=anywhere)))
