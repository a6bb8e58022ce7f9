"""State that plugins keep from one extension point to the next, for one pod in one cycle."""

from __future__ import annotations

import copy
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from moorage.api.pod import Pod

if TYPE_CHECKING:
    from moorage.framework.cache.equivalence_classes import EquivalenceClass
    from moorage.framework.cache.result_cache import PluginResultCache
    from moorage.framework.runtime.plan import ProfilePlan

T = TypeVar("T")


class StateKey(Generic[T]):
    """The name of a piece of state, and its type."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"StateKey({self.name!r})"


class Cloneable(Protocol):
    """State that pods added to or removed from a node change; a dry run works on a clone of it."""

    def clone(self) -> Any:
        """A copy that can be changed on its own."""


class CycleState:
    """State by key. Keys are compared by identity, so that plugins cannot share state by accident."""

    __slots__ = (
        "_values",
        "equivalence_class",
        "is_sampled",
        "plan",
        "pods_to_activate",
        "results",
        "skip_pre_bind",
    )

    def __init__(self) -> None:
        self._values: dict[StateKey[Any], Any] = {}
        self.plan: ProfilePlan | None = None
        """Which plugins run for this pod; None before the pre-filters."""
        self.results: PluginResultCache | None = None
        """The cached answers of plugins for the pod's equivalence class; None: nothing is cached."""
        self.skip_pre_bind: set[str] = set()
        """Plugins whose pre-flight answered Skip."""
        self.pods_to_activate: dict[str, Pod] = {}
        """Pods, by uid, that plugins want to be activated: after the cycle, and after the binding."""
        self.equivalence_class: EquivalenceClass | None = None
        """The class of equivalent pods, for which plugin results are cached; None: nothing is cached."""
        self.is_sampled = False
        """Whether the plugins' calls are timed in this cycle."""

    def write(self, key: StateKey[T], value: T) -> None:
        """Store a value."""
        self._values[key] = value

    def read(self, key: StateKey[T]) -> T | None:
        """The stored value, or None."""
        value: T | None = self._values.get(key)
        return value

    def read_or(self, key: StateKey[T], make: Callable[[], T]) -> T:
        """The stored value, or the result of `make`: for when the plugin's pre-filter or pre-score is off."""
        values = self._values
        if key not in values:
            values[key] = make()
        value: T = values[key]
        return value

    def keys(self) -> AbstractSet[StateKey[Any]]:
        """The keys of all stored values."""
        return frozenset(self._values)

    def inherit(self, prepared: CycleState) -> None:
        """Start with the state that was prepared for all pods of an equivalence class."""
        if prepared._values:
            self._values.update(prepared._values)

    def delete(self, key: StateKey[Any]) -> None:
        """Delete a value."""
        self._values.pop(key, None)

    def clone(self) -> CycleState:
        """A copy for a dry run: state that changes with pods is copied, all else shared."""
        twin = copy.copy(self)
        twin._values = {
            # A `Cloneable`: `isinstance` with a protocol takes longer than many a filter.
            key: value.clone() if hasattr(value, "clone") else value
            for key, value in self._values.items()
        }
        twin.skip_pre_bind, twin.pods_to_activate = set(), {}
        return twin
