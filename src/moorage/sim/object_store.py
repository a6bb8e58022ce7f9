"""A cluster's objects in this process, instead of an API server.

Objects are decoded structs with the fields that scheduling reads. Listeners of a kind are called before a
write returns. Admission is limited to what affects decisions: names, resource versions, defaults.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import count
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from moorage.api.base import Condition, Object, ObjectMeta
from moorage.api.decode import convert
from moorage.api.manifests import Manifest
from moorage.api.node import Node
from moorage.api.pod import Pod, PodStatus
from moorage.client.informer import EventType, Key, Listener
from moorage.client.kinds import POD, Kind
from moorage.http.errors import RequestError

_GRACE_SECONDS: Final = 30
"""Default termination grace period of a pod, in seconds."""
_GATED: Final = Condition(
    type="PodScheduled",
    status="False",
    reason="SchedulingGated",
    message="Scheduling is blocked due to non-empty scheduling gates",
)
_NEW: Final = PodStatus()


class ObjectStore:
    """All objects, by kind, namespace and name."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._tables: dict[str, dict[Key, Any]] = defaultdict(dict)
        self._listeners: dict[str, list[list[Listener[Any]]]] = defaultdict(list)
        self._numbers = count(1)
        self._new_bound = _new_bound(datetime.min)
        """The status of pods that were bound within the second of the last binding, and that never failed."""
        self.version = 0
        """Number of writes; the latest resource version."""

    # -- reading

    def table(self, kind: Kind) -> dict[Key, Any]:
        """A live, read-only view of all objects of a kind."""
        return self._tables[kind.name]

    def watch(self, kind: Kind, listeners: list[Listener[Any]]) -> None:
        """Call listeners for all existing objects of a kind, and for every later change."""
        self._listeners[kind.name].append(listeners)
        for obj in list(self._tables[kind.name].values()):
            for listener in listeners:
                listener("ADDED", obj, None)

    def get(self, kind: Kind, namespace: str, name: str) -> Any:
        """One object; RequestError if it does not exist."""
        obj = self._tables[kind.name].get((namespace, name))
        if obj is None:
            raise _not_found(kind, name)
        return obj

    # -- writing

    def create(self, kind: Kind, namespace: str, obj: Object) -> Object:
        """Store a new object; a name is generated if it has none."""
        meta = obj.metadata
        number = next(self._numbers)
        name = meta.name or f"{meta.generate_name}{number:05d}"
        key = (namespace if kind.namespaced else "", name)
        if key in self._tables[kind.name]:
            raise RequestError(409, "AlreadyExists", f'{kind.plural} "{name}" already exists')
        named = replace(
            meta,
            name=name,
            namespace=key[0],
            uid=f"{number:08x}-0000-4000-8000-000000000000",
            resource_version=self._next_version(),
            generation=1,
            creation_timestamp=self._now(),
        )
        return self._put(kind, key, _completed(replace(obj, metadata=named)))

    def update(self, kind: Kind, obj: Object) -> Object:
        """Store a new version of an object."""
        versioned = replace(obj, metadata=self._next(obj))
        return self._put(kind, (obj.namespace, obj.name), versioned)

    def delete(
        self, kind: Kind, namespace: str, name: str, uid: str = "", grace_seconds: int | None = None
    ) -> None:
        """Remove an object; one with finalizers only gets a deletion timestamp.

        A pod on a node has a grace period, and there is no kubelet to confirm that it has ended: it stays,
        unless its grace period is zero. None: the grace period that it asks for.
        """
        obj = self.get(kind, namespace, name)
        if uid and obj.metadata.uid != uid:
            raise _conflict(kind, name)
        if not isinstance(obj, Pod):
            grace_seconds = 0
        elif grace_seconds is None:
            grace_seconds = grace_seconds_of(obj)
        if not obj.metadata.finalizers and not grace_seconds:
            del self._tables[kind.name][namespace, name]
            self._notify(kind, "DELETED", obj, obj)
        elif obj.metadata.deletion_timestamp is None:
            ends_at = self._now() + timedelta(seconds=grace_seconds)
            self.update(kind, replace(obj, metadata=replace(obj.metadata, deletion_timestamp=ends_at)))

    def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        """Bind a pod to a node."""
        pod: Pod = self.get(POD, namespace, name)
        if pod.metadata.uid != uid or pod.spec.node_name or pod.metadata.deletion_timestamp is not None:
            raise _conflict(POD, name)
        bound = replace(
            pod,
            metadata=self._next(pod),
            spec=replace(pod.spec, node_name=node_name),
            status=self._bound(pod.status),
        )
        self._put(POD, (namespace, name), bound)

    def _bound(self, status: PodStatus) -> PodStatus:
        """The status of a pod that is bound now; pods that never failed share that of a second."""
        second = self._now().replace(microsecond=0)
        if self._new_bound.conditions[0].last_transition_time != second:
            self._new_bound = _new_bound(second)
        if status == _NEW:
            return self._new_bound
        (condition,) = self._new_bound.conditions
        others = tuple(each for each in status.conditions if each.type != condition.type)
        return replace(status, conditions=(*others, condition), nominated_node_name="")

    def write_pod_status(self, namespace: str, name: str, patch: Manifest) -> Pod:
        """Apply a status patch of the scheduler to a pod: conditions, and single fields."""
        pod: Pod = self.get(POD, namespace, name)
        meta = patch.get("metadata") or {}
        if meta.get("uid", pod.metadata.uid) != pod.metadata.uid:
            raise _conflict(POD, name)
        if meta.get("resourceVersion", pod.metadata.resource_version) != pod.metadata.resource_version:
            raise _conflict(POD, name)
        changes, status = {**patch["status"]}, pod.status
        conditions = {each.type: each for each in status.conditions}
        for each in changes.pop("conditions", ()):
            conditions[each["type"]] = msgspec.convert(each, Condition)
        nominated = changes.pop("nominatedNodeName", status.nominated_node_name) or ""
        status = replace(status, conditions=tuple(conditions.values()), nominated_node_name=nominated)
        if changes:
            rest = convert(changes, type(status))
            names = {field: getattr(rest, field) for field in status.__struct_fields__}
            changed = {field: value for field, value in names.items() if _camel(field) in changes}
            status = replace(status, **changed)
        stored = replace(pod, metadata=self._next(pod), status=status)
        self._put(POD, (namespace, name), stored)
        return stored

    def _next_version(self) -> str:
        self.version += 1
        return str(self.version)

    def _next(self, obj: Object) -> ObjectMeta:
        """The metadata of an object's next version."""
        return replace(obj.metadata, resource_version=self._next_version())

    def _put(self, kind: Kind, key: Key, obj: Object) -> Object:
        table = self._tables[kind.name]
        before = table.get(key)
        table[key] = obj
        self._notify(kind, "ADDED" if before is None else "MODIFIED", obj, before)
        return obj

    def _notify(self, kind: Kind, type: EventType, obj: Object, before: Object | None) -> None:
        for listeners in self._listeners[kind.name]:
            for listener in listeners:
                listener(type, obj, before)


def _completed(obj: Object) -> Object:
    """An object with an API server's defaults."""
    if isinstance(obj, Node) and not obj.status.allocatable:
        return replace(obj, status=replace(obj.status, allocatable=obj.status.capacity))
    if isinstance(obj, Pod) and obj.spec.scheduling_gates:
        return replace(obj, status=replace(obj.status, conditions=(_GATED,)))
    return obj


def _new_bound(second: datetime) -> PodStatus:
    """The status of a new pod that was bound in a second, to which API servers round the time."""
    condition = Condition(type="PodScheduled", status="True", last_transition_time=second)
    return PodStatus(conditions=(condition,))


def grace_seconds_of(pod: Pod) -> int:
    """The grace period that a pod asks for, in seconds; 0 if it is on no node."""
    if not pod.spec.node_name:
        return 0
    wanted = pod.spec.termination_grace_period_seconds
    return _GRACE_SECONDS if wanted is None else wanted


def _camel(field: str) -> str:
    first, *others = field.split("_")
    return first + "".join(each.title() for each in others)


def _not_found(kind: Kind, name: str) -> RequestError:
    return RequestError(404, "NotFound", f'{kind.plural} "{name}" not found')


def _conflict(kind: Kind, name: str) -> RequestError:
    return RequestError(409, "Conflict", f'{kind.plural} "{name}" has changed since it was read')
