"""The interface of a kind's schema, built-in or custom."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from moorage.api.manifests import Manifest
from moorage.apimachinery import errors
from moorage.apimachinery.schema.shape import ANYTHING, Shape


class Decoded(NamedTuple):
    """A decoded object, and its unknown fields."""

    obj: Manifest
    """A copy without unknown fields and nulls, with quantities and times in canonical form."""
    unknown: list[str]
    """Paths of unknown fields, such as `spec.containers[0].imagee`."""


class KindSchema(Protocol):
    """The fields of a kind."""

    @property
    def shape(self) -> Shape:
        """How patches merge."""

    def decode(self, value: Any) -> Decoded:
        """A JSON value as an object of this kind; ApiError (400) if a value has the wrong type."""


class Anything:
    """The schema of an unknown kind."""

    shape = ANYTHING

    def decode(self, value: Any) -> Decoded:
        """Any JSON object, as it is."""
        if not isinstance(value, dict):
            raise errors.bad_request("the object provided is not a JSON object")
        return Decoded(value, [])


UNTYPED_SCHEMA = Anything()
