"""The contract of plugins: every extension point with its methods."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from moorage.config.types import WIRE_NAMES
from moorage.framework.interface import extension_points as contract
from moorage.framework.interface.extension_points import POINTS, ExtensionPoint
from tools.docs.markdown import block, code, docstring, table
from tools.docs.syntax import class_node, described, signature


def page() -> str:
    """The page."""
    named = {each for point in POINTS.values() for each in (*point.protocols, *point.optional)}
    others = [each for each in _protocols() if each not in named and each is not contract.Plugin]
    parts = ["# Extension points", docstring(contract.__doc__), table(*_overview())]
    for point in POINTS.values():
        parts.append(f"## {point.metric_name}")
        for protocol in (*point.protocols, *point.optional):
            parts += _protocol(protocol)
    parts.append("## At no extension point of their own")
    for protocol in others:
        parts += _protocol(protocol)
    return "\n\n".join(parts) + "\n"


def _overview() -> tuple[list[str], list[list[str]]]:
    head = ["extension point", "in configurations", "methods", "for a"]
    return head, [
        [
            f"[{point.metric_name}](#{point.metric_name.lower()})",
            code(WIRE_NAMES.get(point.name, "multiPoint")),
            ", ".join(code(method) for method in point.methods),
            _subject(point),
        ]
        for point in POINTS.values()
    ]


def _subject(point: ExtensionPoint) -> str:
    return ("group" if point.of_groups else "pod") + (", may wait" if point.may_wait else "")


def _protocols() -> Iterator[type]:
    """The protocols of the contract, in the order of the source."""
    for each in vars(contract).values():
        is_own = isinstance(each, type) and each.__module__ == contract.__name__
        if is_own and getattr(each, "_is_protocol", False):
            yield each


def _protocol(protocol: type) -> Iterator[str]:
    node = class_node(protocol)
    yield f"### {protocol.__name__}"
    yield docstring(protocol.__doc__)
    for attribute in described(node.body):
        yield block(attribute.line)
        yield docstring(attribute.text)
    for method in node.body:
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
            yield block(signature(method))
            yield docstring(ast.get_docstring(method))
