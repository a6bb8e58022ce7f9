"""Which existing pods are counted: those that a spread constraint or an affinity term matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from moorage.api.selectors import Operator, Selector
from moorage.cluster.pod_class import PodClass
from moorage.cluster.vocabularies import ClassVocabulary

ANY_KEY: Final = ""
"""The topology key under which matching pods are counted: they are the same for all keys."""

_COUNTED: Final = ((ANY_KEY, 1),)


@dataclass(frozen=True, slots=True)
class PodMatcher:
    """Matches pods that all selectors match, each in its namespaces; None: in all namespaces.

    terminating: whether terminating pods match. As a CountQuery it counts the pods that match.
    """

    selectors: tuple[tuple[Selector, frozenset[str] | None], ...]
    terminating: bool

    def matches(self, each: PodClass) -> bool:
        """Whether pods of a class match."""
        if each.terminating and not self.terminating:
            return False
        if not all(where is None or each.namespace in where for _, where in self.selectors):
            return False
        labels = dict(each.labels)
        return all(selector.matches(labels) for selector, _ in self.selectors)

    def candidates(self, classes: ClassVocabulary) -> set[int]:
        """The codes of the classes that match."""
        found: set[int] | None = None
        for selector, namespaces in self.selectors:
            matching = classes.matched_by(selector, namespaces)
            found = matching if found is None else found & matching
            if not found:
                return found
        if found is None:
            found = {code for code, _ in classes.items()}
        if not self.terminating:
            found = {code for code in found if (each := classes.values[code]) and not each.terminating}
        return found

    @property
    def labels(self) -> list[tuple[str, str]] | None:
        """The values of the first label that must have one of some; None if there is no such label."""
        for selector, _ in self.selectors:
            if selector.requirements is None:
                return []
            for each in selector.requirements:
                if each.operator is Operator.IN:
                    return [(each.key, value) for value in each.values]
        return None

    def __call__(self, each: PodClass) -> tuple[tuple[str, int], ...]:
        """One pod, if it matches."""
        return _COUNTED if self.matches(each) else ()
