"""Fixtures, options and markers that the laptop cluster adds to pytest."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from tools.interface.fact import Fact
from tools.interface.python_names import class_facts
from tools.interface.source import called, modules

_PLUGIN: Final = "moorage_cluster.pytest_plugin"
_WORDS: Final = {"addoption": "option", "addini": "setting", "addinivalue_line": "marker"}


def pytest_facts() -> Iterator[Fact]:
    """What the plugin for pytest defines, and the type of its fixtures."""
    from moorage_cluster.background import Endpoint

    yield from class_facts("Endpoint", Endpoint)
    (tree,) = (module.tree for module in modules("pytest_addoption") if module.name == _PLUGIN)
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name, returns=ast.expr() as made, decorator_list=[decorator]):
                if called(decorator) == "fixture":
                    yield Fact(name, f"fixture: {ast.unparse(made)}")
            case ast.Call(args=[*_]) if called(node) in _WORDS:
                first = [each.value for each in node.args if isinstance(each, ast.Constant)]
                name = str(first[-1 if called(node) == "addinivalue_line" else 0])
                yield Fact(name.partition(":")[0], _WORDS[called(node)])
