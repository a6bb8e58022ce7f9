"""Validation of a value against the shape of its kind, with kube-apiserver's messages."""

from __future__ import annotations

from typing import Any

from moorage.api.text import path_key
from moorage.apimachinery.json_values import go_text
from moorage.apimachinery.schema.shape import Form, Shape
from moorage_cluster.apiserver.patches.apply.elements import MalformedError, element_text, item_element
from moorage_cluster.apiserver.patches.apply.shape_access import (
    field_shape,
    is_declared,
    is_item_list,
    item_shape,
)


def check_applied(value: Any, shape: Shape) -> None:
    """Reject, with MalformedError, a value of another shape or with duplicate items."""
    _check(value, shape, strictly=True)


def check_live(value: Any, shape: Shape) -> None:
    """Reject, with MalformedError, a stored value that cannot be merged; duplicate items are allowed."""
    _check(value, shape, strictly=False)


def _check(value: Any, shape: Shape, *, strictly: bool) -> None:
    problems = _problems(value, shape, "", strictly)
    if len(problems) == 1:
        raise MalformedError(problems[0])
    if problems:
        raise MalformedError("\n  ".join(["errors:", *problems]))


def _problems(value: Any, shape: Shape, path: str, strictly: bool) -> list[str]:
    """The errors, each with its path. Null is allowed everywhere."""
    if value is None or shape.form is Form.ANY:
        return []
    if shape.form is Form.LIST:
        if not isinstance(value, list):
            return [_problem(path, f"expected list, got &{{{go_text(value)}}}")]
        return _list_problems(value, shape, path, strictly)
    if shape.form is Form.SCALAR:
        if isinstance(value, dict | list):
            return [_problem(path, f"expected any scalar, got &{{{go_text(value)}}}")]
        return []
    if not isinstance(value, dict):
        return [_problem(path, f"expected map, got &{{{go_text(value)}}}")]
    problems = []
    for name, item in value.items():
        if strictly and shape.form is Form.OBJECT and not is_declared(shape, name) and shape.items is None:
            problems.append(_problem(f"{path}.{name}", "field not declared in schema"))
            break
        problems += _problems(item, field_shape(shape, name), f"{path}.{path_key(name)}", strictly)
    return problems


def _list_problems(items: list[Any], shape: Shape, path: str, strictly: bool) -> list[str]:
    problems = []
    seen = set()
    for index, item in enumerate(items):
        step = f"[{index}]"
        if is_item_list(shape):
            try:
                element = item_element(item, shape)
            except MalformedError as problem:
                # Later items cannot be identified either.
                problems.append(_problem(path, f"element {index}: {problem}"))
                break
            step = element_text(element)
            if strictly and element in seen:
                problems.append(_problem(path, f"duplicate entries for key {step}"))
            seen.add(element)
        problems += _problems(item, item_shape(shape), f"{path}{step}", strictly)
    return problems


def _problem(path: str, text: str) -> str:
    return f"{path}: {text}" if path else text
