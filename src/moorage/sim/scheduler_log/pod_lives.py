"""Which pod a log means by a name: pods with the same name follow each other.

A log names pods, it does not describe them. Their objects come from answers of the API server in the log,
which belong to the pod that had the name then, and from the cluster: if there are as many as in the log, each
is the one at the same place; if not, only a pod that exists at the log's end is known to be the last one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from moorage.api.pod import Pod
from moorage.sim.scheduler_log.happenings import (
    AttemptEnded,
    Event,
    Happening,
    LoggedAttempt,
    StoredPod,
    What,
)


@dataclass(slots=True, eq=False)
class PodLife:
    """A pod from its creation to its deletion."""

    key: str
    pod: Pod | None = None
    """Its object; None if it is not known."""
    is_added: bool = False
    """Whether its creation is in the log; if not, it existed before."""
    was_pending: bool = False
    """Whether the log has shown its creation without a node."""
    is_bound: bool = False
    """Whether the log has shown it on a node."""
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class PodHappening:
    """Something that happened to a pod. An event PENDING_POD_DELETED is a deletion."""

    happening: LoggedAttempt | AttemptEnded | Event
    life: PodLife


_POD_EVENTS = frozenset(
    (
        What.PENDING_POD_ADDED,
        What.PENDING_POD_DELETED,
        What.BOUND_POD_ADDED,
        What.BOUND_POD_UPDATED,
        What.BOUND_POD_DELETED,
        What.POD_EVICTED,
        What.NOMINATED,
        What.NODE_CLAIMED,
    )
)
_ADDITIONS = (What.PENDING_POD_ADDED, What.BOUND_POD_ADDED)
_SHOW_BOUND = (What.BOUND_POD_ADDED, What.BOUND_POD_UPDATED, What.BOUND_POD_DELETED)


class PodLives:
    """The pods of a log."""

    def __init__(self) -> None:
        self._lives: dict[str, list[PodLife]] = {}

    def named(self, happenings: Iterable[Happening]) -> Iterator[Event | PodHappening]:
        """What happened, with the pods that are meant. The objects in the log become theirs."""
        for each in happenings:
            if isinstance(each, StoredPod):
                self._last_or_new(each.pod.key).pod = each.pod
            elif isinstance(each, LoggedAttempt):
                life = self._alive(each.pod)
                life.is_bound |= each.node is not None and not each.has_begun
                yield PodHappening(each, life)
            elif isinstance(each, AttemptEnded):
                yield PodHappening(each, self._last_or_new(each.attempt.pod))
            elif each.what not in _POD_EVENTS:
                yield each
            else:
                yield from self._event(each)

    def _event(self, event: Event) -> Iterator[PodHappening]:
        if event.what is What.PENDING_POD_DELETED and event.subject not in self._lives:
            return  # It was bound or deleted where the log begins; the cluster has it, or it does not matter.
        if event.what not in _ADDITIONS and self._last_or_new(event.subject).is_over:
            return  # An eviction, say, is logged after the deletion that follows from it.
        life = self._alive(event.subject, is_added=event.what in _ADDITIONS)
        if event.what is What.PENDING_POD_DELETED and life.is_bound:
            # It is bound, and not pending any more. If nothing is known of that time, it was before the log.
            life.is_added = life.is_added and life.was_pending
            return
        life.was_pending |= event.what is What.PENDING_POD_ADDED
        life.is_bound |= event.what in _SHOW_BOUND
        life.is_over = event.what in (What.PENDING_POD_DELETED, What.BOUND_POD_DELETED)
        yield PodHappening(event, life)

    def _alive(self, key: str, *, is_added: bool = False) -> PodLife:
        """The pod that has a name now."""
        lives = self._lives.setdefault(key, [])
        if not lives or lives[-1].is_over:
            lives.append(PodLife(key, is_added=is_added))
        return lives[-1]

    def _last_or_new(self, key: str) -> PodLife:
        """The pod that has a name now, or had it last."""
        return lives[-1] if (lives := self._lives.get(key)) else self._alive(key)

    def complete(self, known: Mapping[str, Sequence[Pod]]) -> None:
        """Take objects from the cluster, where they have what happened to them since.

        known: pods by name, those with the same name in the order of their creation.
        """
        for key, lives in self._lives.items():
            pods = {pod.uid: pod for pod in known.get(key, ())}
            for life in lives:
                if life.pod is not None:
                    life.pod = pods.pop(life.pod.uid, life.pod)
            without = [life for life in lives if life.pod is None]
            if len(pods) == len(without):
                for life, pod in zip(without, pods.values(), strict=True):
                    life.pod = pod
            elif pods and lives[-1].pod is None and not lives[-1].is_over:
                lives[-1].pod = list(pods.values())[-1]

    def __contains__(self, key: object) -> bool:
        return key in self._lives
