"""Admission: plugins that may change or reject a write between decoding and validation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, Protocol

import msgspec

from moorage.admission.users import User
from moorage.api.manifests import Manifest

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


class Reader(Protocol):
    """Read access to other stored objects, which must not be changed."""

    def find(self, storage: str, namespace: str, name: str) -> Manifest | None:
        """One object of a collection such as `/pods` or `scheduling.k8s.io/priorityclasses`."""

    def all(self, storage: str, namespace: str | None = None) -> Iterable[Manifest]:
        """All objects of a collection, in one namespace or in all."""


class WrittenResource(Protocol):
    """The resource that is written."""

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""

    @property
    def plural(self) -> str:
        """The name in paths, such as `pods`."""

    @property
    def namespaced(self) -> bool:
        """Whether its objects are in namespaces."""

    @property
    def is_custom(self) -> bool:
        """Whether the kind comes from a CustomResourceDefinition."""

    @property
    def storage(self) -> str:
        """The collection with its objects, such as `/pods`."""


class Attributes(msgspec.Struct):
    """One write request."""

    operation: Operation
    resource: WrittenResource
    subresource: str
    namespace: str
    name: str
    """Empty for a create with generateName."""
    obj: Manifest
    """What will be stored; mutating plugins change it in place. For DELETE: what is stored."""
    old: Manifest | None
    user: User
    dry_run: bool = False
    warnings: list[str] = msgspec.field(default_factory=list)


Admit = Callable[[Attributes, Reader], None]
"""Changes `attributes.obj`, raises ApiError (`errors.forbidden` as Kubernetes words it), or does nothing."""
