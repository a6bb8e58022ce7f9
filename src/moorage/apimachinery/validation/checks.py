"""Common validation: numbers, quantities, enumerations, conditions, immutable fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

from moorage.api.manifests import Manifest
from moorage.api.names import dns_1035_label_problems, dns_subdomain_problems, pattern_rule
from moorage.api.quantity import parse_quantity
from moorage.apimachinery.fields import (
    IMMUTABLE,
    NOT_NEGATIVE,
    NOT_POSITIVE,
    FieldError,
    complaints,
    duplicate,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from moorage.apimachinery.validation.names import check_qualified_name

_MAX_DRIVER_NAME_LENGTH = 63
_MAX_REASON_LENGTH = 1024
_MAX_MESSAGE_LENGTH = 32 * 1024
_PERCENT = "[0-9]+%"
_PERCENT_RE = re.compile("[0-9]{1,18}%", re.ASCII)
_PERCENT_RULE = pattern_rule(
    "a valid percent string must be a numeric string followed by an ending '%'", _PERCENT, "1%", "93%"
)
_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_RE = re.compile(_REASON)
_REASON_RULE = pattern_rule(
    "a condition reason must start with alphabetic character, optionally followed by a string of "
    "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'",
    _REASON,
    "my_name",
    "MY_NAME",
    "MyName",
    "ReasonA,ReasonB",
    "ReasonA:ReasonB",
)
MAX_INT32 = (1 << 31) - 1
REVIEW_VERSIONS = ("v1", "v1beta1")
CONDITION_STATUSES = ("False", "True", "Unknown")


def check_not_negative(values: Mapping[str, Any], keys: Iterable[str], path: str) -> list[FieldError]:
    """Numbers that are not negative, where they are set."""
    return [
        invalid(f"{path}.{key}", values[key], NOT_NEGATIVE)
        for key in keys
        if key in values and values[key] < 0
    ]


def check_range(number: int, least: int, most: int, path: str) -> list[FieldError]:
    """A number in a range."""
    inside = least <= number <= most
    return [] if inside else [invalid(path, number, f"must be between {least} and {most}, inclusive")]


def check_unchanged(new: Any, old: Any, path: str) -> list[FieldError]:
    """An immutable field; absent is the same as an empty list or map."""
    if new == old or (_nothing(new) and _nothing(old)):
        return []
    return [invalid(path, new, IMMUTABLE)]


def _nothing(value: Any) -> bool:
    return value is None or value == {} or value == []


def check_one_of(value: Any, known: Sequence[str], path: str) -> list[FieldError]:
    """One of the supported values; an empty one is reported as missing."""
    if value in known:
        return []
    return [not_supported(path, value, known)] if value != "" else [required(path)]


def check_optional_word(value: Any, known: Sequence[str], path: str) -> list[FieldError]:
    """One of the supported values; an empty one is unsupported too."""
    return [] if value in known else [not_supported(path, value, known)]


def is_percent(value: Any) -> bool:
    """Whether a value is a percentage such as `25%`."""
    return isinstance(value, str) and _PERCENT_RE.fullmatch(value) is not None


def amount_of(value: int | str) -> int:
    """The number in a number or a percentage; 0 if there is none."""
    if isinstance(value, int):
        return value
    return int(value[:-1]) if is_percent(value) else 0


def check_int_or_percent(value: int | str, path: str) -> list[FieldError]:
    """A number that is not negative, or a percentage."""
    if isinstance(value, str):
        return [] if is_percent(value) else [invalid(path, value, _PERCENT_RULE)]
    return [] if value >= 0 else [invalid(path, value, NOT_NEGATIVE)]


def check_at_most_100_percent(value: int | str, path: str) -> list[FieldError]:
    """A percentage of at most 100%."""
    if is_percent(value) and amount_of(value) > 100:
        return [invalid(path, value, "must not be greater than 100%")]
    return []


def check_positive_quantity(quantity: str, path: str) -> list[FieldError]:
    """A quantity greater than zero."""
    return [] if parse_quantity(quantity) > 0 else [invalid(path, quantity, NOT_POSITIVE)]


def check_quantity_not_negative(quantity: str, path: str) -> list[FieldError]:
    """A quantity that is not negative."""
    return [] if parse_quantity(quantity) >= 0 else [invalid(path, quantity, NOT_NEGATIVE)]


def check_driver_name(name: str, path: str) -> list[FieldError]:
    """The name of a storage or device driver."""
    if not name:
        return [required(path)]
    errors = [too_long(path, _MAX_DRIVER_NAME_LENGTH)] if len(name) > _MAX_DRIVER_NAME_LENGTH else []
    return errors + complaints(path, name, dns_subdomain_problems(name.lower()))


def check_set(items: Sequence[Any], most: int, key: Callable[[Any], Hashable], path: str) -> list[FieldError]:
    """A list of limited length without duplicates."""
    if len(items) > most:
        return [too_many(path, len(items), most)]
    names = list(map(key, items))
    return [duplicate(f"{path}[{index}]", names[index]) for index in repetitions(names)]


def repetitions(items: Iterable[Hashable]) -> list[int]:
    """The indices of duplicate items."""
    seen: set[Hashable] = set()
    found = []
    for index, item in enumerate(items):
        if item in seen:
            found.append(index)
        seen.add(item)
    return found


def check_review_versions(versions: Sequence[str], path: str) -> list[FieldError]:
    """The review versions that a webhook supports, at least one of which the server sends."""
    errors: list[FieldError] = []
    repeated = set(repetitions(versions))
    for index, version in enumerate(versions):
        if index in repeated:
            errors.append(invalid(f"{path}[{index}]", version, "duplicate version"))
        else:
            errors += complaints(f"{path}[{index}]", version, dns_1035_label_problems(version))
    if not any(version in REVIEW_VERSIONS for version in versions):
        errors.append(invalid(path, versions, f"must include at least one of {', '.join(REVIEW_VERSIONS)}"))
    return errors


def check_conditions(conditions: Sequence[Manifest], path: str) -> list[FieldError]:
    """Conditions of the common form: one per type, each with a reason and a time."""
    errors = []
    seen = set()
    for index, condition in enumerate(conditions):
        here = f"{path}[{index}]"
        kind = condition.get("type", "")
        if kind in seen:
            errors.append(duplicate(f"{here}.type", kind))
        seen.add(kind)
        errors += check_qualified_name(kind, f"{here}.type")
        errors += check_optional_word(condition.get("status", ""), CONDITION_STATUSES, f"{here}.status")
        if condition.get("observedGeneration", 0) < 0:
            seen_generation = condition["observedGeneration"]
            why = "must be greater than or equal to zero"
            errors.append(invalid(f"{here}.observedGeneration", seen_generation, why))
        if not condition.get("lastTransitionTime"):
            errors.append(required(f"{here}.lastTransitionTime"))
        errors += _check_reason(condition.get("reason", ""), f"{here}.reason")
        if len(condition.get("message", "").encode()) > _MAX_MESSAGE_LENGTH:
            errors.append(too_long(f"{here}.message", _MAX_MESSAGE_LENGTH))
    return errors


def _check_reason(reason: str, path: str) -> list[FieldError]:
    if not reason:
        return [required(path)]
    errors = [] if _REASON_RE.fullmatch(reason) else [invalid(path, reason, _REASON_RULE)]
    if len(reason) > _MAX_REASON_LENGTH:
        errors.append(too_long(path, _MAX_REASON_LENGTH))
    return errors
