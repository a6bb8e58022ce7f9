"""A job's pod failure policy and success policy, and the indexes they name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from moorage.api.manifests import Manifest
from moorage.api.text import quoted
from moorage.apimachinery.fields import (
    OMITTED,
    FieldError,
    duplicate,
    invalid,
    required,
    too_long,
    too_many,
)
from moorage.apimachinery.validation.checks import (
    CONDITION_STATUSES,
    check_not_negative,
    check_optional_word,
    repetitions,
)
from moorage.apimachinery.validation.names import check_qualified_name

_ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS: Final = ("In", "NotIn")
_MAX_RULES = 20
_MAX_EXIT_CODES = 255
_MAX_PATTERNS = 20
_MAX_INDEX_BYTES = 64 * 1024


def check_failure_policy(spec: Manifest, path: str) -> list[FieldError]:
    """Validation errors of the pod failure policy."""
    rules = spec["podFailurePolicy"].get("rules") or []
    errors = [too_many(f"{path}.rules", len(rules), _MAX_RULES)] if len(rules) > _MAX_RULES else []
    pod = (spec.get("template") or {}).get("spec") or {}
    containers = {
        each.get("name") for part in ("containers", "initContainers") for each in pod.get(part) or ()
    }
    for index, rule in enumerate(rules):
        here = f"{path}.rules[{index}]"
        errors += _check_action(rule.get("action", ""), spec, f"{here}.action")
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or ()
        if codes is not None:
            errors += _check_exit_codes(codes, containers, f"{here}.onExitCodes")
        errors += _check_patterns(conditions, f"{here}.onPodConditions")
        if codes is not None and conditions:
            errors.append(
                invalid(here, OMITTED, "specifying both OnExitCodes and OnPodConditions is not supported")
            )
        elif codes is None and not conditions:
            errors.append(
                invalid(here, OMITTED, "specifying one of OnExitCodes and OnPodConditions is required")
            )
    return errors


def _listed(words: Sequence[str]) -> str:
    return f"valid values: [{' '.join(quoted(word) for word in words)}]"


def _check_word(word: str, known: Sequence[str], path: str) -> list[FieldError]:
    return check_optional_word(word, known, path) if word else [required(path, _listed(known))]


def _check_action(action: str, spec: Manifest, path: str) -> list[FieldError]:
    if action == "FailIndex" and "backoffLimitPerIndex" not in spec:
        return [invalid(path, action, "requires the backoffLimitPerIndex to be set")]
    return _check_word(action, _ACTIONS, path)


def _check_exit_codes(codes: Manifest, containers: set[str | None], path: str) -> list[FieldError]:
    operator, values = codes.get("operator", ""), codes.get("values") or []
    errors = _check_word(operator, _OPERATORS, f"{path}.operator")
    if "containerName" in codes and codes["containerName"] not in containers:
        why = "must be one of the container or initContainer names in the pod template"
        errors.append(invalid(f"{path}.containerName", codes["containerName"], why))
    here = f"{path}.values"
    if not values:
        errors.append(invalid(here, values, "at least one value is required"))
    elif len(values) > _MAX_EXIT_CODES:
        errors.append(too_many(here, len(values), _MAX_EXIT_CODES))
    repeated = set(repetitions(values))
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            errors.append(invalid(f"{here}[{index}]", value, "must not be 0 for the In operator"))
        if index in repeated:
            errors.append(duplicate(f"{here}[{index}]", value))
    if values != sorted(values):
        errors.append(invalid(here, values, "must be ordered"))
    return errors


def _check_patterns(patterns: Sequence[Manifest], path: str) -> list[FieldError]:
    errors = [too_many(path, len(patterns), _MAX_PATTERNS)] if len(patterns) > _MAX_PATTERNS else []
    for index, pattern in enumerate(patterns):
        here = f"{path}[{index}]"
        errors += check_qualified_name(pattern.get("type", ""), f"{here}.type")
        errors += _check_word(pattern.get("status", ""), CONDITION_STATUSES, f"{here}.status")
    return errors


def check_success_policy(spec: Manifest, path: str) -> list[FieldError]:
    """Validation errors of the success policy."""
    rules = spec["successPolicy"].get("rules") or []
    errors = []
    if not rules:
        why = "at least one rules must be specified when the successPolicy is specified"
        errors.append(required(f"{path}.rules", why))
    if len(rules) > _MAX_RULES:
        errors.append(too_many(f"{path}.rules", len(rules), _MAX_RULES))
    for index, rule in enumerate(rules):
        errors += _check_success_rule(rule, spec.get("completions", 0), f"{path}.rules[{index}]")
    return errors


def _check_success_rule(rule: Manifest, completions: int, path: str) -> list[FieldError]:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    if count is None and indexes is None:
        return [required(path, "at least one of succeededCount or succeededIndexes must be specified")]
    errors = []
    named = 0
    if indexes is not None:
        here = f"{path}.succeededIndexes"
        if len(indexes) > _MAX_INDEX_BYTES:
            errors.append(too_long(here, _MAX_INDEX_BYTES))
        try:
            named = count_indexes(indexes, completions)
        except ValueError as error:
            errors.append(invalid(here, indexes, f"error parsing succeededIndexes: {error}"))
    if count is not None:
        here = f"{path}.succeededCount"
        errors += check_not_negative(rule, ("succeededCount",), path)
        if count > completions:
            why = f"must be less than or equal to {completions} (the number of specified completions)"
            errors.append(invalid(here, count, why))
        if indexes is not None and count > named:
            why = f"{named} (the number of indexes in the specified succeededIndexes field)"
            errors.append(invalid(here, count, f"must be less than or equal to {why}"))
    return errors


def count_indexes(text: str, completions: int) -> int:
    """The number of indexes in a text such as `1,3-5`; ValueError if it is malformed."""
    total, last = 0, -1
    for part in text.split(",") if text else ():
        ends = part.split("-")
        if len(ends) > 2:
            raise ValueError(
                f"the fragment {quoted(part)} violates the requirement that an index interval can have at "
                "most two parts separated by '-'"
            )
        numbers = [_index(end, completions) for end in ends]
        first, final = numbers[0], numbers[-1]
        if len(ends) == 2 and first >= final:
            raise ValueError(f"non-increasing order, previous: {first}, current: {final}")
        if 0 <= last >= first:
            raise ValueError(f"non-increasing order, previous: {last}, current: {first}")
        total += final - first + 1
        last = final
    return total


def _index(text: str, completions: int) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"cannot convert string to integer for index: {quoted(text)}")
    if int(text) >= completions:
        raise ValueError(f"too large index: {quoted(text)}")
    return int(text)
