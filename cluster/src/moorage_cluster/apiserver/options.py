"""The query parameters of a request, validated."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from moorage.apimachinery import errors
from moorage.apimachinery.fields import FieldError, Problem, forbidden, not_supported
from moorage.config.duration import parse_duration
from moorage_cluster.apiserver.selector_parsing import (
    FieldSelector,
    LabelSelector,
    parse_field_selector,
    parse_label_selector,
)

MAX_PAGE = 10_000
"""Maximum items of a page; a client that requests more gets the rest with the next page."""
_FIELD_VALIDATIONS = ("Ignore", "Warn", "Strict")
_MATCHES = ("Exact", "NotOlderThan")
_INT64_MAX = (1 << 63) - 1
_INTEGER = re.compile(r"[-+]?[0-9]+")
_MAX_INTEGER_LENGTH = 40
"""Maximum digits of an integer; longer ones are out of range, and parsing takes quadratic time."""

Query = Mapping[str, str]


def parse_query(text: str) -> Query:
    """The query's parameters; of a repeated one, the first value."""
    query: dict[str, str] = {}
    if text:
        for key, value in parse_qsl(text, keep_blank_values=True):
            query.setdefault(key, value)
    return query


def flag(query: Query, name: str) -> bool:
    """A parameter that is true or false; Kubernetes takes anything but these two words as true."""
    return name in query and query[name].lower() not in ("false", "0")


def number(query: Query, name: str) -> int | None:
    """A parameter that is a whole number."""
    text = query.get(name, "")
    if not text:
        return None
    if not _INTEGER.fullmatch(text):
        raise errors.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    value = int(text) if len(text) <= _MAX_INTEGER_LENGTH else None
    if value is None or not -_INT64_MAX <= value + 1 <= _INT64_MAX + 1:
        raise errors.bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return value


def check_timeout(query: Query) -> None:
    """Validate that `timeout` is a duration; ApiError (400) if not. It has no other effect."""
    text = query.get("timeout")
    if text:
        try:
            parse_duration(text)
        except ValueError as error:
            why = str(error).partition(" (")[0]
            raise errors.bad_request(f"invalid timeout specified in the request URL - time: {why}") from None


def revision(query: Query) -> int | None:
    """The requested `resourceVersion`; None: the newest."""
    text = query.get("resourceVersion", "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit()):
        raise _bad_revision(text, "invalid syntax")
    if len(text) > _MAX_INTEGER_LENGTH or int(text) > _INT64_MAX:
        raise _bad_revision(text, "value out of range")
    return int(text)


def _bad_revision(text: str, why: str) -> errors.ApiError:
    return errors.bad_request(f'Invalid value: "{text}": strconv.ParseUint: parsing "{text}": {why}')


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Selectors, resource version and paging."""

    labels: LabelSelector
    fields: FieldSelector
    revision: int | None
    match: str
    limit: int
    token: str
    """The continue token of the previous page."""


def list_options(query: Query, *, watching: bool = False) -> ListOptions:
    """The options of a list, a watch or a deletecollection."""
    match = query.get("resourceVersionMatch", "")
    at = revision(query)
    limit = number(query, "limit") or 0
    number(query, "timeoutSeconds")  # Validated, but without effect on lists.
    token = query.get("continue", "")
    problems = _watch_problems(query) if watching else _list_problems(query)
    if problems:
        raise errors.invalid("meta.k8s.io", "ListOptions", "", problems)
    if token and at:
        raise errors.bad_request("specifying resource version is not allowed when using continue")
    return ListOptions(
        parse_label_selector(query.get("labelSelector", "")),
        parse_field_selector(query.get("fieldSelector", "")),
        at,
        match,
        min(max(limit, 0), MAX_PAGE),
        token,
    )


def _list_problems(query: Query) -> list[FieldError]:
    found = []
    match = query.get("resourceVersionMatch", "")
    if match:
        if not query.get("resourceVersion"):
            found.append(_bad_match("resourceVersionMatch is forbidden unless resourceVersion is provided"))
        if query.get("continue"):
            found.append(_bad_match("resourceVersionMatch is forbidden when continue is provided"))
        if match not in _MATCHES:
            known = 'supported values: "Exact", "NotOlderThan", ""'
            found.append(FieldError(Problem.NOT_SUPPORTED, "resourceVersionMatch", match, known))
        if match == "Exact" and query.get("resourceVersion") == "0":
            found.append(_bad_match('resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if "sendInitialEvents" in query:
        found.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return found


def _watch_problems(query: Query) -> list[FieldError]:
    found = []
    match = query.get("resourceVersionMatch", "")
    if "sendInitialEvents" in query and match != "NotOlderThan":
        found.append(_bad_match("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
    if match:
        if "sendInitialEvents" not in query:
            found.append(
                _bad_match("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
            )
        if match != "NotOlderThan":
            found.append(not_supported("resourceVersionMatch", match, ("NotOlderThan",)))
        if query.get("continue"):
            found.append(_bad_match("resourceVersionMatch is forbidden when continue is provided"))
    return found


def _bad_match(why: str) -> FieldError:
    return forbidden("resourceVersionMatch", why)


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of a write."""

    dry_run: bool = False
    field_validation: str = "Warn"
    field_manager: str = ""
    force: bool = False


def write_options(query: Query) -> WriteOptions:
    """The options of a create, an update or a patch."""
    if not query:
        return _PLAIN
    validation = query.get("fieldValidation") or "Warn"
    if validation not in _FIELD_VALIDATIONS:
        supported = ", ".join(f'"{known}"' for known in ("", *_FIELD_VALIDATIONS))
        raise errors.bad_request(
            f'fieldValidation: Unsupported value: "{validation}": supported values: {supported}'
        )
    manager = query.get("fieldManager", "")
    if len(manager) > 128:
        raise errors.bad_request("fieldManager: Too long: may not be more than 128 bytes")
    return WriteOptions(dry_run(query.get("dryRun", "")), validation, manager, flag(query, "force"))


_PLAIN = WriteOptions()


def dry_run(value: str) -> bool:
    """Whether the request is a dry run."""
    if value not in ("", "All"):
        raise errors.bad_request(f'dryRun: Unsupported value: "{value}": supported values: "All"')
    return value == "All"
