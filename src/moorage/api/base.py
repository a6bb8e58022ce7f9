"""What every API object shares: how fields are named, metadata, references, label selectors.

Structs are frozen: an object that has been read is never changed, only replaced, so caches and snapshots
may share it. Only fields that scheduling reads are declared; decoding skips the rest.
"""

from __future__ import annotations

from datetime import datetime
from typing import dataclass_transform

import msgspec

from moorage.api.quantity import Quantity

ResourceList = dict[str, Quantity]


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Struct(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """The base of all API structs: frozen, keyword-only, camelCase on the wire.

    They contain only each other and plain values, without cycles: the garbage collector need not track them.
    """


class OwnerReference(Struct):
    """An owner reference of an object."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(Struct):
    """An object's identity and labels."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None


class Object(Struct):
    """An object with a kind and metadata."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()

    @property
    def name(self) -> str:
        """The object's name."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """The object's namespace; empty for cluster-wide kinds."""
        return self.metadata.namespace

    @property
    def labels(self) -> dict[str, str]:
        """The object's labels."""
        return self.metadata.labels

    @property
    def key(self) -> str:
        """`namespace/name`, or just the name for cluster-wide kinds."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages this object, if any."""
        for owner in self.metadata.owner_references:
            if owner.controller:
                return owner
        return None


class ObjectReference(Struct):
    """A pointer to another object."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class Condition(Struct):
    """One aspect of an object's status."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: datetime | None = None


class LabelSelectorRequirement(Struct):
    """One expression of a label selector."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Struct):
    """A label selector as objects carry it; `selectors.label_selector` makes it usable."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class NodeSelectorRequirement(Struct):
    """One expression of a node selector term."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Struct):
    """Expressions that must all hold for a node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Struct):
    """Terms of which one must hold for a node."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()
