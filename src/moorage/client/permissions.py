"""Permissions on the Kubernetes API: what roles grant, and what plugins declare that they need."""

from __future__ import annotations

from dataclasses import dataclass

from moorage.client.kinds import Kind


@dataclass(frozen=True, slots=True)
class Permission:
    """One verb on one resource, or on one object of it."""

    group: str
    resource: str
    verb: str
    name: str = ""

    @classmethod
    def on(cls, kind: Kind, *verbs: str, part: str = "", name: str = "") -> tuple[Permission, ...]:
        """Some verbs on a kind of objects, or on a part of them such as their status."""
        resource = f"{kind.plural}/{part}" if part else kind.plural
        return tuple(cls(kind.group, resource, verb, name) for verb in verbs)
