"""A recording from a scheduler's log and the cluster.

The log is followed from its beginning: nodes and pods come and go when it says so, and every attempt whose
state is known becomes a step. An attempt is left out if something was in the cluster that nothing describes,
such as a pod that was deleted since; what follows from it is applied nevertheless.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain
from typing import Final, TypeVar

from moorage.api.base import Object
from moorage.api.manifests import Manifest
from moorage.api.node import Node
from moorage.api.persistent_volumes import WAIT_FOR_FIRST_CONSUMER, claim_class
from moorage.api.pod import Pod
from moorage.api.storage import PersistentVolumeClaim, StorageClass
from moorage.plugins.volumes.persistent_volume_claims import claim_uses
from moorage.scheduler.recording_file import change_steps, recorded_object
from moorage.sim.scheduler_log.cluster_in_log import ClusterInLog
from moorage.sim.scheduler_log.happenings import (
    AttemptEnded,
    Event,
    Happening,
    LoggedAttempt,
    StoredPod,
    What,
)
from moorage.sim.scheduler_log.logged_nodes import LoggedNodes, node_versions
from moorage.sim.scheduler_log.pod_lives import PodLife, PodLives

T = TypeVar("T", bound=Object)

_MIN_SAMPLE: Final = 100
"""Number of feasible nodes below which the search goes on, in any configuration."""


class Reason(StrEnum):
    """Why an attempt is left out."""

    UNKNOWN_POD = "the pod is in no file, and not in the cluster any more"
    UNKNOWN_STATE = "pods or nodes that are not known any more were in the cluster then"
    INCOMPLETE = "the log does not have its beginning, or not its end"
    FAILED = "it ended with an error, or after a node had been chosen"
    UNKNOWN_NOMINATIONS = "pods may have been nominated to nodes before the log begins"
    CLAIMS = "the log does not say what the pod's claims were like then"
    MEMBER = "the pod is a member of a group"
    OTHER_SCHEDULER = "the pod's scheduler is not in the configuration"


@dataclass(slots=True)
class LogRecording:
    """The cluster before the first attempt, steps, and the attempts that are left out."""

    objects: Sequence[Object] = ()
    steps: list[Manifest] = field(default_factory=list)
    attempt_count: int = 0
    """Number of attempts among the steps."""
    unscored_count: int = 0
    """Number of attempts of which the log does not have the scores."""
    left_out: dict[Reason, list[str]] = field(default_factory=dict)
    """The pods of attempts that are left out."""
    unknown: set[str] = field(default_factory=set)
    """Pods and nodes that are not known."""
    updated_nodes: set[str] = field(default_factory=set)
    """Nodes that were updated during the log, in a way that is not known."""


def at_several_times(objects: Iterable[Object]) -> list[list[Object]]:
    """Objects as several states of the cluster: the next one begins where an object is there again."""
    states: list[list[Object]] = []
    seen: set[tuple[type[Object], str]] = set()
    for obj in objects:
        if not states or (type(obj), obj.key) in seen:
            states.append([])
            seen.clear()
        states[-1].append(obj)
        seen.add((type(obj), obj.key))
    return states


def recording_of_log(
    happenings: Sequence[Happening], states: Sequence[Sequence[Object]], schedulers: Iterable[str]
) -> LogRecording:
    """A recording of a log.

    states: the cluster at one or several times, oldest first; the last one is that after the log.
    schedulers: the names of the profiles.
    """
    return _Recorder(happenings, states, frozenset(schedulers)).record()


class _Recorder:
    def __init__(
        self,
        happenings: Sequence[Happening],
        states: Sequence[Sequence[Object]],
        schedulers: frozenset[str],
    ) -> None:
        objects = list(chain.from_iterable(states))
        last = list(states[-1]) if states else []
        pods: dict[str, dict[str, Pod]] = {}
        for pod in _of(Pod, objects):
            pods.setdefault(pod.key, {})[pod.uid] = pod
        lives = PodLives()
        self._happenings = list(lives.named(happenings))
        lives.complete({key: list(known.values()) for key, known in pods.items()})
        nodes = LoggedNodes(
            node_versions(_of(Node, objects)), [node.name for node in _of(Node, last)], happenings
        )
        self._cluster = ClusterInLog(nodes)
        self._schedulers = schedulers
        self._others = [each for each in last if not isinstance(each, Pod | Node)]
        self._late_claims = _late_claims(self._others)
        self._made = LogRecording()
        self._has_begun = False
        if not _is_from_start(happenings):
            unmentioned = (pod for pod in _of(Pod, last) if pod.key not in lives)
            self._cluster.begin(unmentioned, self._happenings)

    def record(self) -> LogRecording:
        """Follow the log."""
        for each in self._happenings:
            if isinstance(each, Event):
                self._cluster.change_nodes(each)
            elif isinstance(each.happening, LoggedAttempt):
                self._attempt(each.happening, each.life)
            elif isinstance(each.happening, AttemptEnded):
                self._cluster.end_attempt(each.happening.attempt, each.life)
            else:
                self._cluster.change_pod(each.happening, each.life)
        self._begin()
        self._made.unknown = self._cluster.ever_unknown
        self._made.updated_nodes = self._cluster.nodes.updated
        return self._made

    def _begin(self) -> None:
        """Everything up to the first attempt is the cluster that the recording begins with."""
        if not self._has_begun:
            self._has_begun = True
            self._made.objects = [*self._others, *self._cluster.present()]
            self._cluster.take_changes()

    def _attempt(self, attempt: LoggedAttempt, life: PodLife) -> None:
        self._begin()
        reason = self._reason_to_leave_out(attempt, life.pod)
        if reason is None:
            pod = self._cluster.pending(life)
            self._made.steps += change_steps(self._cluster.take_changes())
            expect = _expectation(attempt, self._cluster.node_count)
            self._made.steps.append({"pod": recorded_object(pod), "expect": expect})
            self._made.attempt_count += 1
            self._made.unscored_count += attempt.feasible_count > 1 and "scores" not in expect
        else:
            self._made.left_out.setdefault(reason, []).append(attempt.pod)
        self._cluster.attempt(attempt, life, is_step=reason is None)

    def _reason_to_leave_out(self, attempt: LoggedAttempt, pod: Pod | None) -> Reason | None:
        if pod is None:
            return Reason.UNKNOWN_POD
        applies = {
            Reason.OTHER_SCHEDULER: pod.spec.scheduler_name not in self._schedulers,
            Reason.MEMBER: attempt.is_member,
            Reason.INCOMPLETE: not (attempt.has_begun and attempt.has_ended),
            Reason.FAILED: attempt.is_failed,
            Reason.CLAIMS: self._has_late_claims(pod),
            Reason.UNKNOWN_STATE: self._cluster.is_uncertain,
            Reason.UNKNOWN_NOMINATIONS: self._cluster.has_unknown_nominations,
        }
        return next((reason for reason, does in applies.items() if does), None)

    def _has_late_claims(self, pod: Pod) -> bool:
        """Whether claims of a pod were bound or allocated when it was scheduled."""
        used = (f"{pod.namespace}/{use.name}" for use in claim_uses(pod))
        return bool(pod.spec.resource_claims) or any(key in self._late_claims for key in used)


def _of(kind: type[T], objects: Iterable[Object]) -> Iterator[T]:
    return (each for each in objects if isinstance(each, kind))


def _late_claims(objects: Sequence[Object]) -> set[str]:
    """The claims that are bound when their first pod is scheduled."""
    modes = {each.name: each.volume_binding_mode for each in _of(StorageClass, objects)}
    claims = _of(PersistentVolumeClaim, objects)
    return {claim.key for claim in claims if modes.get(claim_class(claim)) == WAIT_FOR_FIRST_CONSUMER}


def _is_from_start(happenings: Iterable[Happening]) -> bool:
    """Whether a log begins with the scheduler's start, and so with everything that it saw."""
    first = next((each for each in happenings if not isinstance(each, StoredPod)), None)
    return isinstance(first, Event) and first.what is What.SCHEDULER_STARTED


def _expectation(attempt: LoggedAttempt, node_count: int) -> Manifest:
    """What a log says of an attempt's result.

    node_count: number of nodes in the cluster.
    """
    if attempt.node is None:
        expect: Manifest = {"node": None, "message": attempt.message, "scores": {}}
        if (victims := attempt.known_victims) is not None:
            expect["victims"] = victims
        if attempt.nominated is not None:
            expect["nominated"] = attempt.nominated
        return expect
    expect = {"node": attempt.node, "message": None}
    feasible, evaluated = len(attempt.scores), attempt.evaluated_count
    if attempt.scores and feasible == attempt.feasible_count:
        expect["scores"] = attempt.scores
        if feasible >= _MIN_SAMPLE and evaluated < node_count:
            expect["sampled"] = True
    elif attempt.feasible_count == 1 and evaluated == node_count:
        expect["scores"] = {attempt.node: {}}
    return expect
