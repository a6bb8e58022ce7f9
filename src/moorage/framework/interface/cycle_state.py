"""What plugins remember from one extension point to the next, for one pod in one cycle."""

from __future__ import annotations

import copy
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast, runtime_checkable

from moorage.api.pod import Pod

if TYPE_CHECKING:
    from moorage.framework.cache.equivalence_classes import EquivalenceClass
    from moorage.framework.runtime.plan import Plan

T = TypeVar("T")


class StateKey(Generic[T]):
    """The name of a piece of state, and its type."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"StateKey({self.name!r})"


@runtime_checkable
class Cloneable(Protocol):
    """State that pods added to or removed from a node change; a dry run works on a clone of it."""

    def clone(self) -> Any:
        """A copy that can be changed on its own."""


class CycleState:
    """State by key. Keys are compared by identity: nobody reads another plugin's state by accident."""

    __slots__ = (
        "_values",
        "equivalence_class",
        "is_sampled",
        "plan",
        "pods_to_activate",
        "skip_pre_bind",
    )

    def __init__(self) -> None:
        self._values: dict[StateKey[Any], Any] = {}
        self.plan: Plan | None = None
        """Which plugins run for this pod; None before the pre-filters."""
        self.skip_pre_bind: set[str] = set()
        """Plugins whose pre-flight answered Skip."""
        self.pods_to_activate: dict[str, Pod] = {}
        """Pods, by uid, that plugins want to be tried at once: after the cycle, and after the binding."""
        self.equivalence_class: EquivalenceClass | None = None
        """The class of equivalent pods, for which plugin results are cached; None: nothing is cached."""
        self.is_sampled = False
        """Whether the plugins' calls are timed in this cycle."""

    def write(self, key: StateKey[T], value: T) -> None:
        """Remember a value."""
        self._values[key] = value

    def read(self, key: StateKey[T]) -> T | None:
        """What was remembered, or None."""
        return cast("T | None", self._values.get(key))

    def read_or(self, key: StateKey[T], make: Callable[[], T]) -> T:
        """What was remembered, or what `make` makes of it now: for when a plugin's first half is off."""
        if key not in self._values:
            self._values[key] = make()
        return cast("T", self._values[key])

    def keys(self) -> AbstractSet[StateKey[Any]]:
        """What is remembered, by its keys."""
        return frozenset(self._values)

    def inherit(self, prepared: CycleState) -> None:
        """Begin with what was prepared for all pods of an equivalence class."""
        self._values.update(prepared._values)

    def delete(self, key: StateKey[Any]) -> None:
        """Forget a value."""
        self._values.pop(key, None)

    def clone(self) -> CycleState:
        """A copy for a dry run: state that changes with pods is copied, all else shared."""
        twin = copy.copy(self)
        twin._values = {
            key: value.clone() if isinstance(value, Cloneable) else value
            for key, value in self._values.items()
        }
        twin.skip_pre_bind, twin.pods_to_activate = set(), {}
        return twin
