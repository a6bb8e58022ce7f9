"""Optional plugins are written as plugins from outside: what they need is importable from `moorage`."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import moorage
import moorage.optional_plugins
from moorage.plugins import LOADED_BY_NAME, default_registry

ROOT = Path(moorage.optional_plugins.__file__).parent
MODULES = sorted(path for path in ROOT.glob("*/**/*.py"))


def imports(source: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The modules that a source imports, each with the names that it takes from it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((each.name, ()) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or ""), tuple(each.name for each in node.names)


def forbidden(source: str, folder: str) -> list[str]:
    """What a plugin's module imports that a plugin of somebody else would better not."""
    own = f"moorage.optional_plugins.{folder}"
    found = []
    for module, names in imports(source):
        top = module.partition(".")[0]
        is_own = module == own or module.startswith(f"{own}.")
        is_public = module == "moorage" and set(names) <= set(moorage.__all__)
        if not (is_own or is_public or top in sys.stdlib_module_names or top == "numpy"):
            found.append(module)
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_optional_plugins_import_nothing_but_public_names(path: Path) -> None:
    assert forbidden(path.read_text(), path.relative_to(ROOT).parts[0]) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import moorage.api.pod", ["moorage.api.pod"]),
        ("from moorage.api.pod import Pod", ["moorage.api.pod"]),
        ("from moorage import api", ["moorage"]),
        (
            "from moorage.optional_plugins.theirs.plugin import Theirs",
            ["moorage.optional_plugins.theirs.plugin"],
        ),
        ("import msgspec", ["msgspec"]),
        ("from . import plugin", ["."]),
        (
            "import numpy as np\nfrom moorage import Pod\nfrom moorage.optional_plugins.mine.a import B",
            [],
        ),
    ],
)
def test_other_imports_are_found(source: str, found: list[str]) -> None:
    assert forbidden(source, "mine") == found


@pytest.mark.parametrize("name", LOADED_BY_NAME)
def test_every_optional_plugin_has_its_name(name: str) -> None:
    made = default_registry()[name]
    assert getattr(made, "name", None) == name
    assert isinstance(import_module(LOADED_BY_NAME[name].partition(":")[0]), ModuleType)
