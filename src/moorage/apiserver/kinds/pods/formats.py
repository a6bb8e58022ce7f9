"""Texts with rules of their own: DNS labels, ports' and variables' names, paths, addresses.

Each check answers with complaints (none: fine) and remembers its answers, for pods made from one template
ask the same questions again and again.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

from moorage.api import names
from moorage.apiserver.fields import FieldError, Problem, invalid
from moorage.apiserver.kinds.metadata import label_key_problems
from moorage.apiserver.text import quoted

Problems = tuple[str, ...]

MAX_INT32: Final = (1 << 31) - 1

_LABEL_FORM = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL = re.compile(_LABEL_FORM)
_UNDERSCORED_PART = r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_UNDERSCORED_FORM = rf"{_UNDERSCORED_PART}(\.{_UNDERSCORED_PART})*"
_UNDERSCORED = re.compile(_UNDERSCORED_FORM)
_CONFIG_KEY_FORM = "[-._a-zA-Z0-9]+"
_CONFIG_KEY = re.compile(_CONFIG_KEY_FORM)
_HEADER_FORM = "[-A-Za-z0-9]+"
_HEADER = re.compile(_HEADER_FORM)
_PORT_LETTERS = re.compile(r"[-a-z0-9]+")
_HAS_LETTER = re.compile(r"[a-z]")
_LEADING_ZERO = re.compile(r"(^|\.)0\d")


@lru_cache(maxsize=16384)
def dns_label_problems(value: str) -> Problems:
    """What keeps text from being a DNS label."""
    problems = []
    if len(value.encode()) > 63:
        problems.append("must be no more than 63 characters")
    if not _LABEL.fullmatch(value):
        if not names.dns_subdomain_problems(value[:253]):
            problems.append("must not contain dots")
        else:
            problems.append(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
                "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex "
                f"used for validation is '{_LABEL_FORM}')"
            )
    return tuple(problems)


@lru_cache(maxsize=16384)
def dns_subdomain_problems(value: str) -> Problems:
    """What keeps text from being a DNS subdomain."""
    return tuple(names.dns_subdomain_problems(value))


@lru_cache(maxsize=4096)
def search_domain_problems(value: str) -> Problems:
    """What keeps text from being a domain to search names in, where underscores are fine."""
    problems = []
    if len(value) > 253:
        problems.append("must be no more than 253 characters")
    if not _UNDERSCORED.fullmatch(value):
        problems.append(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or "
            "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for "
            f"validation is '{_UNDERSCORED_FORM}')"
        )
    return tuple(problems)


@lru_cache(maxsize=4096)
def port_name_problems(name: str) -> Problems:
    """What keeps text from being a port's name."""
    problems = []
    if len(name) > 15:
        problems.append("must be no more than 15 characters")
    if not _PORT_LETTERS.fullmatch(name):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _HAS_LETTER.search(name):
        problems.append("must contain at least one letter (a-z)")
    if "--" in name:
        problems.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return tuple(problems)


@lru_cache(maxsize=16384)
def variable_name_problems(name: str) -> Problems:
    """What keeps text from being an environment variable's name."""
    if not name:
        return ("environment variable name must be non-empty",)
    if not name.isascii() or not name.isprintable() or "=" in name:
        return (
            "a valid environment variable name must consist only of printable ASCII characters other "
            "than '='",
        )
    return ()


@lru_cache(maxsize=4096)
def config_key_problems(key: str) -> Problems:
    """What keeps text from being a key in a ConfigMap or Secret."""
    problems = []
    if len(key) > 253:
        problems.append("must be no more than 253 characters")
    if not _CONFIG_KEY.fullmatch(key):
        problems.append(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  "
            f"or 'KEY_NAME',  or 'key-name', regex used for validation is '{_CONFIG_KEY_FORM}')"
        )
    if key in (".", ".."):
        problems.append(f"must not be '{key}'")
    elif key.startswith(".."):
        problems.append("must not start with '..'")
    return tuple(problems)


@lru_cache(maxsize=1024)
def header_name_problems(name: str) -> Problems:
    """What keeps text from being an HTTP header's name."""
    if _HEADER.fullmatch(name):
        return ()
    return (
        "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex "
        f"used for validation is '{_HEADER_FORM}')",
    )


@lru_cache(maxsize=16384)
def ip_problems(value: str) -> Problems:
    """What keeps text from being an IP address."""
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        if ":" not in value and _LEADING_ZERO.search(value) and _is_ipv4(_without_leading_zeros(value)):
            return ("must not have leading 0s",)
        return ("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",)
    if "%" in value:
        return ("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return ("must not be an IPv4-mapped IPv6 address",)
    return ()


def _without_leading_zeros(value: str) -> str:
    return ".".join(part.lstrip("0") or "0" for part in value.split("."))


def _is_ipv4(value: str) -> bool:
    try:
        ipaddress.IPv4Address(value)
    except ValueError:
        return False
    return True


def is_dual_stack(addresses: Sequence[str]) -> bool:
    """Whether valid addresses are one of each family."""
    return len(addresses) == 2 and len({":" in address for address in addresses}) == 2


def may_leave(path: str) -> bool:
    """Whether a path is worth a closer look; nearly none is, and looking closer costs."""
    return path[:1] in "/." or ".." in path


def has_backsteps(path: str) -> bool:
    """Whether a path goes up."""
    return ".." in path and ".." in path.split("/")


def relative_path_errors(value: str, path: str) -> list[FieldError]:
    """What keeps text from being a path that stays below where it starts."""
    errors = []
    if value.startswith("/"):
        errors.append(invalid(path, value, "must be a relative path"))
    if has_backsteps(value):
        errors.append(invalid(path, value, "must not contain '..'"))
    return errors


def file_path_errors(value: str, path: str) -> list[FieldError]:
    """What keeps text from being a file's place in a volume."""
    errors = relative_path_errors(value, path)
    if value.startswith("..") and not value.startswith("../"):
        errors.append(invalid(path, value, "must not start with '..'"))
    return errors


def port_errors(port: Any, path: str) -> list[FieldError]:
    """What keeps a value from being a port's number or name."""
    if isinstance(port, str):
        return complaints(path, port, port_name_problems(port))
    number = port or 0
    return [] if 1 <= number <= 65535 else [invalid(path, number, "must be between 1 and 65535, inclusive")]


def id_errors(number: int, path: str) -> list[FieldError]:
    """What keeps a number from being a user's or group's."""
    if 0 <= number <= MAX_INT32:
        return []
    return [invalid(path, number, f"must be between 0 and {MAX_INT32}, inclusive")]


def qualified_name_errors(name: str, path: str) -> list[FieldError]:
    """What keeps text from being a qualified name."""
    return complaints(path, name, label_key_problems(name))


def complaints(path: str, value: Any, problems: Iterable[str]) -> list[FieldError]:
    """One error a complaint."""
    return [invalid(path, value, problem) for problem in problems]


def not_one_of(path: str, value: Any, known: Sequence[str]) -> FieldError:
    """A value that is not one of the known ones, which are listed in the order given."""
    listed = ", ".join(quoted(item) for item in known)
    return FieldError(Problem.NOT_SUPPORTED, path, value, f"supported values: {listed}")
