"""The schema of a custom kind: pruning, defaulting, validation, and how patches merge.

A structural schema describes one tree of places; `anyOf` and the like only restrict values. It
is compiled twice: into `places` for pruning, defaults and shape, and into `values` for validation.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from moorage.api.manifests import Manifest
from moorage.apimachinery import errors
from moorage.apimachinery.fields import FieldError, invalid
from moorage.apimachinery.schema.base import Decoded
from moorage.apimachinery.schema.shape import Shape
from moorage_cluster.apiserver.extensions.rules import embedded_problems, list_problems
from moorage_cluster.apiserver.extensions.schema_nodes import SchemaNode, Unknown, fill_in, pruned, shape_of
from moorage_cluster.apiserver.extensions.values import ABSENT, ValueCheck, placed


class CustomSchema:
    """The schema of one version of a custom kind: a `KindSchema` with defaulting and validation."""

    def __init__(self, openapi_schema: Mapping[str, Any]) -> None:
        self._root = SchemaNode(openapi_schema, is_root=True)
        self._check = ValueCheck(openapi_schema)
        status = (openapi_schema.get("properties") or {}).get("status")
        self._status_check = ValueCheck(status) if isinstance(status, Mapping) else None

    @cached_property
    def shape(self) -> Shape:
        """How patches merge."""
        return shape_of(self._root)

    def decode(self, value: Any) -> Decoded:
        """A copy without unknown fields and dropped nulls; ApiError (400) if it is no object."""
        if not isinstance(value, dict):
            raise errors.bad_request("the object provided is not a JSON object")
        unknown = Unknown([], [])
        try:
            obj = pruned(value, self._root, "", unknown)
        except RecursionError:
            raise errors.bad_request("the object provided is nested too deeply") from None
        except OverflowError:
            raise errors.bad_request("the object provided has a number that is too large") from None
        return Decoded(obj, unknown.in_order())

    def apply_defaults(self, obj: Manifest) -> None:
        """Fill in the schema's defaults."""
        fill_in(obj, self._root)

    def validate(self, obj: Manifest, old: Manifest | None = None) -> list[FieldError]:
        """The errors of an object; of an update (`old`), only new ones."""
        try:
            found = _checked(self._check, obj, "", ABSENT if old is None else old)
            if self._root.has_rules:
                found += embedded_problems(obj, self._root, "")
                found += self._new_list_problems(obj, old)
        except (RecursionError, OverflowError):
            return [invalid("<nil>", "", "the object is nested too deeply or has a number that is too large")]
        return found

    def validate_status(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The errors of the status of an object."""
        found: list[FieldError] = []
        try:
            if self._status_check is not None and "status" in obj:
                found += _checked(self._status_check, obj["status"], "status", old.get("status", ABSENT))
            if self._root.has_rules:
                found += self._new_list_problems(obj, old)
        except (RecursionError, OverflowError):
            return [
                invalid("status", "", "the status is nested too deeply or has a number that is too large")
            ]
        return found

    def _new_list_problems(self, obj: Manifest, old: Manifest | None) -> list[FieldError]:
        """Duplicates in lists, unless there were some before: an object that has them stays writable."""
        if old is not None and list_problems(old, self._root, ""):
            return []
        return list_problems(obj, self._root, "")


def _checked(check: ValueCheck, value: Any, prefix: str, old: Any) -> list[FieldError]:
    found: list[FieldError] = []
    check.run_unless_same(value, "", found, old)
    return placed(found, prefix) if found else found
