"""What happens in a cluster, in the words that plugins and metrics use for it.

A `ClusterEvent` is a kind of object and what happened to it. A plugin that refuses pods names the events that
may change its mind; each can have a hint, a function that looks at the object and at the pod and says whether
this very event may help this very pod.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from enum import IntFlag, StrEnum, auto
from functools import cache
from typing import Any

from moorage.api.pod import Pod


class Resource(StrEnum):
    """The kinds of object that events are about; custom kinds go by `plural.version.group`."""

    POD = "Pod"
    """Any pod. Plugins name this one; what happens is about one of the next two."""
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULED_POD = "UnschedulablePod"
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
    ANY = "*"


class Action(IntFlag):
    """What happened to an object. Updates of nodes and pods say what was updated."""

    ADD = auto()
    DELETE = auto()

    UPDATE_NODE_ALLOCATABLE = auto()
    UPDATE_NODE_LABEL = auto()
    UPDATE_NODE_TAINT = auto()
    """The taints have changed, or the node was uncordoned."""
    UPDATE_NODE_CONDITION = auto()
    UPDATE_NODE_ANNOTATION = auto()
    UPDATE_NODE_DECLARED_FEATURE = auto()

    UPDATE_POD_LABEL = auto()
    UPDATE_POD_SCALE_DOWN = auto()
    """Some request has become smaller."""
    UPDATE_POD_TOLERATION = auto()
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = auto()
    """The last scheduling gate was lifted."""
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = auto()
    """The list of claims that were made for the pod has changed."""

    UPDATE = (
        UPDATE_NODE_ALLOCATABLE
        | UPDATE_NODE_LABEL
        | UPDATE_NODE_TAINT
        | UPDATE_NODE_CONDITION
        | UPDATE_NODE_ANNOTATION
        | UPDATE_NODE_DECLARED_FEATURE
        | UPDATE_POD_LABEL
        | UPDATE_POD_SCALE_DOWN
        | UPDATE_POD_TOLERATION
        | UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        | UPDATE_POD_GENERATED_RESOURCE_CLAIM
    )
    """Any update; as something that happened: one that none of the others describes."""
    ALL = ADD | DELETE | UPDATE


_SUBKINDS: dict[str, tuple[str, ...]] = {Resource.POD: (Resource.ASSIGNED_POD, Resource.UNSCHEDULED_POD)}


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """Something that happened to an object of a kind, or may happen to one.

    name: what metrics call it, where that is not simply kind and action.
    label: what logs and metrics call it, such as `NodeAdd` or `NodeUpdateNodeTaint`.
    is_wildcard: whether this is about everything: a reason to try pods again whoever refused them.
    """

    resource: str
    action: Action
    name: str = ""
    label: str = field(init=False, repr=False, compare=False)
    is_wildcard: bool = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)
    """Events are looked up whenever anything happens, and flags are slow to hash."""

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
        """Whether who asks for this event means one that happened: the same, or a more specific one."""
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
    """What happened to an object of a kind; always the same event, because these are made all the time."""
    return ClusterEvent(resource, action)


ASSIGNED_POD_ADD = event(Resource.ASSIGNED_POD, Action.ADD)
ASSIGNED_POD_DELETE = event(Resource.ASSIGNED_POD, Action.DELETE)
UNSCHEDULED_POD_ADD = event(Resource.UNSCHEDULED_POD, Action.ADD)
UNSCHEDULED_POD_UPDATE = event(Resource.UNSCHEDULED_POD, Action.UPDATE)
UNSCHEDULED_POD_DELETE = event(Resource.UNSCHEDULED_POD, Action.DELETE)
NODE_ADD = event(Resource.NODE, Action.ADD)
NODE_DELETE = event(Resource.NODE, Action.DELETE)

UNSCHEDULABLE_TIMEOUT = ClusterEvent(Resource.ANY, Action.ALL, "UnschedulableTimeout")
"""A pod has waited so long that it is tried again without a reason."""
FORCE_ACTIVATE = ClusterEvent(Resource.ANY, Action.ALL, "ForceActivate")
"""A plugin wants a pod to be tried now."""

SCHEDULE_ATTEMPT_FAILURE = "ScheduleAttemptFailure"
BACKOFF_COMPLETE = "BackoffComplete"
POP_FROM_BACKOFF = "PopFromBackoffQ"
"""What metrics call the ways into a queue that no event of the cluster stands behind."""


Hint = Callable[[Pod, Any, Any], bool]
"""Whether an event may make a pod schedulable: the pod, the object before (None: added), and after (None:
deleted). It is asked about pods that its plugin refused. One that raises is taken to say yes."""


@dataclass(frozen=True, slots=True, eq=False)
class EventIndex:
    """Spares a hint the pods that it would say no to: those that want none of the keys an event bears.

    A key is anything that both sides can name: a label, the name of a claim.

    wanted: the keys that may help a pod, the same for all pods of a template; None: one cannot tell.
    borne: the keys of what has happened, from the object before and after; None: one cannot tell.
    Who cannot tell is put to the hint; and so is, always, the pod that the event is about. One that raises
    is taken to be unable to tell.
    """

    keys_of_pod: Callable[[Pod], Iterable[Hashable] | None]
    keys_of_event: Callable[[Any, Any], Iterable[Hashable] | None]


@dataclass(frozen=True, slots=True)
class Interest:
    """An event that may change a plugin's mind about pods, or that may for some of them, as a hint says.

    per_equivalence_class: the hint returns the same for all pods with the same namespace, labels, spec and
        managing owner, so it is called once for all of them. It may compare the event's object with the
        waiting pod: such a pod is always evaluated on its own.
    index: finds, among thousands of templates, those that the hint need not be asked about.
    """

    event: ClusterEvent
    hint: Hint | None = None
    per_equivalence_class: bool = False
    index: EventIndex | None = None

    def helps(self, pod: Pod, old: Any, new: Any) -> bool:
        """What the hint says; without one, yes."""
        return self.hint is None or self.hint(pod, old, new)


def on(
    resource: str,
    action: Action,
    hint: Hint | None = None,
    *,
    per_equivalence_class: bool = False,
    index: EventIndex | None = None,
) -> Interest:
    """An interest in something that happens to a kind of object; see `Interest`."""
    return Interest(ClusterEvent(resource, action), hint, per_equivalence_class, index)


EVERYTHING: tuple[Interest, ...] = tuple(
    on(resource, Action.ALL)
    for resource in Resource
    if resource not in (Resource.ANY, Resource.ASSIGNED_POD, Resource.UNSCHEDULED_POD, Resource.POD_GROUP)
)
"""The interests of who does not name any: every kind, each by name, because kinds are watched by interest."""
