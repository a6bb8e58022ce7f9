"""Which pod of one run is which pod of another.

Names are not enough: a pod that is created again after an eviction gets a generated name, and pods may be
evicted in one run and not in the other. A pod is therefore known by its origin, the name that names are
generated from, and its incarnation: how many pods of that origin were created before it.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from moorage.api.pod import Pod
from moorage.simulation.records import PodRecord


class PodIdentity(NamedTuple):
    """What a pod has in common with the same pod of another run."""

    namespace: str
    origin: str
    incarnation: int = 0

    def __str__(self) -> str:
        again = f" (created again, {self.incarnation})" if self.incarnation else ""
        return f"{self.namespace}/{self.origin}{again}"


class Identities:
    """The identities of the pods of a run, which are told of in the order in which they are created."""

    def __init__(self) -> None:
        self._created: Counter[tuple[str, str]] = Counter()
        self._by_uid: dict[str, PodIdentity] = {}
        self._by_name: defaultdict[tuple[str, str], deque[PodIdentity]] = defaultdict(deque)
        """The identities of pods with a name, which several may have had, one after another."""

    def add(self, pod: Pod) -> None:
        """A pod was created."""
        origin = pod.namespace, pod.metadata.generate_name.removesuffix("-") or pod.name
        identity = PodIdentity(*origin, self._created[origin])
        self._created[origin] += 1
        self._by_uid[pod.uid] = identity
        self._by_name[pod.namespace, pod.name].append(identity)

    def remove(self, pod: Pod) -> None:
        """A pod is gone."""
        self._by_uid.pop(pod.uid, None)

    def of(self, uid: str) -> PodIdentity | None:
        """The identity of a pod that is there."""
        return self._by_uid.get(uid)

    def records(self, records: Iterable[PodRecord]) -> Iterator[tuple[PodIdentity, PodRecord]]:
        """The records of a run that has ended, by identity; to be called once."""
        for record in records:
            known = self._by_name[record.namespace, record.name]
            yield known.popleft() if known else PodIdentity(record.namespace, record.name), record
