"""Sets of fields, as managers own them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from moorage_cluster.apiserver.patches.apply.elements import (
    MalformedError,
    element_text,
    normalized,
    sort_key,
)


class FieldSet:
    """A set of paths of fields.

    A path may be in the set without its parents, and without its children. Sets are built with `add` and
    not changed afterwards: operations share parts.
    """

    __slots__ = ("children", "members")

    def __init__(self) -> None:
        self.members: set[str] = set()
        """The elements that are in the set themselves."""
        self.children: dict[str, FieldSet] = {}
        """What is in the set below each element; never empty."""

    @classmethod
    def of(cls, *paths: str) -> FieldSet:
        """The set of some named fields, such as `metadata.name`."""
        result = cls()
        for path in paths:
            result.add([f"f:{name}" for name in path.split(".")])
        return result

    @classmethod
    def union(cls, sets: Sequence[FieldSet]) -> FieldSet:
        """The union of some sets; unlike repeated `|`, it takes time linear in their size."""
        result = cls()
        below: dict[str, list[FieldSet]] = {}
        for one in sets:
            result.members |= one.members
            for element, child in one.children.items():
                below.setdefault(element, []).append(child)
        result.children = {element: cls.union(children) for element, children in below.items()}
        return result

    def add(self, path: Iterable[str]) -> None:
        """Add a path to the set; the empty path, the whole object, has no owner."""
        *way, last = path or [""]
        if not last:
            return
        place = self
        for element in way:
            place = place.children.setdefault(element, FieldSet())
        place.members.add(last)

    # -- FieldsV1

    @classmethod
    def decode(cls, fields: Any) -> FieldSet:
        """The set that FieldsV1 describes; MalformedError if it is invalid."""
        result = cls()
        if not isinstance(fields, dict):
            raise MalformedError("fields are not a JSON object")
        for text, below in fields.items():
            if text == ".":
                continue
            element = normalized(text)
            if element is None:
                continue
            child = cls.decode(below)
            if not child or "." in below:
                result.members.add(element)
            if child:
                result.children[element] = child
        return result

    def encode(self) -> dict[str, Any]:
        """The set in the form of FieldsV1."""
        fields: dict[str, Any] = {}
        for element in sorted(self.members | self.children.keys(), key=sort_key):
            child = self.children.get(element)
            if child is None:
                fields[element] = {}
            elif element in self.members:
                fields[element] = {".": {}, **child.encode()}
            else:
                fields[element] = child.encode()
        return fields

    # -- content

    def __bool__(self) -> bool:
        return bool(self.members or self.children)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FieldSet):
            return NotImplemented
        return self.members == other.members and self.children == other.children

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"FieldSet({', '.join(self.texts())})"

    def below(self, element: str) -> FieldSet:
        """What is in the set below an element."""
        return self.children.get(element, NOTHING)

    def __contains__(self, path: Iterable[str]) -> bool:
        *way, last = path
        place = self
        for element in way:
            place = place.below(element)
        return last in place.members

    def paths(self, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
        """All paths, parents first."""
        for element in sorted(self.members, key=sort_key):
            yield (*prefix, element)
        for element in sorted(self.children, key=sort_key):
            yield from self.children[element].paths((*prefix, element))

    def texts(self) -> list[str]:
        """All paths as messages print them."""
        return [path_text(path) for path in self.paths()]

    # -- operations

    def __or__(self, other: FieldSet) -> FieldSet:
        result = FieldSet()
        result.members = self.members | other.members
        result.children = {**self.children, **other.children}
        for element in self.children.keys() & other.children.keys():
            result.children[element] = self.children[element] | other.children[element]
        return result

    def __and__(self, other: FieldSet) -> FieldSet:
        result = FieldSet()
        result.members = self.members & other.members
        for element in self.children.keys() & other.children.keys():
            result._keep(element, self.children[element] & other.children[element])
        return result

    def __sub__(self, other: FieldSet) -> FieldSet:
        result = FieldSet()
        result.members = self.members - other.members
        for element, child in self.children.items():
            result._keep(element, child - other.children[element] if element in other.children else child)
        return result

    def outside(self, other: FieldSet) -> FieldSet:
        """The set without the paths of another and without their descendants."""
        result = FieldSet()
        result.members = self.members - other.members
        for element, child in self.children.items():
            if element not in other.members:
                below = other.children.get(element)
                result._keep(element, child if below is None else child.outside(below))
        return result

    def _keep(self, element: str, child: FieldSet) -> None:
        if child:
            self.children[element] = child


NOTHING = FieldSet()


def path_text(path: Iterable[str]) -> str:
    """A path as messages print it: `.spec.containers[name="x"].image`."""
    return "".join(map(element_text, path))
