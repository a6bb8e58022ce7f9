"""Warnings and errors about unknown and duplicate fields (fieldValidation)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from moorage.api.text import path_key, quoted

_MOST: Final = 100
"""Maximum number of problems that Kubernetes lists."""
_OPERATION_FIELDS: Final = frozenset(("op", "path", "from", "value"))

_STEP: Final = re.compile(r"[.\[]")
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class BodyProblems:
    """The problems of a body's text; unknown fields are found later."""

    first: Sequence[str] = ()
    """Messages that precede those about unknown fields."""
    duplicates: Sequence[str] = ()
    """Paths of duplicate fields, listed after unknown fields and not within them."""
    yaml_lines: Sequence[str] = ()
    """Messages about duplicate keys in a YAML body."""

    def warnings(self, unknown: Sequence[str]) -> list[str]:
        """One message per problem: the warnings of fieldValidation=Warn."""
        return [*self.yaml_lines, *self._sentences(unknown)]

    def strict_error(self, unknown: Sequence[str]) -> str:
        """The error message of fieldValidation=Strict."""
        said = self._sentences(unknown)
        if self.yaml_lines:
            said.insert(0, "\n  ".join(("yaml: unmarshal errors:", *self.yaml_lines)))
        return f"strict decoding error: {', '.join(said)}"

    def _sentences(self, unknown: Sequence[str]) -> list[str]:
        known_places = set(unknown)
        said = [*self.first, *(f"unknown field {quoted(path)}" for path in unknown)]
        said += _duplicate_sentences(path for path in self.duplicates if not _is_within(path, known_places))
        return list(dict.fromkeys(said))[:_MOST]


def _is_within(path: str, places: Set[str]) -> bool:
    """Whether some paths contain a path or one of its parents."""
    return path in places or any(path[: step.start()] in places for step in _STEP.finditer(path))


NO_PROBLEMS: Final = BodyProblems()


def json_problems(body: bytes, value: Any, validation: str, *, is_typed: bool) -> BodyProblems:
    """The problems of a JSON body with the value `value`; for custom kinds also within unknown fields."""
    if not _is_checked(body, value, validation):
        return NO_PROBLEMS
    found = duplicate_fields(body)
    if not found:
        return NO_PROBLEMS
    return BodyProblems(duplicates=found) if is_typed else BodyProblems(_duplicate_sentences(found))


def json_patch_problems(body: bytes, patch: Any, validation: str) -> BodyProblems:
    """The problems of a JSON patch: unknown and duplicate fields of operations."""
    if validation == "Ignore":
        return NO_PROBLEMS
    operations = [each if isinstance(each, dict) else {} for each in patch] if isinstance(patch, list) else []
    said = [
        f"json patch unknown field {quoted(f'[{index}].{key}')}"
        for index, operation in enumerate(operations)
        for key in operation.keys() - _OPERATION_FIELDS
    ]
    if _is_checked(body, patch, validation):
        said += [f"json patch {sentence}" for sentence in _duplicate_sentences(duplicate_fields(body))]
    return BodyProblems(said) if said else NO_PROBLEMS


def _is_checked(body: bytes, value: Any, validation: str) -> bool:
    """Whether a body is searched for duplicate fields, which takes longer than all the rest.

    For a warning it is only searched if it is longer, and has more colons, than what was read from it.
    """
    if validation != "Warn":
        return validation == "Strict"
    meant = _encode(value)
    return len(meant) != len(body) and meant.count(b":") != body.count(b":")


def _duplicate_sentences(paths: Iterable[str]) -> list[str]:
    return [f"duplicate field {quoted(path)}" for path in paths]


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with all its pairs, including duplicate keys."""


def duplicate_fields(body: bytes) -> list[str]:
    """The paths of duplicate fields in a JSON body; none if it is no JSON."""
    try:
        root = json.loads(body, object_pairs_hook=_Pairs)
        return list(dict.fromkeys(_duplicates(root, "")))
    except (ValueError, RecursionError):
        return []


def _duplicates(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen = set()
        for key, item in value:
            inside = f"{path}.{path_key(key)}" if path else path_key(key)
            if key in seen:
                yield inside
            seen.add(key)
            if isinstance(item, list):
                yield from _duplicates(item, inside)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, list):
                yield from _duplicates(item, f"{path}[{index}]")
