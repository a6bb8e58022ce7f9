"""What only the source says: annotations as they are written, and texts below fields and constants."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple


class Described(NamedTuple):
    """A field or a constant: its line of source, and the text below it."""

    name: str
    line: str
    text: str


@cache
def module_tree(module: str) -> ast.Module:
    """The source of a module."""
    return ast.parse(Path(str(import_module(module).__file__)).read_text("utf-8"))


@cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    """The classes of a module, by name."""
    return {node.name: node for node in module_tree(module).body if isinstance(node, ast.ClassDef)}


def class_node(kind: type) -> ast.ClassDef:
    """The source of a class."""
    return _classes(kind.__module__)[kind.__name__]


def described(body: list[ast.stmt]) -> Iterator[Described]:
    """The names that a class or a module assigns, each with the text below it."""
    for node, after in zip(body, [*body[1:], None], strict=True):
        for name in _assigned(node):
            yield Described(name, ast.unparse(node), _text(after))


def field_texts(kind: type) -> dict[str, str]:
    """What is written below the fields of a class and its bases, by name."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if each.__module__.startswith("moorage"):
            found |= {field.name: field.text for field in described(class_node(each).body)}
    return found


def signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """A function's first line, without its decorators and body."""
    word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    result = "" if node.returns is None else f" -> {ast.unparse(node.returns)}"
    flat = f"{word} {node.name}({ast.unparse(node.args)}){result}"
    if len(flat) <= _WIDTH:
        return flat
    arguments = ",\n".join(f"    {each}" for each in _arguments(node.args))
    return f"{word} {node.name}(\n{arguments},\n){result}"


_WIDTH = 88
"""Maximum length of a signature on one line, in characters."""


def _arguments(arguments: ast.arguments) -> Iterator[str]:
    """Each argument as it is written, with `*` before those that have to be named."""
    ordered = [*arguments.posonlyargs, *arguments.args]
    defaults: list[Any] = [*[None] * (len(ordered) - len(arguments.defaults)), *arguments.defaults]
    for index, (argument, default) in enumerate(zip(ordered, defaults, strict=True), 1):
        yield _argument(argument, default)
        if index == len(arguments.posonlyargs):
            yield "/"
    if arguments.vararg is not None:
        yield f"*{ast.unparse(arguments.vararg)}"
    elif arguments.kwonlyargs:
        yield "*"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _argument(argument, default)
    if arguments.kwarg is not None:
        yield f"**{ast.unparse(arguments.kwarg)}"


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    sign = " = " if argument.annotation is not None else "="
    return ast.unparse(argument) + ("" if default is None else f"{sign}{ast.unparse(default)}")


def _assigned(node: ast.stmt) -> list[str]:
    match node:
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
            return [name]
        case ast.Assign(targets=[ast.Tuple(elts=names)]):
            return [ast.unparse(name) for name in names]
    return []


def _text(node: ast.stmt | None) -> str:
    match node:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return inspect.cleandoc(text)
    return ""
