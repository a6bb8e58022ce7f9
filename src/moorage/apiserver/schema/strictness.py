"""What to say of fields that are unknown or there twice, when the client wants to know (fieldValidation)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from moorage.apiserver.errors import ApiError
from moorage.apiserver.schema.builtin import cannot_be_handled
from moorage.apiserver.text import quoted

_MOST: Final = 100
"""Kubernetes lists no more problems than this."""


def strictness_problems(unknown: Iterable[str], duplicates: Iterable[str]) -> list[str]:
    """One sentence a field: the warnings of fieldValidation=Warn.

    Kubernetes does not look into unknown fields, so nothing is there twice in them.
    """
    pruned = tuple(unknown)
    said = [f"unknown field {quoted(path)}" for path in pruned]
    within = tuple(path + follows for path in pruned for follows in ".[")
    said += [
        f"duplicate field {quoted(path)}"
        for path in duplicates
        if path not in pruned and not path.startswith(within)
    ]
    return list(dict.fromkeys(said))[:_MOST]


def strict_decoding_error(kind: str, version: str, unknown: list[str], duplicates: list[str]) -> ApiError:
    """The refusal of fieldValidation=Strict."""
    problems = ", ".join(strictness_problems(unknown, duplicates))
    return cannot_be_handled(kind, version, f"strict decoding error: {problems}")


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with all its pairs, also those whose key comes again."""


def duplicate_fields(body: bytes) -> list[str]:
    """The paths of fields that a JSON body has twice; none if it is no JSON."""
    try:
        root = json.loads(body, object_pairs_hook=_Pairs)
        return list(dict.fromkeys(_duplicates(root, "")))
    except (ValueError, RecursionError):
        return []


def _duplicates(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen = set()
        for key, item in value:
            inside = f"{path}.{key}" if path else key
            if key in seen:
                yield inside
            seen.add(key)
            if isinstance(item, list):
                yield from _duplicates(item, inside)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, list):
                yield from _duplicates(item, f"{path}[{index}]")
