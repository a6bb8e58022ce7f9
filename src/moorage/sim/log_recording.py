"""A recording from a scheduler's log and the cluster as it is afterwards.

Pods that the log shows bound are taken off their nodes, and bound again one after another, in the order of
the log. What was deleted since is not in the cluster any more: such pods are left out, and named.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from moorage.api.base import Object
from moorage.api.manifests import Manifest
from moorage.api.pod import Pod, PodStatus
from moorage.scheduler.recording_file import recorded_object
from moorage.sim.scheduler_log import LoggedAttempt


@dataclass(frozen=True, slots=True)
class LogRecording:
    """The cluster before the first attempt, a step for each attempt, and the pods that are gone."""

    objects: Sequence[Object]
    steps: Sequence[Manifest]
    missing: Sequence[str]


def recording_of_log(attempts: Sequence[LoggedAttempt], objects: Iterable[Object]) -> LogRecording:
    """A recording of the attempts, in the cluster of the objects."""
    objects = list(objects)
    pods = {obj.key: obj for obj in objects if isinstance(obj, Pod)}
    attempted = {attempt.pod for attempt in attempts}
    before = [obj for obj in objects if not (isinstance(obj, Pod) and obj.key in attempted)]
    known = [attempt for attempt in attempts if attempt.pod in pods]
    steps = [
        {"pod": recorded_object(_unbound(pods[attempt.pod])), "expect": _expectation(attempt)}
        for attempt in known
    ]
    return LogRecording(before, steps, sorted(attempted - pods.keys()))


def _unbound(pod: Pod) -> Pod:
    """A pod as it was before it was attempted."""
    return replace(pod, spec=replace(pod.spec, node_name=""), status=PodStatus())


def _expectation(attempt: LoggedAttempt) -> Manifest:
    expect: Manifest = {"node": attempt.node, "message": attempt.message}
    if attempt.scores:
        expect["scores"] = attempt.scores
    return expect
