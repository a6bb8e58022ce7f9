"""Kinds that plugins declare: custom resources, and built-in kinds that scheduling does not read by itself.

A declared kind is treated as any other: informers decode its objects, the cache and snapshots have a table of
them, files and simulations may contain them, and its events requeue pods.
"""

from __future__ import annotations

from functools import cache

from moorage.api.base import Object
from moorage.api.decode import DeclaredType, declare_type, type_named
from moorage.client.kinds import KINDS_BY_NAME, Kind

_KIND_OF: dict[type[Object], Kind] = {}
"""The declared kinds by the type of their objects: as many as the loaded plugins declare."""


def declare_kind(api_version: str, plural: str, type: type[Object], *, namespaced: bool = True) -> Kind:
    """Declare a kind that plugins read: its objects are decoded as `type`, which has the kind's name.

    A declaration of the same kind replaces the one before: the file of a plugin may be loaded again.
    """
    group, slash, version = api_version.rpartition("/")
    if not version or (slash and not group):
        raise ValueError(f"declare_kind: {api_version!r} is no API version, such as example.com/v1")
    if not issubclass(type, Object):
        raise ValueError(f"declare_kind: {type.__name__} must be derived from moorage.Object")
    kind = Kind(group, version, type.__name__, plural, namespaced)
    declare_type(group, DeclaredType(type, namespaced))
    _KIND_OF[type] = kind
    return kind


def is_declared(kind: Kind) -> bool:
    """Whether a plugin has declared the kind; a server need not have it."""
    return kind in _KIND_OF.values()


def object_type(kind: Kind) -> type[Object] | None:
    """The type of a kind's objects; None for a kind that scheduling does not read."""
    return type_named(kind.group, kind.name)


def declared_kind_of(type: type[Object]) -> Kind | None:
    """The kind of objects of a type; None if no plugin has declared it."""
    return _KIND_OF.get(type)


def kind_of_object(obj: Object) -> Kind | None:
    """The kind of an object; None for an object of a type that is not known."""
    return _KIND_OF.get(type(obj)) or _built_in_kind(type(obj))


@cache
def _built_in_kind(type: type[Object]) -> Kind | None:
    """The kind of a type that no plugin has declared: that of its name or of a base class."""
    names = (each.__name__ for each in type.__mro__)
    return next((KINDS_BY_NAME[name] for name in names if name in KINDS_BY_NAME), None)
