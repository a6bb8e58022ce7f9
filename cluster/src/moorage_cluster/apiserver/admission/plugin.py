"""A plugin: what it is called, which writes it wants to see, and what it does with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from moorage_cluster.apiserver import errors
from moorage_cluster.apiserver.admission.base import Admit, Attributes, Operation
from moorage_cluster.apiserver.errors import ApiError

ANY: Final = "*"
"""Stands for every storage, or every subresource and the object itself."""

PODS: Final = "/pods"
NODES: Final = "/nodes"
NAMESPACES: Final = "/namespaces"
CLAIMS: Final = "/persistentvolumeclaims"


class Call(NamedTuple):
    """One kind of write; an empty subresource is the object itself."""

    operation: Operation
    storage: str
    subresource: str = ""

    def covers(self, other: Call) -> bool:
        """Whether a write is of this kind."""
        return (
            self.operation == other.operation
            and self.storage in (ANY, other.storage)
            and self.subresource in (ANY, other.subresource)
        )


@dataclass(frozen=True, slots=True)
class Plugin:
    """One step of admission."""

    name: str
    admit: Admit
    handles: tuple[Call, ...]


def refusal(attributes: Attributes, why: str) -> ApiError:
    """The error of a plugin that does not let a write pass."""
    metadata = attributes.obj.get("metadata") or {}
    name = attributes.name or metadata.get("name") or metadata.get("generateName") or "Unknown"
    return errors.forbidden(attributes.resource.group, attributes.resource.plural, name, why)
