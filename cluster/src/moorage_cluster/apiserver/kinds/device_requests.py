"""Device requests in ResourceClaims and their templates: defaulting and validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from moorage.api.manifests import Manifest
from moorage.api.names import c_identifier_problems
from moorage.apimachinery.fields import (
    NOT_POSITIVE,
    FieldError,
    complaints,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from moorage.apimachinery.validation.checks import check_driver_name, check_one_of, check_set
from moorage.apimachinery.validation.names import (
    check_label,
    check_label_value,
    check_qualified_name,
    check_subdomain,
)
from moorage.cel.budget import COST_LIMIT, WorkBudget, WorkLimitError
from moorage.cel.program import MAX_EXPRESSION_BYTES, CompileError, compile_selector

_MAX_REQUESTS: Final = 32
_MAX_CHOICES: Final = 8
_MAX_CONSTRAINTS: Final = 32
_MAX_CONFIGS: Final = 32
_MAX_SELECTORS: Final = 32
_MAX_PARAMETER_BYTES: Final = 10 * 1024
_MAX_COMPILING_WORK: Final = 400_000
_TOO_MUCH_TO_COMPILE: Final = "too complex, compiling all selectors exceeds the limit of one object"
_MAX_IDENTIFIER_LENGTH: Final = 32
DEVICE_EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
_ONE_FORM = "exactly one of `exactly` or `firstAvailable` is required"
_NO_SUCH_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)
_ONE_ATTRIBUTE = (
    'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
)

Names = Mapping[str, set[str]]
"""The names of requests, each with those of its subrequests."""


def default_device_claim(claim: Manifest) -> None:
    """Set the defaults of requests."""
    for request in claim.get("requests") or ():
        if "exactly" in request:
            _default_request(request["exactly"])
        for choice in request.get("firstAvailable") or ():
            _default_request(choice)


def _default_request(request: Manifest) -> None:
    if not request.get("allocationMode"):
        request["allocationMode"] = "ExactCount"
    if request["allocationMode"] == "ExactCount" and not request.get("count"):
        request["count"] = 1
    for toleration in request.get("tolerations") or ():
        toleration.setdefault("operator", "Equal")


def request_names(claim: Manifest) -> dict[str, set[str]]:
    """The names that allocations and constraints can refer to."""
    return {
        request.get("name", ""): {choice.get("name", "") for choice in request.get("firstAvailable") or ()}
        for request in claim.get("requests") or ()
    }


def check_device_claim(claim: Manifest, path: str) -> list[FieldError]:
    """Validation errors of a claim's `devices`."""
    names = request_names(claim)
    requests, here = claim.get("requests") or [], f"{path}.requests"
    errors: list[FieldError] = []
    selectors = SelectorChecks()
    if len(requests) <= _MAX_REQUESTS:
        for index, request in enumerate(requests):
            errors += _check_request(request, selectors, f"{here}[{index}]")
    errors += check_set(requests, _MAX_REQUESTS, lambda each: each.get("name", ""), here)
    errors += _check_constraints(claim.get("constraints") or [], names, f"{path}.constraints")
    return errors + check_configs(claim.get("config") or [], names, f"{path}.config")


def _check_request(request: Manifest, selectors: SelectorChecks, path: str) -> list[FieldError]:
    errors = check_label(request.get("name", ""), f"{path}.name")
    exactly, choices = request.get("exactly"), request.get("firstAvailable") or []
    if exactly is None and not choices:
        return [*errors, required(path, _ONE_FORM)]
    if exactly is not None and choices:
        return [*errors, invalid(path, None, f"{_ONE_FORM}, but multiple fields are set")]
    if exactly is not None:
        return errors + _check_devices(exactly, selectors, f"{path}.exactly")
    here = f"{path}.firstAvailable"
    if len(choices) <= _MAX_CHOICES:
        for index, choice in enumerate(choices):
            errors += check_label(choice.get("name", ""), f"{here}[{index}].name")
            errors += _check_devices(choice, selectors, f"{here}[{index}]")
    return errors + check_set(choices, _MAX_CHOICES, lambda each: each.get("name", ""), here)


def _check_devices(request: Manifest, selectors: SelectorChecks, path: str) -> list[FieldError]:
    name, here = request.get("deviceClassName", ""), f"{path}.deviceClassName"
    errors = check_subdomain(name, here) if name else [required(here)]
    errors += selectors.check(request.get("selectors") or [], f"{path}.selectors")
    mode, count = request.get("allocationMode", ""), request.get("count", 0)
    if mode == "All":
        if count:
            why = "must not be specified when allocationMode is 'All'"
            errors.append(invalid(f"{path}.count", count, why))
    elif mode != "ExactCount":
        errors.append(not_supported(f"{path}.allocationMode", mode, ("All", "ExactCount")))
    elif count <= 0:
        errors.append(invalid(f"{path}.count", count, NOT_POSITIVE))
    for index, toleration in enumerate(request.get("tolerations") or ()):
        errors += _check_toleration(toleration, f"{path}.tolerations[{index}]")
    return errors


def _check_toleration(toleration: Manifest, path: str) -> list[FieldError]:
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    value, effect = toleration.get("value", ""), toleration.get("effect", "")
    errors = check_qualified_name(key, f"{path}.key") if key else []
    errors += check_one_of(operator, ("Equal", "Exists"), f"{path}.operator")
    if operator == "Exists" and value:
        errors.append(invalid(f"{path}.value", value, "must be empty for operator `Exists`"))
    elif operator == "Equal":
        errors += check_label_value(value, f"{path}.value")
    return errors + (check_one_of(effect, DEVICE_EFFECTS, f"{path}.effect") if effect else [])


class SelectorChecks:
    """Checks the selectors of one object; their total CEL compilation cost is limited."""

    def __init__(self) -> None:
        self._work = WorkBudget(_MAX_COMPILING_WORK)

    def check(self, selectors: Sequence[Manifest], path: str) -> list[FieldError]:
        """Validation errors of the selectors of a request or a class."""
        if len(selectors) > _MAX_SELECTORS:
            return [too_many(path, len(selectors), _MAX_SELECTORS)]
        errors: list[FieldError] = []
        for index, selector in enumerate(selectors):
            here = f"{path}[{index}].cel"
            if "cel" not in selector:
                errors.append(required(here))
            else:
                errors += self._check_expression(selector["cel"].get("expression", ""), f"{here}.expression")
        return errors

    def _check_expression(self, expression: str, path: str) -> list[FieldError]:
        if len(expression.encode()) > MAX_EXPRESSION_BYTES:
            return [too_long(path, MAX_EXPRESSION_BYTES)]
        if self._work.left < 0:
            return [forbidden(path, _TOO_MUCH_TO_COMPILE)]
        try:
            selector = compile_selector(expression, self._work)
        except CompileError as error:
            return [invalid(path, expression, str(error))]
        except WorkLimitError:
            return [forbidden(path, _TOO_MUCH_TO_COMPILE)]
        if selector.max_cost > COST_LIMIT:
            return [forbidden(path, "too complex, exceeds cost limit")]
        return []


def _check_constraints(constraints: Sequence[Manifest], names: Names, path: str) -> list[FieldError]:
    if len(constraints) > _MAX_CONSTRAINTS:
        return [too_many(path, len(constraints), _MAX_CONSTRAINTS)]
    errors: list[FieldError] = []
    for index, constraint in enumerate(constraints):
        here = f"{path}[{index}]"
        errors += _check_references(constraint.get("requests") or [], names, f"{here}.requests")
        for key in ("matchAttribute", "distinctAttribute"):
            if key in constraint:
                errors += check_full_name(constraint[key], f"{here}.{key}")
                break
        else:
            errors.append(required(here, _ONE_ATTRIBUTE))
    return errors


def check_configs(configs: Sequence[Manifest], names: Names | None, path: str) -> list[FieldError]:
    """Parameters for drivers; those of a class (`names` None) do not refer to requests."""
    if len(configs) > _MAX_CONFIGS:
        return [too_many(path, len(configs), _MAX_CONFIGS)]
    errors: list[FieldError] = []
    for index, config in enumerate(configs):
        here = f"{path}[{index}]"
        if names is not None:
            errors += _check_references(config.get("requests") or [], names, f"{here}.requests")
        if "opaque" not in config:
            errors.append(required(f"{here}.opaque"))
            continue
        opaque = config["opaque"]
        errors += check_driver_name(opaque.get("driver", ""), f"{here}.opaque.driver")
        errors += check_parameters(opaque.get("parameters"), f"{here}.opaque.parameters")
    return errors


def check_parameters(parameters: Any, path: str) -> list[FieldError]:
    """Opaque data for a driver: an object of limited length."""
    if parameters is None:
        return [required(path)]
    if len(msgspec.json.encode(parameters)) > _MAX_PARAMETER_BYTES:
        return [too_long(path, _MAX_PARAMETER_BYTES)]
    if not isinstance(parameters, dict):
        return [invalid(path, "<value omitted>", "must be a valid JSON object")]
    return []


def _check_references(requests: Sequence[str], names: Names, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if len(requests) <= _MAX_REQUESTS:
        for index, name in enumerate(requests):
            errors += check_name_reference(name, names, f"{path}[{index}]")
    return errors + check_set(requests, _MAX_REQUESTS, str, path)


def check_name_reference(name: str, names: Names, path: str) -> list[FieldError]:
    """A request of the claim, or a subrequest of one."""
    parts = name.split("/")
    if len(parts) > 2:
        return [invalid(path, name, _NO_SUCH_REQUEST)]
    errors: list[FieldError] = []
    for part in parts:
        errors += check_label(part, path)
    choices = names.get(parts[0])
    if choices is None or (len(parts) == 2 and parts[1] not in choices):
        errors.append(invalid(path, name, _NO_SUCH_REQUEST))
    return errors


def check_device_name(name: str, path: str) -> list[FieldError]:
    """The name of an attribute or capacity, with or without a domain."""
    domain, slash, identifier = name.partition("/")
    if not slash:
        return _check_identifier(name, path)
    if "/" in identifier:
        return []
    errors = (
        check_driver_name(domain, path) if domain else [invalid(path, "", "the domain must not be empty")]
    )
    if not identifier:
        return [*errors, invalid(path, "", "the name must not be empty")]
    return errors + _check_identifier(identifier, path)


def check_full_name(name: str, path: str) -> list[FieldError]:
    """The name of an attribute with its domain."""
    errors = check_device_name(name, path)
    if "/" not in name:
        why = "a fully qualified name must be a domain and a name separated by a slash"
        errors.append(invalid(path, name, why))
    return errors


def _check_identifier(name: str, path: str) -> list[FieldError]:
    errors = [too_long(path, _MAX_IDENTIFIER_LENGTH)] if len(name) > _MAX_IDENTIFIER_LENGTH else []
    return errors + complaints(path, name, c_identifier_problems(name))
