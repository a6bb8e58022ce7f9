"""Changes that may help a pod, and the pod and cluster as they would be after them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, runtime_checkable

from msgspec.structs import replace

from moorage.api.base import Object
from moorage.api.pod import Pod, PodSpec

ObjectT = TypeVar("ObjectT", bound=Object)
ObjectKey = tuple[type[Object], str]
"""An object's kind, and its namespace and name."""


def key_of(item: Object) -> ObjectKey:
    """The key of an object."""
    return type(item), item.key


@dataclass(frozen=True, slots=True)
class Situation:
    """A pod, and which objects of its cluster are changed, new or gone."""

    pod: Pod
    put: Mapping[ObjectKey, Object] = field(default_factory=dict)
    removed: Mapping[ObjectKey, Object] = field(default_factory=dict)

    def current(self, item: ObjectT) -> ObjectT:
        """An object as it is after the changes."""
        changed = self.put.get(key_of(item), item)
        assert isinstance(changed, type(item))
        return changed

    def with_spec(self, change: Callable[[PodSpec], PodSpec]) -> Situation:
        """With another spec of the pod."""
        pod = replace(self.pod, spec=change(self.pod.spec))
        return Situation(pod, self.put, self.removed)

    def putting(self, *items: Object) -> Situation:
        """With objects added or replaced."""
        return Situation(self.pod, {**self.put, **{key_of(item): item for item in items}}, self.removed)

    def removing(self, item: Object) -> Situation:
        """Without an object."""
        return Situation(self.pod, self.put, {**self.removed, key_of(item): item})


class Change(Protocol):
    """One change. `str` of it is an imperative sentence, such as "tolerate team=a:NoSchedule"."""

    @property
    def kind(self) -> str:
        """The kind of change, as in the JSON output."""

    def apply(self, situation: Situation) -> Situation:
        """What is so after the change."""

    def details(self) -> dict[str, Any]:
        """What is changed and how, as plain data."""


@runtime_checkable
class SizedChange(Change, Protocol):
    """A change that can be larger or smaller."""

    @property
    def size(self) -> int:
        """How large it is, in the smallest steps there are; at least 1."""

    def resized(self, size: int) -> SizedChange:
        """The same change with another size."""


def smaller(change: Change) -> Change | None:
    """The next smaller change of the same kind; None where there is none but no change at all."""
    return change.resized(change.size - 1) if isinstance(change, SizedChange) and change.size > 1 else None
