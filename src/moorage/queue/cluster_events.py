"""Cluster events, in the vocabulary of plugins and metrics.

A `ClusterEvent` is a kind of object and an action on it. A plugin that rejects pods registers the events that
may make them schedulable; each can have a queueing hint, a function of the pod and the object before and
after that returns whether this event may make this pod schedulable.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from enum import IntFlag, StrEnum, auto
from functools import cache
from typing import Any

from moorage.api.pod import Pod


class Resource(StrEnum):
    """The kinds of objects that events are about; custom kinds are `plural.version.group`."""

    POD = "Pod"
    """Any pod. Events that occur are about one of the next three; plugins may register those, too."""
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULED_POD = "UnscheduledPod"
    """A pod without a node, other than the one that a hint is asked about."""
    TARGET_POD = "TargetPod"
    """The pod that a hint is asked about."""
    UNSCHEDULABLE_POD = "UnschedulablePod"
    """The two before in one, as v1.36 has it."""
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    CSI_NODE = "storage.k8s.io/CSINode"
    CSI_DRIVER = "storage.k8s.io/CSIDriver"
    CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
    STORAGE_CLASS = "storage.k8s.io/StorageClass"
    VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
    RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
    RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
    DEVICE_CLASS = "resource.k8s.io/DeviceClass"
    POD_GROUP = "scheduling.k8s.io/PodGroup"
    COMPOSITE_POD_GROUP = "scheduling.k8s.io/CompositePodGroup"
    ANY = "*"


class Action(IntFlag):
    """What happened to an object. Updates of nodes and pods are divided by what was updated."""

    ADD = auto()
    DELETE = auto()

    UPDATE_NODE_ALLOCATABLE = auto()
    UPDATE_NODE_LABEL = auto()
    UPDATE_NODE_TAINT = auto()
    """The taints changed, or the node was uncordoned."""
    UPDATE_NODE_CONDITION = auto()
    UPDATE_NODE_ANNOTATION = auto()
    UPDATE_NODE_DECLARED_FEATURE = auto()

    UPDATE_POD_LABEL = auto()
    UPDATE_POD_SCALE_DOWN = auto()
    """Some request became smaller."""
    UPDATE_POD_SCALE_UP = auto()
    """Some request became larger; in v1.36 that is an update of no particular field."""
    UPDATE_POD_TOLERATION = auto()
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = auto()
    """The last scheduling gate was removed."""
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = auto()
    """The list of claims generated for the pod changed."""

    UPDATE = (
        UPDATE_NODE_ALLOCATABLE
        | UPDATE_NODE_LABEL
        | UPDATE_NODE_TAINT
        | UPDATE_NODE_CONDITION
        | UPDATE_NODE_ANNOTATION
        | UPDATE_NODE_DECLARED_FEATURE
        | UPDATE_POD_LABEL
        | UPDATE_POD_SCALE_DOWN
        | UPDATE_POD_SCALE_UP
        | UPDATE_POD_TOLERATION
        | UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        | UPDATE_POD_GENERATED_RESOURCE_CLAIM
    )
    """Any update; for an event that occurred: an update that none of the other actions describes."""
    ALL = ADD | DELETE | UPDATE


_SUBKINDS: dict[str, tuple[str, ...]] = {
    Resource.POD: (
        Resource.ASSIGNED_POD,
        Resource.UNSCHEDULED_POD,
        Resource.TARGET_POD,
        Resource.UNSCHEDULABLE_POD,
    ),
    Resource.UNSCHEDULED_POD: (Resource.UNSCHEDULABLE_POD,),
    Resource.TARGET_POD: (Resource.UNSCHEDULABLE_POD,),
}
"""The resources that a registration covers besides its own."""


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """An action on an object of a kind: one that occurred, or one that a plugin registers.

    name: its name in metrics, where that is not kind and action.
    label: its name in logs and metrics, such as `NodeAdd` or `NodeUpdateNodeTaint`.
    is_wildcard: it matches everything: pods are requeued regardless of the plugins that rejected them.
    """

    resource: str
    action: Action
    name: str = ""
    label: str = field(init=False, repr=False, compare=False)
    is_wildcard: bool = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)
    """Computed once: events are looked up at every change, and flags are slow to hash."""

    def __post_init__(self) -> None:
        words = (self.action.name or "").split("_")
        label = self.name or f"{self.resource}{''.join(word.capitalize() for word in words)}"
        object.__setattr__(self, "label", label)
        is_wildcard = self.resource == Resource.ANY and self.action == Action.ALL
        object.__setattr__(self, "is_wildcard", is_wildcard)
        object.__setattr__(self, "_hash", hash((self.resource, self.action, self.name)))

    def __hash__(self) -> int:
        return self._hash

    def covers(self, happened: ClusterEvent) -> bool:
        """Whether this event, as registered, matches one that occurred: the same or a more specific one."""
        if self.is_wildcard:
            return True
        subkinds = _SUBKINDS.get(self.resource, ())
        same_kind = self.resource in (Resource.ANY, happened.resource) or happened.resource in subkinds
        return same_kind and happened.action in self.action

    def shown(self) -> dict[str, object]:
        """The event as the log shows it where its label is not enough."""
        return {"Resource": self.resource, "ActionType": int(self.action), "CustomLabel": self.name}


@cache
def event(resource: str, action: Action) -> ClusterEvent:
    """The event for an action on a kind; cached, because events are created at every change.

    The cache is bounded by the kinds that plugins watch.
    """
    return ClusterEvent(resource, action)


ASSIGNED_POD_ADD = event(Resource.ASSIGNED_POD, Action.ADD)
ASSIGNED_POD_DELETE = event(Resource.ASSIGNED_POD, Action.DELETE)
NODE_ADD = event(Resource.NODE, Action.ADD)
NODE_DELETE = event(Resource.NODE, Action.DELETE)

UNSCHEDULABLE_TIMEOUT = ClusterEvent(Resource.ANY, Action.ALL, "UnschedulableTimeout")
"""A pod was unschedulable for the maximum time and is requeued without any other event."""
FORCE_ACTIVATE = ClusterEvent(Resource.ANY, Action.ALL, "ForceActivate")
"""A plugin requested that a pod is scheduled now."""

SCHEDULE_ATTEMPT_FAILURE = "ScheduleAttemptFailure"
BACKOFF_COMPLETE = "BackoffComplete"
POP_FROM_BACKOFF = "PopFromBackoffQ"
"""Names in metrics for moves between queues that no cluster event causes."""


Hint = Callable[[Pod, Any, Any], bool]
"""A queueing hint: whether an event may make a pod schedulable. Arguments: a pod that the plugin rejected,
the
object before (None: added) and after (None: deleted). A hint that raises counts as true.
"""


@dataclass(frozen=True, slots=True, eq=False)
class EventIndex:
    """Limits the pods a hint is called for: to those with at least one key in common with the event.

    A key is any value that can be computed from both sides: a label, the name of a claim.

    keys_of_pod: keys of the events that may help a pod, the same for its whole equivalence class; None:
        unknown.
    keys_of_event: keys of an event, from the object before and after; None: unknown.

    Where keys are unknown the hint is called; also, always, for the pod that the event is about. A function
    that raises counts as unknown.
    """

    keys_of_pod: Callable[[Pod], Iterable[Hashable] | None]
    keys_of_event: Callable[[Any, Any], Iterable[Hashable] | None]


Subjects = Callable[[Pod, Any, Any], Iterable[str] | None]
"""The uids of the pods that an event can concern, among those equivalent to the given one; None: any of them.
The other arguments are those of a hint. A function that raises counts as None.
"""


@dataclass(frozen=True, slots=True)
class Interest:
    """An event that may make pods schedulable that a plugin rejected; a hint limits it to some of them.

    per_equivalence_class: the hint returns the same for all pods with the same namespace, labels, spec and
        managing owner, so it is called once for all of them. It may compare the event's object with the
        waiting pod: such a pod is always evaluated on its own.
    index: selects, among thousands of equivalence classes, those that the hint has to be called for.
    subjects: selects, among thousands of pods of a class, those that it has to be called for one by one.
    """

    event: ClusterEvent
    hint: Hint | None = None
    per_equivalence_class: bool = False
    index: EventIndex | None = None
    subjects: Subjects | None = None

    def helps(self, pod: Pod, old: Any, new: Any) -> bool:
        """The hint's result; true without a hint."""
        return self.hint is None or self.hint(pod, old, new)


def on(
    resource: str,
    action: Action,
    hint: Hint | None = None,
    *,
    per_equivalence_class: bool = False,
    index: EventIndex | None = None,
    subjects: Subjects | None = None,
) -> Interest:
    """An interest in an action on a kind of object; see `Interest`."""
    return Interest(ClusterEvent(resource, action), hint, per_equivalence_class, index, subjects)


_NOT_OF_EVERYTHING = frozenset(
    (
        Resource.ANY,
        Resource.ASSIGNED_POD,
        Resource.UNSCHEDULED_POD,
        Resource.POD_GROUP,
        Resource.COMPOSITE_POD_GROUP,
    )
)

EVERYTHING: tuple[Interest, ...] = tuple(
    on(resource, Action.ALL) for resource in Resource if resource not in _NOT_OF_EVERYTHING
)
"""Default for plugins that register no events: every kind by name, as kinds are watched by interest."""
