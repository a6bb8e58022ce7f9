"""Fields of configuration files: KubeSchedulerConfiguration, and the arguments of plugins."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import MISSING, is_dataclass
from dataclasses import fields as dataclass_fields
from typing import Any, Final, NamedTuple, get_args, get_type_hints

import msgspec

from moorage.config.types import KIND, SchedulerConfiguration
from moorage.plugins import LOADED_BY_NAME, default_registry
from tools.docs.plugins import arguments_of
from tools.interface.fact import Fact

_API: Final = "moorage.api."
"""Modules with the types of Kubernetes' API."""


def configuration_facts() -> Iterator[Fact]:
    """Every field, named by the type that has it."""
    seen: set[type] = set()

    def fields(owner: str, kind: type) -> Iterator[Fact]:
        if kind not in seen:
            seen.add(kind)
            yield from (Fact(f"{owner}.{each.name}", each.what) for each in _fields(kind))
            for inner in (inner for each in _fields(kind) for inner in each.types):
                yield from fields(inner.__name__, inner)

    yield from fields(KIND, SchedulerConfiguration)


def plugin_facts() -> Iterator[Fact]:
    """Every plugin that comes with moorage, and the fields of its arguments, named by their paths."""
    for name, plugin in sorted(default_registry().items()):
        yield Fact(name, "plugin, loaded by name" if name in LOADED_BY_NAME else "plugin")
        if (arguments := arguments_of(plugin)) is not None:
            yield from _below(name, arguments)


def _below(path: str, kind: type) -> Iterator[Fact]:
    for each in _fields(kind):
        yield Fact(f"{path}.{each.name}", each.what)
        for inner in each.types:
            yield from _below(f"{path}.{each.name}", inner)


class _Field(NamedTuple):
    name: str
    """As in files."""
    what: str
    types: list[type]
    """The types with fields in its own type."""


def _fields(kind: type) -> Iterator[_Field]:
    hints = get_type_hints(kind, include_extras=False)
    for name, written, default in _declared(kind):
        yield _Field(written, f"{_shown_type(hints[name])}{default}", list(_types(hints[name])))


def _declared(kind: type) -> Iterator[tuple[str, str, str]]:
    """A type's fields: their names in Python and in files, and their defaults as text."""
    if is_dataclass(kind):
        for each in dataclass_fields(kind):
            given = "" if each.default is MISSING else _shown_default(each.default)
            yield each.name, each.name, given
    elif issubclass(kind, msgspec.Struct):
        for found in msgspec.structs.fields(kind):
            given = "" if found.default_factory is not msgspec.NODEFAULT else _shown_default(found.default)
            yield found.name, found.encode_name, given


def _types(hint: Any) -> Iterator[type]:
    if inspect.isclass(hint) and _is_own(hint):
        yield hint
    for each in get_args(hint):
        yield from _types(each)


def _is_own(kind: type) -> bool:
    """Whether the fields of a type are not those of Kubernetes' API."""
    has_fields = is_dataclass(kind) or issubclass(kind, msgspec.Struct)
    return has_fields and kind.__module__.startswith("moorage.") and not kind.__module__.startswith(_API)


def _shown_type(hint: Any) -> str:
    if inspect.isclass(hint) and not get_args(hint):
        return "null" if hint is type(None) else hint.__name__
    return " | ".join(_shown_type(each) for each in get_args(hint)) if _is_union(hint) else _generic(hint)


def _is_union(hint: Any) -> bool:
    return type(hint).__name__ in ("UnionType", "_UnionGenericAlias", "Union")


def _generic(hint: Any) -> str:
    origin = getattr(hint, "__origin__", None)
    if origin is None:
        return str(hint).removeprefix("typing.")
    arguments = (each for each in get_args(hint) if each is not ...)
    inner = [each if isinstance(each, str) else _shown_type(each) for each in arguments]
    return f"{getattr(origin, '__name__', str(origin).removeprefix('typing.'))}[{', '.join(inner)}]"


def _shown_default(value: object) -> str:
    if value is msgspec.NODEFAULT:
        return ", required"
    if value is None or value in ("", (), b"") or isinstance(value, msgspec.Struct):
        return ""
    return f", default {value}" if isinstance(value, bool | int | float | str) else ""
