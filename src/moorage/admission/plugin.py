"""An admission plugin: its name, the writes it handles, and its function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from moorage.admission.attributes import Admit, Attributes, Operation
from moorage.apimachinery import errors
from moorage.apimachinery.errors import ApiError

ANY: Final = "*"
"""Matches every storage, or the object itself and every subresource."""

PODS: Final = "/pods"
NODES: Final = "/nodes"
NAMESPACES: Final = "/namespaces"
CLAIMS: Final = "/persistentvolumeclaims"


class Call(NamedTuple):
    """One kind of write; an empty subresource means the object itself."""

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
    """The error of a plugin that rejects a write."""
    metadata = attributes.obj.get("metadata") or {}
    name = attributes.name or metadata.get("name") or metadata.get("generateName") or "Unknown"
    return errors.forbidden(attributes.resource.group, attributes.resource.plural, name, why)
