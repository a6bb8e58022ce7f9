"""The Python API: every public name of `moorage`, with its signature and docstring."""

from __future__ import annotations

import ast
import enum
import inspect
import re
from collections.abc import Iterator, Mapping
from functools import cache
from types import ModuleType
from typing import Any, Final

import moorage
from moorage.client.kinds import Kind
from tools.docs.markdown import block, code, docstring, table
from tools.docs.syntax import Described, class_node, described, module_tree, signature

_HOMES: Final[Mapping[str, tuple[str, ...]]] = moorage._HOMES
"""The modules that public names are imported from."""


def page() -> str:
    """The page."""
    parts = [
        "# Python API",
        "Every name that can be imported from `moorage`. Other names are internal, and change without "
        "notice. [Extension points](extension-points.md) have a page of their own.",
    ]
    for title, names in groups().items():
        parts.append(f"## {title}")
        for name in names:
            parts += [f"### {name}", *_name(name)]
    return "\n\n".join(parts) + "\n"


def groups() -> dict[str, list[str]]:
    """The public names, by the heading under which the docstring of `moorage` explains each."""
    found: dict[str, list[str]] = {}
    title, taken = "", set()
    for line in (moorage.__doc__ or "").splitlines():
        if line.startswith(" "):
            words = [word for word in re.findall(r"\w+", line) if word in moorage.__all__]
            if title and (new := [word for word in words if word not in taken]):
                found.setdefault(title, []).extend(dict.fromkeys(new))
                taken.update(new)
        else:
            title = line if line and not line.endswith((".", ":")) and line[0].isupper() else ""
    found["Version"] = sorted(set(moorage.__all__) - taken)
    return found


def _name(name: str) -> Iterator[str]:
    value = getattr(moorage, name)
    if isinstance(value, ModuleType):
        yield from _module(value)
    elif isinstance(value, type) and not hasattr(value, "__origin__"):
        yield from _class(value)
    elif inspect.isfunction(value):
        yield block(signature(_function(value)))
        yield docstring(value.__doc__)
    else:
        yield from _constant(name)


def _module(module: ModuleType) -> Iterator[str]:
    """A module of kinds."""
    yield docstring(module.__doc__)
    kinds = {name: each for name, each in vars(module).items() if isinstance(each, Kind)}
    yield table(
        ["name", "kind", "version"],
        ([code(name), each.name, code(each.api_version)] for name, each in kinds.items()),
    )


def _function(function: Any) -> ast.FunctionDef:
    (node,) = ast.parse(inspect.getsource(inspect.unwrap(function))).body
    assert isinstance(node, ast.FunctionDef)
    return node


def _constant(name: str) -> Iterator[str]:
    """A value: its line of source, and the text below it."""
    home = next((home for home, names in _HOMES.items() if name in names), "moorage.version")
    found = _constants(home)[name]
    yield block(found.line)
    yield docstring(found.text)


@cache
def _constants(module: str) -> dict[str, Described]:
    return {each.name: each for each in described(module_tree(module).body)}


def _class(kind: type) -> Iterator[str]:
    node = class_node(kind)
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    yield block(f"class {kind.__name__}({bases})" if bases else f"class {kind.__name__}")
    yield docstring(kind.__doc__)
    fields = [each for each in described(node.body) if not each.name.startswith("_")]
    if fields:
        yield block("\n".join(each.line for each in fields))
        yield "\n".join(f"- {code(each.name)}: {docstring(each.text)}" for each in fields if each.text)
    if not issubclass(kind, enum.Enum):
        yield from _methods(node)


def _methods(node: ast.ClassDef) -> Iterator[str]:
    """The public methods of a class, and how it is made."""
    for method in node.body:
        if not isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        decorators = [ast.unparse(each) for each in method.decorator_list]
        is_shown = method.name == "__init__" or not method.name.startswith("_")
        if not is_shown or any(each.endswith((".setter", "overload")) for each in decorators):
            continue
        known = [f"@{each}" for each in decorators if each in ("property", "classmethod", "staticmethod")]
        known += ["@property"] if "cached_property" in decorators else []
        yield block("\n".join([*known, signature(method)]))
        yield docstring(ast.get_docstring(method))
