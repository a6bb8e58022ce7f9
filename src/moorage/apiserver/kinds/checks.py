"""Checks that many kinds make: numbers, amounts, ports, addresses, fields that may not change."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from moorage.api.manifests import Manifest
from moorage.api.quantity import parse_quantity
from moorage.apiserver.fields import (
    FieldError,
    Problem,
    duplicate,
    invalid,
    required,
    too_long,
    too_many,
)
from moorage.apiserver.kinds.names import (
    check_qualified_name,
    pattern_rule,
    port_name_problems,
    subdomain_problems,
)
from moorage.apiserver.text import quoted

NOT_NEGATIVE = "must be greater than or equal to 0"
NOT_POSITIVE = "must be greater than zero"
IMMUTABLE = "field is immutable"
_HIGHEST_PORT = 65535
_PORT_RANGE = f"must be between 1 and {_HIGHEST_PORT}, inclusive"
_LONGEST_DRIVER_NAME = 63
_LONGEST_REASON = 1024
_LONGEST_MESSAGE = 32 * 1024
_PERCENT = "[0-9]+%"
_PERCENT_RE = re.compile(_PERCENT, re.ASCII)
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
_STATUSES = ("False", "True", "Unknown")


def check_not_negative(values: Mapping[str, Any], keys: Iterable[str], path: str) -> list[FieldError]:
    """Numbers that may be zero, where they are set."""
    return [
        invalid(f"{path}.{key}", values[key], NOT_NEGATIVE)
        for key in keys
        if key in values and values[key] < 0
    ]


def check_unchanged(new: Any, old: Any, path: str) -> list[FieldError]:
    """A field that keeps its first value; nothing and an empty list or map are the same."""
    if new == old or (_nothing(new) and _nothing(old)):
        return []
    return [invalid(path, new, IMMUTABLE)]


def _nothing(value: Any) -> bool:
    return value is None or value == {} or value == []


class _UnshownError(FieldError):
    """A problem with a value that is too long to be shown."""

    __slots__ = ()

    @property
    def body(self) -> str:
        """The message without the field's name and the value."""
        return f"{self.problem.value}: {self.detail}"


def unshown(path: str, why: str) -> FieldError:
    """An invalid value that the message leaves out."""
    return _UnshownError(Problem.INVALID, path, None, why)


def unsupported(path: str, value: Any, known: Sequence[str]) -> FieldError:
    """A word that is not one of the known ones, which are listed in the order given, as Kubernetes does."""
    listed = ", ".join(quoted(word) for word in known)
    return FieldError(Problem.NOT_SUPPORTED, path, value, f"supported values: {listed}")


def check_one_of(value: Any, known: Sequence[str], path: str) -> list[FieldError]:
    """One of some known words; none where one is needed is another complaint."""
    if value in known:
        return []
    return [unsupported(path, value, known)] if value != "" else [required(path)]


def check_optional_word(value: Any, known: Sequence[str], path: str) -> list[FieldError]:
    """One of some known words, where even none is just an unknown word."""
    return [] if value in known else [unsupported(path, value, known)]


def check_port(port: int, path: str) -> list[FieldError]:
    """A port's number."""
    return [] if 1 <= port <= _HIGHEST_PORT else [invalid(path, port, _PORT_RANGE)]


def check_port_or_name(port: int | str, path: str) -> list[FieldError]:
    """A port's number or name."""
    if isinstance(port, str):
        return [invalid(path, port, why) for why in port_name_problems(port)]
    return check_port(port, path)


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
    """A percentage of not more than all."""
    if is_percent(value) and amount_of(value) > 100:
        return [invalid(path, value, "must not be greater than 100%")]
    return []


def check_positive_quantity(quantity: str, path: str) -> list[FieldError]:
    """An amount of something."""
    return [] if parse_quantity(quantity) > 0 else [invalid(path, quantity, NOT_POSITIVE)]


def check_quantity_not_negative(quantity: str, path: str) -> list[FieldError]:
    """An amount of something, or none."""
    return [] if parse_quantity(quantity) >= 0 else [invalid(path, quantity, NOT_NEGATIVE)]


def check_driver_name(name: str, path: str) -> list[FieldError]:
    """The name of a storage or device driver."""
    if not name:
        return [required(path)]
    errors = [too_long(path, _LONGEST_DRIVER_NAME)] if len(name) > _LONGEST_DRIVER_NAME else []
    return errors + [invalid(path, name, why) for why in subdomain_problems(name.lower())]


@lru_cache(maxsize=16384)
def address_problems(text: str) -> tuple[str, ...]:
    """What keeps a text from being an IP address."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        if _without_leading_zeros(text):
            return ("must not have leading 0s",)
        return ("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        return ("must not be an IPv4-mapped IPv6 address",)
    return ()


def _without_leading_zeros(text: str) -> bool:
    parts = text.split(".")
    return len(parts) == 4 and all(part.isascii() and part.isdigit() and int(part) < 256 for part in parts)


def check_address(text: str, path: str) -> list[FieldError]:
    """An IP address."""
    return [invalid(path, text, why) for why in address_problems(text)]


def check_network(text: str, path: str) -> list[FieldError]:
    """A range of IP addresses in CIDR form."""
    try:
        ipaddress.ip_network(text)
    except ValueError as error:
        if "host bits" in str(error):
            return [invalid(path, text, "must not have bits set beyond the prefix length")]
        return [invalid(path, text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")]
    if "/" not in text:
        return [invalid(path, text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")]
    return []


def check_reachable_address(text: str, path: str) -> list[FieldError]:
    """An IP address where traffic may be sent."""
    if address_problems(text):
        return [invalid(path, text, "must be a valid IP address")]
    address = ipaddress.ip_address(text)
    errors = []
    if address.is_unspecified:
        errors.append(invalid(path, text, f"may not be unspecified ({text})"))
    if address.is_loopback:
        errors.append(invalid(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)"))
    if address.is_link_local:
        errors.append(invalid(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"))
    if address.is_multicast and address in _LOCAL_MULTICAST[address.version]:
        errors.append(
            invalid(path, text, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
        )
    return errors


_LOCAL_MULTICAST = {4: ipaddress.ip_network("224.0.0.0/24"), 6: ipaddress.ip_network("ff02::/16")}


def check_set(items: Sequence[Any], most: int, key: Callable[[Any], Hashable], path: str) -> list[FieldError]:
    """A list that is not too long, with no two items alike."""
    if len(items) > most:
        return [too_many(path, len(items), most)]
    errors = []
    seen = set()
    for index, item in enumerate(items):
        name = key(item)
        if name in seen:
            errors.append(duplicate(f"{path}[{index}]", name))
        seen.add(name)
    return errors


def check_conditions(conditions: Sequence[Manifest], path: str) -> list[FieldError]:
    """Conditions of the common form: one a type, each with a reason and a time."""
    errors = []
    seen = set()
    for index, condition in enumerate(conditions):
        here = f"{path}[{index}]"
        kind = condition.get("type", "")
        if kind in seen:
            errors.append(duplicate(f"{here}.type", kind))
        seen.add(kind)
        errors += check_qualified_name(kind, f"{here}.type")
        errors += check_optional_word(condition.get("status", ""), _STATUSES, f"{here}.status")
        if condition.get("observedGeneration", 0) < 0:
            seen_generation = condition["observedGeneration"]
            why = "must be greater than or equal to zero"
            errors.append(invalid(f"{here}.observedGeneration", seen_generation, why))
        if not condition.get("lastTransitionTime"):
            errors.append(required(f"{here}.lastTransitionTime"))
        errors += _check_reason(condition.get("reason", ""), f"{here}.reason")
        if len(condition.get("message", "").encode()) > _LONGEST_MESSAGE:
            errors.append(too_long(f"{here}.message", _LONGEST_MESSAGE))
    return errors


def _check_reason(reason: str, path: str) -> list[FieldError]:
    if not reason:
        return [required(path)]
    errors = [] if _REASON_RE.fullmatch(reason) else [invalid(path, reason, _REASON_RULE)]
    if len(reason) > _LONGEST_REASON:
        errors.append(too_long(path, _LONGEST_REASON))
    return errors
