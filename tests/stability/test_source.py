"""The texts that an expression in the source can be."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from moorage.config.types import KIND
from moorage.klog import UNHANDLED
from tools.interface.source import Module, Place, called, places_in, texts

CASES = {
    "a text": ("def f():\n show('a')", ["a"]),
    "a condition": ("def f(x):\n show('a' if x else 'b')", ["a", "b"]),
    "what is known later": ("def f(x):\n show(f'a {x}')", ["a …"]),
    "a variable": ("def f():\n m = 'a'\n show(m)", ["a"]),
    "the last of two assignments": ("def f():\n m = 'a'\n m = 'b'\n show(m)", ["b"]),
    "what may be assigned since": (
        "def f(x):\n m = 'a'\n if x:\n  m = 'b'\n show(m)",
        ["b", "a"],
    ),
    "another branch": (
        "def f(x):\n if x:\n  m = 'a'\n else:\n  m = 'b'\n  show(m)",
        ["b"],
    ),
    "what is assigned later": ("def f():\n m = 'a'\n show(m)\n m = 'b'", ["a"]),
    "several at once": ("def f():\n m, n = 'a', 'b'\n show(n)", ["b"]),
    "a parameter": ("def f(m):\n show(m)\nf('a')\nf(m='b')", ["a", "b"]),
    "a parameter of a method": (
        "class C:\n def f(self, m):\n  show(m)\n def g(self):\n  self.f('a')",
        ["a"],
    ),
    "a name of the module": ("def f():\n show(UNHANDLED)", [UNHANDLED]),
    "an imported name": (
        "def f():\n from moorage.config.types import KIND\n show(KIND)",
        [KIND],
    ),
    "anything else": ("def f(x):\n show(x.y)", []),
}


def shown(source: str) -> tuple[Place, ast.expr]:
    """The place of the call of `show`, and its argument."""
    module = Module("moorage.klog", ast.parse(dedent(source)))
    (place,) = (each for each in places_in(module) if called(each.node) == "show")
    assert isinstance(place.node, ast.Call)
    return place, place.node.args[0]


@pytest.mark.parametrize(("source", "expected"), CASES.values(), ids=CASES)
def test_texts_of_an_expression(source: str, expected: list[str]) -> None:
    assert texts(*shown(source)) == expected
