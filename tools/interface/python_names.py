"""The names that Python programs import: functions with signatures, classes with members."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import is_dataclass
from enum import Enum
from importlib import import_module
from types import UnionType
from typing import Any, Final, ForwardRef, get_args

from tools.interface.fact import Fact

_OWN: Final = ("moorage.", "moorage_cluster.")
_PLAIN: Final = (bool, int, float, str, bytes, type(None))
"""Types of values that are shown."""


def names_of(module_name: str, prefix: str = "") -> Iterator[Fact]:
    """The public names of a module, which its `__all__` lists."""
    module = import_module(module_name)
    for name in module.__all__:
        yield from _facts(f"{prefix}{name}", getattr(module, name))


def _facts(name: str, value: Any) -> Iterator[Fact]:
    if inspect.isclass(value):
        yield from class_facts(name, value)
    elif inspect.ismodule(value):
        yield Fact(name, "module")
        public = (each for each in vars(value).items() if not each[0].startswith("_"))
        yield from (Fact(f"{name}.{each}", "constant") for each, one in public if not _is_imported(one))
    elif inspect.isroutine(value):
        yield Fact(name, f"def {_signature(value)}")
    elif isinstance(value, UnionType):
        yield Fact(name, f"type: {' | '.join(map(_text, get_args(value)))}")
    else:
        yield Fact(name, f"constant: {type(value).__name__}" if name != "__version__" else "constant")


def class_facts(name: str, value: type) -> Iterator[Fact]:
    """A class and its public members."""
    yield Fact(name, _class_text(value))
    for member, what in _members(value):
        yield Fact(f"{name}.{member}", what)


def _is_imported(value: object) -> bool:
    """Whether a module's name is a module, class, function or form of typing, and no constant."""
    origin = type(value).__module__
    return inspect.ismodule(value) or callable(value) or origin.startswith(("typing", "__future__"))


def _class_text(value: type) -> str:
    bases = [each.__name__ for each in value.__bases__ if each is not object]
    return f"class({', '.join(bases)})" if bases else "class"


def _members(value: type) -> Iterator[tuple[str, str]]:
    """Public members of a class and of its bases in these packages, and how it is called."""
    if not issubclass(value, Enum) and _has_own_call(value):
        yield "__init__", f"def {_signature(value, types=not _has_fields(value))}"
    found: dict[str, str] = {}
    for base in _own_bases(value):
        for name, text in inspect.get_annotations(base).items():
            found.setdefault(name, f"field: {_text(text)}")
        for name, member in vars(base).items():
            if (what := _member(name, member, value)) is not None:
                found.setdefault(name, what)
    yield from ((name, what) for name, what in sorted(found.items()) if not name.startswith("_"))


def _has_own_call(value: type) -> bool:
    return _has_fields(value) or any("__init__" in vars(base) for base in _own_bases(value))


def _has_fields(value: type) -> bool:
    """Whether the parameters of a class are its fields, which have facts of their own."""
    return is_dataclass(value) or hasattr(value, "__struct_fields__") or issubclass(value, tuple)


def _own_bases(value: type) -> list[type]:
    return [each for each in value.__mro__ if f"{each.__module__}.".startswith(_OWN)]


def _member(name: str, member: Any, owner: type) -> str | None:
    if isinstance(member, staticmethod | classmethod):
        return f"{type(member).__name__} {_signature(getattr(owner, name))}"
    if inspect.isfunction(member):
        return f"def {_signature(member)}"
    if isinstance(member, property):
        returned = inspect.get_annotations(member.fget).get("return", "") if member.fget else ""
        return f"property: {_text(returned)}"
    if isinstance(member, Enum):
        return "value"
    return None


def _signature(value: Any, *, types: bool = True) -> str:
    """Parameters with defaults, and their types and what is returned unless these are left out."""
    signature = inspect.signature(value)
    kinds = [each.kind for each in signature.parameters.values()]
    shown = []
    for at, each in enumerate(signature.parameters.values()):
        if each.kind is each.KEYWORD_ONLY and not {each.KEYWORD_ONLY, each.VAR_POSITIONAL} & set(kinds[:at]):
            shown.append("*")
        shown.append(_parameter(each, types=types))
        if each.kind is each.POSITIONAL_ONLY and each.POSITIONAL_ONLY not in kinds[at + 1 :]:
            shown.append("/")
    returned = signature.return_annotation
    after = f" -> {_text(returned)}" if types and returned is not signature.empty else ""
    return f"({', '.join(shown)}){after}"


def _parameter(each: inspect.Parameter, *, types: bool) -> str:
    stars = "*" * (each.kind is each.VAR_POSITIONAL) + "**" * (each.kind is each.VAR_KEYWORD)
    annotation = f": {_text(each.annotation)}" if types and each.annotation is not each.empty else ""
    default = "" if each.default is each.empty else f" = {_value(each.default)}"
    return f"{stars}{each.name}{annotation}{default}"


def _text(annotation: Any) -> str:
    """A type as it is written in the source; classes by name."""
    if isinstance(annotation, ForwardRef):
        annotation = annotation.__forward_arg__
    if isinstance(annotation, str):
        return annotation.strip("'")
    return annotation.__name__ if inspect.isclass(annotation) else str(annotation)


def _value(default: object) -> str:
    """A default that reads the same in every process; others are left out."""
    return repr(default) if isinstance(default, _PLAIN) or default == () else "..."
