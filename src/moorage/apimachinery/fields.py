"""Errors of fields of an object, with Kubernetes' messages.

Validation collects `FieldError`s; `errors.invalid` turns them into the Status that clients print.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Final, NamedTuple

import msgspec

from moorage.api.text import quoted, shortened
from moorage.apimachinery.json_values import go_text


class Problem(StrEnum):
    """The types of errors, by the text that users see."""

    REQUIRED = "Required value"
    INVALID = "Invalid value"
    NOT_SUPPORTED = "Unsupported value"
    DUPLICATE = "Duplicate value"
    FORBIDDEN = "Forbidden"
    TOO_LONG = "Too long"
    TOO_SHORT = "Too short"
    TOO_MANY = "Too many"
    TOO_FEW = "Too few"
    NOT_FOUND = "Not found"
    INTERNAL = "Internal error"

    @property
    def reason(self) -> str:
        """The machine-readable type: the cause's `reason` in a Status."""
        return _REASONS[self]


_REASONS: Final = {
    Problem.REQUIRED: "FieldValueRequired",
    Problem.INVALID: "FieldValueInvalid",
    Problem.NOT_SUPPORTED: "FieldValueNotSupported",
    Problem.DUPLICATE: "FieldValueDuplicate",
    Problem.FORBIDDEN: "FieldValueForbidden",
    Problem.TOO_LONG: "FieldValueTooLong",
    Problem.TOO_SHORT: "FieldValueTooShort",
    Problem.TOO_MANY: "FieldValueTooMany",
    Problem.TOO_FEW: "FieldValueTooFew",
    Problem.NOT_FOUND: "FieldValueNotFound",
    Problem.INTERNAL: "InternalError",
}
_WITHOUT_VALUE = (Problem.REQUIRED, Problem.FORBIDDEN, Problem.TOO_LONG, Problem.TOO_SHORT, Problem.INTERNAL)

_MAX_PART_LENGTH: Final = 4096
_MAX_DETAIL_LENGTH: Final = 16_384
"""Maximum characters of a path or value, and of a detail; the rest is not shown."""

ENOUGH_ERRORS: Final = 1000
"""Number of errors, far more than fit into an answer, after which validation of lists stops."""

OMITTED: Final = object()
"""Placeholder for a value that a message omits because it is too long or not informative."""


class FieldError(NamedTuple):
    """One error of one field."""

    problem: Problem
    path: str
    value: Any = None
    detail: str = ""

    @property
    def body(self) -> str:
        """The message without the field's name."""
        text: str = self.problem.value
        if self.problem not in _WITHOUT_VALUE and self.value is not OMITTED:
            text += f": {_shown(self.value)}"
        return f"{text}: {shortened(self.detail, _MAX_DETAIL_LENGTH)}" if self.detail else text

    @property
    def field(self) -> str:
        """The path, shortened for display."""
        return shortened(self.path, _MAX_PART_LENGTH)

    def __str__(self) -> str:
        return f"{self.field}: {self.body}"


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return quoted(shortened(value, _MAX_PART_LENGTH))
    if isinstance(value, float):
        return go_text(value)
    encoded = msgspec.json.encode(value)
    return shortened(encoded[: 4 * _MAX_PART_LENGTH].decode(errors="ignore"), _MAX_PART_LENGTH)


def required(path: str, detail: str = "") -> FieldError:
    """A required field is missing."""
    return FieldError(Problem.REQUIRED, path, None, detail)


def invalid(path: str, value: Any, detail: str) -> FieldError:
    """An invalid value."""
    return FieldError(Problem.INVALID, path, value, detail)


NOT_NEGATIVE: Final = "must be greater than or equal to 0"
NOT_POSITIVE: Final = "must be greater than zero"
IMMUTABLE: Final = "field is immutable"
"""The errors of values at many paths."""


def complaints(path: str, value: Any, problems: Iterable[str]) -> list[FieldError]:
    """An invalid value, once for each reason."""
    return [invalid(path, value, problem) for problem in problems]


def not_supported(path: str, value: Any, supported: Iterable[str]) -> FieldError:
    """A value that is not supported; the supported ones are listed in the order given."""
    known = ", ".join(quoted(item) for item in supported)
    return FieldError(Problem.NOT_SUPPORTED, path, value, f"supported values: {known}" if known else "")


def duplicate(path: str, value: Any) -> FieldError:
    """A duplicate value."""
    return FieldError(Problem.DUPLICATE, path, value)


def forbidden(path: str, detail: str) -> FieldError:
    """A field that must not be set, or not changed."""
    return FieldError(Problem.FORBIDDEN, path, None, detail)


def too_long(path: str, most_bytes: int) -> FieldError:
    """Text with too many bytes."""
    unit = "byte" if most_bytes == 1 else "bytes"
    return FieldError(Problem.TOO_LONG, path, None, f"may not be more than {most_bytes} {unit}")


def too_many(path: str, count: int, most: int) -> FieldError:
    """A list with too many items."""
    unit = "item" if most == 1 else "items"
    return FieldError(Problem.TOO_MANY, path, count, f"must have at most {most} {unit}")


def not_found(path: str, value: Any) -> FieldError:
    """A reference to an object that does not exist."""
    return FieldError(Problem.NOT_FOUND, path, value)
