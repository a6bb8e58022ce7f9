"""Indexes: pod classes that a selector matches, affinity terms that may match a pod, ports in use.

The number of distinct classes, terms and sets of ports is up to users, so they are not all evaluated: codes
are looked up by label or port, and only those are evaluated. Terms with a topology key that no node has are
in no domain: they are not indexed until a node has that key.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from moorage.api.affinity import AffinityTerm, PodTerms
from moorage.api.selectors import Operator, Requirement, Selector
from moorage.cluster.columns import Vocabulary
from moorage.cluster.host_ports import HostPort
from moorage.cluster.pod_class import Label, PodClass

Mark = Label | None
"""A label that terms require; None: they require no particular one."""

_Index = dict[object, set[int]]
_NO_CODES: frozenset[int] = frozenset()


class ClassVocabulary(Vocabulary[PodClass]):
    """Pod classes by code, indexed by namespace, label and label key."""

    __slots__ = ("_by_mark",)

    def __init__(self) -> None:
        super().__init__()
        self._by_mark: _Index = {}
        """Codes by namespace (a tuple of one), label (a pair) and label key (a string)."""

    def added(self, code: int, value: PodClass) -> None:
        """A class was added."""
        _enter(self._by_mark, _class_marks(value), code)

    def removed(self, code: int, value: PodClass) -> None:
        """No pod has a class any more."""
        _leave(self._by_mark, _class_marks(value), code)

    def matched_by(self, selector: Selector, namespaces: frozenset[str] | None) -> set[int]:
        """The codes of the classes that a selector matches in some namespaces; None: in all."""
        if selector.requirements is None:
            return set()
        codes: set[int] | None = None
        for each in selector.requirements:
            if each.operator in (Operator.IN, Operator.EXISTS):
                having = self._having(each)
                codes = having if codes is None else codes & having
                if not codes:
                    return codes
        if namespaces is not None:
            codes = self._within(namespaces, codes)
        elif codes is None:
            codes = {code for code, _ in self.items()}
        for each in selector.requirements:
            if each.operator in (Operator.NOT_IN, Operator.DOES_NOT_EXIST):
                codes -= self._having(each)
        return codes

    def _having(self, requirement: Requirement) -> set[int]:
        """The classes with one of the values of a requirement, or with the label."""
        if requirement.operator in (Operator.EXISTS, Operator.DOES_NOT_EXIST):
            return set(self._by_mark.get(requirement.key, _NO_CODES))
        return set().union(*_found(self._by_mark, ((requirement.key, each) for each in requirement.values)))

    def _within(self, namespaces: frozenset[str], codes: set[int] | None) -> set[int]:
        if codes is None:
            return set().union(*_found(self._by_mark, ((name,) for name in namespaces)))
        return {code for code in codes if (each := self.values[code]) and each.namespace in namespaces}


class TermsVocabulary(Vocabulary[PodTerms]):
    """Sets of affinity terms by code, indexed by the labels of pods that they may match."""

    __slots__ = ("_by_label", "_by_missing_key", "_node_keys")

    def __init__(self, node_keys: Container[str]) -> None:
        """node_keys: the label keys that nodes have; `add_keys` must be called when there are more."""
        super().__init__()
        self._node_keys = node_keys
        self._by_label: _Index = {}
        """Codes by a label that one of the terms requires; None: one of them requires no particular label."""
        self._by_missing_key: _Index = {}
        """Codes by a topology key that no node has."""

    def added(self, code: int, value: PodTerms) -> None:
        """A set of terms was added."""
        _enter(self._by_label, term_marks(self.in_domains(value)), code)
        _enter(self._by_missing_key, self._missing_keys(value), code)

    def removed(self, code: int, value: PodTerms) -> None:
        """No pod has a set of terms any more."""
        # Terms are still found by label when the last node that had their topology key is gone.
        _leave(self._by_label, term_marks(value), code)
        _leave(self._by_missing_key, self._missing_keys(value), code)

    def add_keys(self, keys: Iterable[str]) -> None:
        """Nodes have label keys that no node had."""
        for code in set().union(*(self._by_missing_key.pop(key, _NO_CODES) for key in keys)):
            value = self.values[code]
            assert value is not None
            _enter(self._by_label, term_marks(self.in_domains(value)), code)

    def _missing_keys(self, value: PodTerms) -> set[str]:
        return {term.topology_key for term in value if term.topology_key not in self._node_keys}

    def in_domains(self, value: PodTerms) -> PodTerms:
        """The terms whose topology key a node has; all others mean no pod on any node."""
        keys = self._node_keys
        if all(term.topology_key in keys for term in value):
            return value
        return PodTerms(
            tuple(term for term in value.required if term.topology_key in keys),
            tuple(term for term in value.required_anti if term.topology_key in keys),
            tuple(each for each in value.preferred if each.term.topology_key in keys),
        )

    def any_may_mean(self, labels: Iterable[Label]) -> bool:
        """Whether any terms may match a pod with these labels."""
        by_label = self._by_label
        return bool(by_label) and (None in by_label or not by_label.keys().isdisjoint(labels))

    def may_match(self, labels: Iterable[Label]) -> set[int]:
        """The codes of all terms that may match a pod with these labels."""
        return set().union(*_found(self._by_label, (None, *labels)))


class HostPortVocabulary(Vocabulary[frozenset[HostPort]]):
    """Sets of host ports in use by code, indexed by protocol and number."""

    __slots__ = ("_by_number",)

    def __init__(self) -> None:
        super().__init__()
        self._by_number: _Index = {}

    def added(self, code: int, value: frozenset[HostPort]) -> None:
        """A set was added."""
        _enter(self._by_number, _numbers(value), code)

    def removed(self, code: int, value: frozenset[HostPort]) -> None:
        """No node has a set any more."""
        _leave(self._by_number, _numbers(value), code)

    def sharing(self, ports: frozenset[HostPort]) -> set[int]:
        """The codes of the sets with one of these protocols and numbers, on whatever address."""
        return set().union(*_found(self._by_number, _numbers(ports)))


def _numbers(ports: frozenset[HostPort]) -> set[tuple[str, int]]:
    return {(protocol, number) for _, protocol, number in ports}


def _found(index: _Index, marks: Iterable[object]) -> Iterator[set[int] | frozenset[int]]:
    return (index.get(mark, _NO_CODES) for mark in marks)


def _enter(index: _Index, marks: Iterable[object], code: int) -> None:
    for mark in marks:
        index.setdefault(mark, set()).add(code)


def _leave(index: _Index, marks: Iterable[object], code: int) -> None:
    for mark in marks:
        codes = index.get(mark)
        if codes is not None:
            codes.discard(code)
            if not codes:
                del index[mark]


def _class_marks(each: PodClass) -> Iterator[object]:
    yield (each.namespace,)
    for label in each.labels:
        yield label
        yield label[0]


def term_marks(terms: PodTerms) -> set[Mark]:
    """The labels of which a matching pod has at least one; with None among them, any pod may match."""
    return {mark for term in terms for mark in _marks(term)}


def _marks(term: AffinityTerm) -> Iterable[Mark]:
    if term.selector.requirements is None:
        return ()
    for each in term.selector.requirements:
        if each.operator is Operator.IN:
            return [(each.key, value) for value in each.values]
    return (None,)
