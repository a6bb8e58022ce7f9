"""The source of both packages as syntax trees, and the texts that an expression in it can be."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
_PACKAGES: Final = (ROOT / "src" / "moorage", ROOT / "cluster" / "src" / "moorage_cluster")
UNKNOWN: Final = "…"
"""Stands for what is known only when the program runs."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Module(NamedTuple):
    """A module and its tree."""

    name: str
    tree: ast.Module

    def global_value(self, name: str) -> object:
        """What a name of the module is; None if there is none."""
        return getattr(import_module(self.name), name, None)


class Place(NamedTuple):
    """A node of a tree with what is around it."""

    module: Module
    function: Function | ast.Module
    """The innermost function, or the module."""
    node: ast.AST


@cache
def _sources() -> Mapping[str, str]:
    """The text of each module of both packages, by the module's name."""
    return {
        _name(package, path): path.read_text("utf-8")
        for package in _PACKAGES
        for path in sorted(package.rglob("*.py"))
    }


def _name(package: Path, path: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules(*words: str) -> Iterator[Module]:
    """The modules whose text has any of some words, in the order of their names."""
    return (_module(name) for name, text in _sources().items() if any(word in text for word in words))


@cache
def _module(name: str) -> Module:
    return Module(name, ast.parse(_sources()[name]))


def places(*words: str) -> Iterator[Place]:
    """Every call, dictionary and subscript in these modules, which are what facts are found in."""
    return (place for module in modules(*words) for place in places_in(module))


def places_in(module: Module) -> Iterator[Place]:
    """The same of one module."""
    return _places(module, module.tree, module.tree)


def _places(module: Module, function: Function | ast.Module, node: ast.AST) -> Iterator[Place]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call | ast.Dict | ast.Subscript):
            yield Place(module, function, child)
        inner = child if isinstance(child, Function) else function
        yield from _places(module, inner, child)


def texts(place: Place, expression: ast.expr) -> list[str]:
    """The texts that an expression can be, as far as the source tells; empty: none is known."""
    match expression:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.IfExp():
            return [*texts(place, expression.body), *texts(place, expression.orelse)]
        case ast.JoinedStr():
            parts = [_part(place, each) for each in expression.values]
            return ["".join(each) for each in product(*parts)]
        case ast.Name(id=name):
            known = [text for value in assigned(place, name) for text in texts(place, value)]
            return known or _given(place, name) or _global(place, name)
    return []


def _part(place: Place, part: ast.expr) -> list[str]:
    value = part.value if isinstance(part, ast.FormattedValue) else part
    return texts(place, value) or [UNKNOWN]


def assigned(place: Place, name: str) -> list[ast.expr]:
    """What a variable of the function can be at a place."""
    return (
        [] if isinstance(place.function, ast.Module) else _reaching(place.function.body, place.node, name)[0]
    )


def _reaching(block: list[ast.stmt], node: ast.AST, name: str) -> tuple[list[ast.expr], bool]:
    """What is assigned to a name before a node in a block, and whether one of them certainly is."""
    at = next(at for at, each in enumerate(block) if _has(each, node))
    found: list[ast.expr] = []
    for inner in _blocks(block[at]):
        if any(_has(each, node) for each in inner):
            found, is_certain = _reaching(inner, node, name)
            if is_certain:
                return found, True
    for each in reversed(block[:at]):
        found += (values := list(_assignments(each, name)))
        if values and isinstance(each, ast.Assign):
            return found, True
    return found, False


def _has(statement: ast.stmt, node: ast.AST) -> bool:
    return any(node is each for each in ast.walk(statement))


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks of statements in a statement that have a node."""
    for field in ("body", "orelse", "finalbody"):
        yield getattr(statement, field, [])
    for handler in getattr(statement, "handlers", []):
        yield handler.body
    for case in getattr(statement, "cases", []):
        yield case.body


def _assignments(statement: ast.stmt, name: str) -> Iterator[ast.expr]:
    for each in ast.walk(statement):
        match each:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                yield value
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                pairs = zip(targets, values, strict=True)
                yield from (value for one, value in pairs if isinstance(one, ast.Name) and one.id == name)


def _given(place: Place, name: str) -> list[str]:
    """The texts of a parameter, in the calls of the function in its module."""
    function = place.function
    if isinstance(function, ast.Module) or name not in (names := [each.arg for each in function.args.args]):
        return []
    at = names.index(name) - (names[0] == "self")
    found = []
    for other in places_in(place.module):
        if called(other.node) == function.name and other.function is not function:
            assert isinstance(other.node, ast.Call)
            named = {each.arg: each.value for each in other.node.keywords}
            values = [named[name]] if name in named else other.node.args[at : at + 1]
            found += [text for value in values for text in texts(other, value)]
    return found


def _global(place: Place, name: str) -> list[str]:
    """The text of a module's name, or of one that a function imports."""
    for each in ast.walk(place.function):
        match each:
            case ast.ImportFrom(module=str(module), names=names) if any(one.name == name for one in names):
                return _text(getattr(import_module(module), name))
    return _text(place.module.global_value(name))


def _text(value: object) -> list[str]:
    return [value] if isinstance(value, str) else []


def called(call: ast.AST) -> str:
    """The last name of what is called, such as `info` of `log.info`; empty if it has none."""
    match call:
        case ast.Call(func=ast.Attribute(attr=name)) | ast.Call(func=ast.Name(id=name)):
            return name
    return ""
