"""Rules for names that kinds have beyond the common ones, each as a list of complaints (empty: fine).

All are pure functions of a text that is seen again and again, so their answers are kept.
"""

from __future__ import annotations

import re
from functools import lru_cache

from moorage.api.names import dns_subdomain_problems, label_value_problems, qualified_name_problems
from moorage.apiserver.fields import FieldError, invalid

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_C_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_LABEL_RE = re.compile(_LABEL)
_LABEL_1035_RE = re.compile(_LABEL_1035)
_CONFIG_KEY_RE = re.compile(_CONFIG_KEY)
_C_IDENTIFIER_RE = re.compile(_C_IDENTIFIER)
_PORT_NAME_RE = re.compile("[-a-z0-9]+")
_LETTER_RE = re.compile("[a-z]")
_MOST_OF_A_LABEL = 63
_MOST_OF_A_SUBDOMAIN = 253
_MOST_OF_A_PORT_NAME = 15


def pattern_rule(rule: str, pattern: str, *examples: str) -> str:
    """A rule with its examples and the pattern that checks it, as Kubernetes words it."""
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} ({'e.g. ' if shown else ''}{shown}regex used for validation is '{pattern}')"


_LABEL_RULE = pattern_rule(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
    "and end with an alphanumeric character",
    _LABEL,
    "my-name",
    "123-abc",
)
_LABEL_1035_RULE = pattern_rule(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character",
    _LABEL_1035,
    "my-name",
    "abc-123",
)
_CONFIG_KEY_RULE = pattern_rule(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _CONFIG_KEY,
    "key.name",
    "KEY_NAME",
    "key-name",
)
_C_IDENTIFIER_RULE = pattern_rule(
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric "
    "characters or '_'",
    _C_IDENTIFIER,
    "my_name",
    "MY_NAME",
    "MyName",
)


@lru_cache(maxsize=65536)
def dns_label_problems(name: str) -> tuple[str, ...]:
    """What keeps `name` from being a lowercase DNS label."""
    problems = []
    if len(name) > _MOST_OF_A_LABEL:
        problems.append(f"must be no more than {_MOST_OF_A_LABEL} characters")
    if not _LABEL_RE.fullmatch(name):
        dotted = not dns_subdomain_problems(name)
        problems.append("must not contain dots" if dotted else _LABEL_RULE)
    return tuple(problems)


@lru_cache(maxsize=65536)
def dns_1035_label_problems(name: str) -> tuple[str, ...]:
    """What keeps `name` from being a DNS label that starts with a letter."""
    problems = []
    if len(name) > _MOST_OF_A_LABEL:
        problems.append(f"must be no more than {_MOST_OF_A_LABEL} characters")
    if not _LABEL_1035_RE.fullmatch(name):
        problems.append(_LABEL_1035_RULE)
    return tuple(problems)


@lru_cache(maxsize=65536)
def subdomain_problems(name: str) -> tuple[str, ...]:
    """What keeps `name` from being a lowercase DNS subdomain."""
    return tuple(dns_subdomain_problems(name))


@lru_cache(maxsize=65536)
def label_key_problems(key: str) -> tuple[str, ...]:
    """What keeps `key` from being a label key or another qualified name."""
    return tuple(qualified_name_problems(key))


@lru_cache(maxsize=65536)
def value_problems(value: str) -> tuple[str, ...]:
    """What keeps `value` from being a label value."""
    return tuple(label_value_problems(value))


def path_segment_problems(name: str) -> tuple[str, ...]:
    """What keeps `name` from being one part of a URL's path."""
    if name in (".", ".."):
        return (f"may not be '{name}'",)
    return tuple(f"may not contain '{mark}'" for mark in ("/", "%") if mark in name)


@lru_cache(maxsize=65536)
def config_key_problems(key: str) -> tuple[str, ...]:
    """What keeps `key` from being a key of a ConfigMap or Secret."""
    problems = []
    if len(key) > _MOST_OF_A_SUBDOMAIN:
        problems.append(f"must be no more than {_MOST_OF_A_SUBDOMAIN} characters")
    if not _CONFIG_KEY_RE.fullmatch(key):
        problems.append(_CONFIG_KEY_RULE)
    if key in (".", ".."):
        problems.append(f"must not be '{key}'")
    elif key.startswith(".."):
        problems.append("must not start with '..'")
    return tuple(problems)


@lru_cache(maxsize=4096)
def c_identifier_problems(name: str) -> tuple[str, ...]:
    """What keeps `name` from being an identifier of the C language."""
    return () if _C_IDENTIFIER_RE.fullmatch(name) else (_C_IDENTIFIER_RULE,)


@lru_cache(maxsize=4096)
def port_name_problems(name: str) -> tuple[str, ...]:
    """What keeps `name` from being a port's name."""
    problems = []
    if len(name) > _MOST_OF_A_PORT_NAME:
        problems.append(f"must be no more than {_MOST_OF_A_PORT_NAME} characters")
    if not _PORT_NAME_RE.fullmatch(name):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _LETTER_RE.search(name):
        problems.append("must contain at least one letter (a-z)")
    if "--" in name:
        problems.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return tuple(problems)


def check_label(name: str, path: str) -> list[FieldError]:
    """A DNS label at a place."""
    return [invalid(path, name, why) for why in dns_label_problems(name)]


def check_subdomain(name: str, path: str) -> list[FieldError]:
    """A DNS subdomain at a place."""
    return [invalid(path, name, why) for why in subdomain_problems(name)]


def check_qualified_name(name: str, path: str) -> list[FieldError]:
    """A label key or another qualified name at a place."""
    return [invalid(path, name, why) for why in label_key_problems(name)]


def check_label_value(value: str, path: str) -> list[FieldError]:
    """A label value at a place."""
    return [invalid(path, value, why) for why in value_problems(value)]


def check_path_segment(name: str, path: str) -> list[FieldError]:
    """One part of a URL's path at a place."""
    return [invalid(path, name, why) for why in path_segment_problems(name)]
