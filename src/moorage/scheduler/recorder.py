"""Records a running scheduler: every attempt, and every change of the cluster between attempts.

Changes are recorded as the informers deliver them to the cache, and attempts as they are decided, in one
order: that of the scheduler's loop. A replay therefore decides in the state in which the scheduler did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from msgspec.structs import replace

from moorage.api.base import Object
from moorage.api.manifests import Manifest
from moorage.api.pod import Pod
from moorage.client.informer import EventType, Informer
from moorage.engine.decision import Decision
from moorage.engine.group_choices import GroupChoices
from moorage.engine.group_result import GroupDecision, member_message
from moorage.engine.placement_trials import NotedChoices
from moorage.framework.interface.pod_groups import PodGroupInfo
from moorage.klog import Logger
from moorage.queue.queued_pod import QueuedPod
from moorage.scheduler.observers import Observer
from moorage.scheduler.recorded_group import group_attempt, refused_group, scores_by_node
from moorage.scheduler.recording_file import RecordingFile, change_steps, recorded_object
from moorage.scheduler.watched_kinds import CustomObject

log = Logger(__name__)

_UNKNOWN_TYPES: Final = (CustomObject,)
"""Types of objects that recordings do not have."""


class Recorder(Observer):
    """Writes attempts and changes to a file, until it is closed or cannot be written."""

    def __init__(self, file: RecordingFile) -> None:
        super().__init__()
        self._file: RecordingFile | None = file
        self._informers: list[Informer[Any]] = []
        self._changes: list[tuple[bool, Object]] = []
        """Changes since the last step: whether the object was deleted, and the object."""
        self._open: set[str] = set()
        """Uids of pods for which a node was chosen, and that are not bound yet."""
        self._choices: NotedChoices | None = None
        """What is tried for the group whose cycle runs."""

    def observe_informers(self, informers: Sequence[Informer[Any]]) -> None:
        """Record the changes of these informers."""
        self.follow(informers)
        for informer in informers:
            informer.listeners.append(self.changed)

    def follow(self, informers: Sequence[Informer[Any]]) -> None:
        """The cluster is what these informers have; their changes are reported to `changed`."""
        self._informers += informers

    def begin(self) -> None:
        """Record the cluster before the first attempt."""
        if self._file is not None and not self._file.has_begun:
            self._write(lambda file: file.begin(self._objects()))

    def decided(self, queued: QueuedPod, decision: Decision) -> None:
        """Record an attempt."""
        if self._file is None:
            return
        if decision.node is not None:
            self._open.add(queued.uid)
        self.record(pod_attempt(decision.pod, expectation(decision)))

    def group_choices(self, choices: GroupChoices) -> GroupChoices:
        """Note what is tried in the next cycle of a group."""
        self._choices = None if self._file is None else NotedChoices(choices)
        return self._choices or choices

    def group_decided(self, decision: GroupDecision) -> None:
        """Record a group's attempt."""
        choices, self._choices = self._choices, None
        if choices is None:
            return
        for result in decision.leaves():
            placed = (each.pod.uid for each in result.members if member_message(result, each) is None)
            self._open.update(placed)
        self.record(group_attempt(decision, choices.trials(decision)))

    def group_refused(self, root: PodGroupInfo, problem: str) -> None:
        """Record the attempt of a group that has no cycle."""
        self.record(refused_group(root, problem))

    def bound(self, queued: QueuedPod, now: float) -> None:
        """A pod was bound."""
        self._open.discard(queued.uid)

    def failed(self, queued: QueuedPod, reason: str, message: str = "") -> None:
        """An attempt failed; a pod that had a node does not count there any more."""
        if queued.uid in self._open:
            self._open.discard(queued.uid)
            self._note(True, queued.pod)

    def record(self, attempt: Manifest) -> None:
        """Record an attempt, after the changes since the last one."""
        if self._file is None:
            return
        self.begin()
        steps = [*change_steps(self._changes), attempt]
        self._changes.clear()
        self._write(lambda file: file.add(*steps))

    def _write(self, write: Callable[[RecordingFile], None]) -> None:
        """Write to the file; recording ends if that fails."""
        if self._file is None:
            return
        try:
            write(self._file)
        except OSError as error:
            log.error(error.strerror or error, "Failed to write the recording; recording has ended")
            self.close()

    def close(self) -> None:
        """End the recording."""
        if self._file is not None:
            self._file.close()
            self._file = None
            self._changes.clear()

    def _objects(self) -> Iterable[Object]:
        objects = (obj for informer in self._informers for obj in informer.objects.values())
        return (obj for obj in objects if not isinstance(obj, _UNKNOWN_TYPES) and _counts(obj))

    def changed(self, type: EventType, obj: Object, before: Object | None) -> None:
        """An object was added, updated or deleted."""
        if self._file is None or not self._file.has_begun or isinstance(obj, _UNKNOWN_TYPES):
            return
        if type == "DELETED":
            self._note(True, obj)
        elif (_counts(obj) or (before is not None and _counts(before))) and not _same(obj, before):
            self._note(False, obj)

    def _note(self, is_deleted: bool, obj: Object) -> None:
        self._changes.append((is_deleted, obj))


def _counts(obj: Object) -> bool:
    """Whether an object has an effect on decisions about other pods."""
    return not isinstance(obj, Pod) or bool(obj.spec.node_name or obj.status.nominated_node_name)


def _same(obj: Object, before: Object | None) -> bool:
    """Whether an object has changed in nothing that is recorded but its version."""
    if before is None or obj.metadata.uid != before.metadata.uid:
        return False
    meta = replace(before.metadata, resource_version=obj.metadata.resource_version)
    return obj == replace(before, metadata=meta)


def pod_attempt(pod: Pod, expect: Manifest) -> Manifest:
    """An attempt of a pod, as a step."""
    return {"pod": recorded_object(pod), "expect": expect}


def expectation(decision: Decision) -> Manifest:
    """A decision as recordings have it."""
    expect: Manifest = {
        "node": decision.node,
        "scores": scores_by_node(decision),
        "message": decision.message or None,
    }
    arranged = decision.post_filter
    if decision.node is None:
        expect["victims"] = []
    if arranged is not None and arranged.nominated_node is not None:
        evicted = arranged.tied().get(arranged.nominated_node, ())
        expect["nominated"] = arranged.nominated_node
        expect["victims"] = sorted(victim.key for victim in evicted)
    return expect
