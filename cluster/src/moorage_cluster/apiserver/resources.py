"""The resources of a server: their names, verbs and subresources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from moorage.api.manifests import Manifest
from moorage.apimachinery.schema.base import UNTYPED_SCHEMA, KindSchema
from moorage.apimachinery.schema.wire import WireFormat, wire_format
from moorage_cluster.apiserver.strategy import Strategy
from moorage_cluster.apiserver.tables.base import NAME_AND_AGE, Printer

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
STATUS_VERBS = ("get", "patch", "update")


@dataclass(frozen=True, slots=True)
class Subresource:
    """A part of an object with a path of its own."""

    name: str
    kind: str
    verbs: tuple[str, ...]
    group: str = ""
    """The group and version of its objects; both empty: those of its resource."""
    version: str = ""
    strategy: Strategy | None = None
    """The strategy of its updates; None: that of its resource."""


class Conversion(Protocol):
    """The conversion between a resource and its stored form."""

    def from_storage(self, obj: Manifest) -> Manifest:
        """An object of this resource, from the stored form; a private copy may be changed in place."""

    def to_storage(self, obj: Manifest) -> Manifest:
        """The stored form of an object of this resource; metadata may differ in annotations only."""


class Scaling(Protocol):
    """How a kind is scaled."""

    def scale_of(self, obj: Manifest) -> Manifest:
        """An object's autoscaling/v1 Scale."""

    def with_scale(self, obj: Manifest, scale: Manifest) -> Manifest:
        """An object with the replicas of a Scale."""


class Source(Protocol):
    """The source of objects that are not stored, but computed on request."""

    def objects(self, namespace: str | None) -> list[Manifest]:
        """All objects as of now, in one namespace or in all."""


@dataclass(frozen=True, slots=True, eq=False)
class APIResource:
    """A resource: a kind of objects, its path and its storage."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    strategy: Strategy = field(default_factory=Strategy)
    schema: KindSchema = UNTYPED_SCHEMA
    printer: Printer = NAME_AND_AGE
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    singular: str = ""
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: tuple[Subresource, ...] = ()
    conversion: Conversion | None = None
    """None: objects of other versions differ in nothing but their apiVersion."""
    converted_until: int = 0
    """Objects of a later revision and of this apiVersion need no conversion."""
    source: Source | None = None
    """The source of the objects of a read-only resource; None: they are stored."""
    scaling: Scaling | None = None
    """What the `scale` subresource does, where there is one."""
    deprecation: str = ""
    """The warning for clients of this version; empty: none."""
    is_custom: bool = False
    """Whether the kind comes from a CustomResourceDefinition; such kinds have no strategic merge patches."""
    stored_as: str = ""
    """The storage name: `group/plural`, or another resource's (events of two groups are the same)."""

    api_version: str = field(init=False)
    """The `apiVersion` of the objects."""
    storage: str = field(init=False)
    """The name of the collection of this resource's objects."""

    def __post_init__(self) -> None:
        version = f"{self.group}/{self.version}" if self.group else self.version
        object.__setattr__(self, "api_version", version)
        object.__setattr__(self, "storage", self.stored_as or f"{self.group}/{self.plural}")

    @property
    def list_kind(self) -> str:
        """The kind of a list of these."""
        return f"{self.kind}List"

    @property
    def has_tables(self) -> bool:
        """Whether objects can be shown as tables: those that are never stored cannot."""
        return "list" in self.verbs

    def subresource(self, name: str) -> Subresource | None:
        """A subresource by its name."""
        for sub in self.subresources:
            if sub.name == name:
                return sub
        return None

    def strategy_for(self, subresource: str) -> Strategy:
        """The strategy of updates through a subresource; its name is empty for the resource itself."""
        sub = self.subresource(subresource) if subresource else None
        return self.strategy if sub is None or sub.strategy is None else sub.strategy


class Resources:
    """All resources that are served now; custom resources are added and removed."""

    def __init__(self, resources: Iterable[APIResource] = (), types: WireFormat | None = None) -> None:
        self.types = types or wire_format()
        """The wire format of the built-in ones."""
        self._by_address: dict[tuple[str, str, str], APIResource] = {}
        self.generation = 0
        for resource in resources:
            self.add(resource)

    def __iter__(self) -> Iterator[APIResource]:
        return iter(self._by_address.values())

    def add(self, resource: APIResource) -> None:
        """Add or replace a resource."""
        self._by_address[resource.group, resource.version, resource.plural] = resource
        self.generation += 1

    def remove(self, resource: APIResource) -> None:
        """Remove a resource."""
        if self._by_address.pop((resource.group, resource.version, resource.plural), None):
            self.generation += 1

    def get(self, group: str, version: str, plural: str) -> APIResource | None:
        """The resource at a path."""
        return self._by_address.get((group, version, plural))

    def of_kind(self, api_version: str, kind: str) -> APIResource | None:
        """The resource of a kind; owner references are resolved with it."""
        group, slash, version = api_version.rpartition("/")
        for resource in self._by_address.values():
            if (
                resource.kind == kind
                and resource.group == (group if slash else "")
                and resource.version == version
            ):
                return resource
        return None
