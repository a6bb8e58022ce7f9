"""Kubernetes' rules for names, keys and label values; each returns the errors of a text (none: valid).

The same keys and values are validated again and again, so results are cached. Names of objects are mostly
new, and validating a correct one is as fast as a cache lookup. The messages of fields with declarative
validation (label keys and values, all of scheduling.k8s.io/v1alpha2) use "bytes", all others "characters",
though bytes are counted either way.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from moorage.api.text_cache import cached_by_text

Problems = tuple[str, ...]
Rule = Callable[[str], Problems]

_MAX_LABEL_LENGTH = 63
_MAX_SUBDOMAIN_LENGTH = 253
_MAX_PORT_NAME_LENGTH = 15


cached_rule: Callable[[Rule], Rule] = cached_by_text(count=16384)
"""A rule with cached results for texts up to a length; longer ones are valid under no rule."""


def pattern_rule(rule: str, pattern: str, *examples: str) -> str:
    """A rule with its examples and the pattern that checks it, as Kubernetes words it."""
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} ({'e.g. ' if shown else ''}{shown}regex used for validation is '{pattern}')"


_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_NAME})?"
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_WILDCARD_SUBDOMAIN = rf"\*\.{_SUBDOMAIN}"
_UNDERSCORED = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_UNDERSCORED_SUBDOMAIN = rf"{_UNDERSCORED}(\.{_UNDERSCORED})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_C_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_HEADER = "[-A-Za-z0-9]+"

_LABEL_VALUE_RE = re.compile(_LABEL_VALUE)
_NAME_RE = re.compile(_NAME)
_LABEL_RE = re.compile(_LABEL)
_SUBDOMAIN_RE = re.compile(_SUBDOMAIN)
_WILDCARD_SUBDOMAIN_RE = re.compile(_WILDCARD_SUBDOMAIN)
_UNDERSCORED_SUBDOMAIN_RE = re.compile(_UNDERSCORED_SUBDOMAIN)
_LABEL_1035_RE = re.compile(_LABEL_1035)
_CONFIG_KEY_RE = re.compile(_CONFIG_KEY)
_C_IDENTIFIER_RE = re.compile(_C_IDENTIFIER)
_HEADER_RE = re.compile(_HEADER)
_PORT_NAME_RE = re.compile("[-a-z0-9]+")
_LETTER_RE = re.compile("[a-z]")

_NAME_RULE = pattern_rule(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character",
    _NAME,
    "MyName",
    "my.name",
    "123-abc",
)
_LABEL_VALUE_RULE = pattern_rule(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character",
    _LABEL_VALUE,
    "MyValue",
    "my_value",
    "12345",
)
_LABEL_RULE = pattern_rule(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
    "and end with an alphanumeric character",
    _LABEL,
    "my-name",
    "123-abc",
)
_SUBDOMAIN_RULE = pattern_rule(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
    "must start and end with an alphanumeric character",
    _SUBDOMAIN,
    "example.com",
)
_WILDCARD_SUBDOMAIN_RULE = pattern_rule(
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must "
    "consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
    _WILDCARD_SUBDOMAIN,
    "*.example.com",
)
_UNDERSCORED_SUBDOMAIN_RULE = pattern_rule(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and "
    "must start and end with an alphanumeric character",
    _UNDERSCORED_SUBDOMAIN,
    "example.com",
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
_HEADER_RULE = pattern_rule(
    "a valid HTTP header must consist of alphanumeric characters or '-'", _HEADER, "X-Header-Name"
)
_VARIABLE_RULE = (
    "a valid environment variable name must consist only of printable ASCII characters other than '='"
)


def _length_problems(text: str, most: int, unit: str = "characters") -> list[str]:
    length = len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
    return [f"must be no more than {most} {unit}"] if length > most else []


def _label_problems(name: str, unit: str) -> Problems:
    is_label = _LABEL_RE.fullmatch(name) is not None
    if is_label and len(name) <= _MAX_LABEL_LENGTH:
        return ()
    problems = _length_problems(name, _MAX_LABEL_LENGTH, unit)
    if not is_label:
        problems.append("must not contain dots" if _SUBDOMAIN_RE.fullmatch(name) else _LABEL_RULE)
    return tuple(problems)


def _subdomain_problems(name: str, unit: str) -> Problems:
    is_subdomain = _SUBDOMAIN_RE.fullmatch(name) is not None
    if is_subdomain and len(name) <= _MAX_SUBDOMAIN_LENGTH:
        return ()
    problems = _length_problems(name, _MAX_SUBDOMAIN_LENGTH, unit)
    if not is_subdomain:
        problems.append(_SUBDOMAIN_RULE)
    return tuple(problems)


def dns_label_problems(name: str) -> Problems:
    """What keeps `name` from being a lowercase DNS label."""
    return _label_problems(name, "characters")


def dns_subdomain_problems(name: str) -> Problems:
    """What keeps `name` from being a lowercase DNS subdomain."""
    return _subdomain_problems(name, "characters")


@cached_rule
def short_name_problems(name: str) -> Problems:
    """What keeps `name` from being a DNS label, where the rule is declared."""
    return _label_problems(name, "bytes")


@cached_rule
def long_name_problems(name: str) -> Problems:
    """What keeps `name` from being a DNS subdomain, where the rule is declared."""
    return _subdomain_problems(name, "bytes")


@cached_rule
def dns_1035_label_problems(name: str) -> Problems:
    """What keeps `name` from being a DNS label that starts with a letter."""
    problems = _length_problems(name, _MAX_LABEL_LENGTH)
    if not _LABEL_1035_RE.fullmatch(name):
        problems.append(_LABEL_1035_RULE)
    return tuple(problems)


@cached_rule
def search_domain_problems(name: str) -> Problems:
    """What keeps `name` from being a domain to search names in, where underscores are fine."""
    problems = _length_problems(name, _MAX_SUBDOMAIN_LENGTH)
    if not _UNDERSCORED_SUBDOMAIN_RE.fullmatch(name):
        problems.append(_UNDERSCORED_SUBDOMAIN_RULE)
    return tuple(problems)


@cached_rule
def wildcard_subdomain_problems(name: str) -> Problems:
    """What keeps `name` from being a DNS subdomain whose first label is a wildcard: `*.example.com`."""
    problems = _length_problems(name, _MAX_SUBDOMAIN_LENGTH)
    if not _WILDCARD_SUBDOMAIN_RE.fullmatch(name):
        problems.append(_WILDCARD_SUBDOMAIN_RULE)
    return tuple(problems)


@cached_rule
def qualified_name_problems(name: str) -> Problems:
    """What keeps `name` from being a qualified name, as label keys are: `name` or `example.com/name`."""
    prefix, slash, rest = name.partition("/")
    if not slash:
        rest = name
    elif "/" in rest:
        return (
            f"a valid label key {_NAME_RULE} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')",
        )
    problems = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        problems += [f"prefix part {problem}" for problem in long_name_problems(prefix)]
    if not rest:
        problems.append("name part must be non-empty")
    problems += [f"name part {problem}" for problem in _length_problems(rest, _MAX_LABEL_LENGTH, "bytes")]
    if not _NAME_RE.fullmatch(rest):
        problems.append(f"name part {_NAME_RULE}")
    return tuple(problems)


def annotation_key_problems(key: str) -> Problems:
    """What keeps `key` from being an annotation's key; case does not matter."""
    return qualified_name_problems(key.lower())


@cached_rule
def label_value_problems(value: str) -> Problems:
    """What keeps `value` from being a label value."""
    problems = _length_problems(value, _MAX_LABEL_LENGTH, "bytes")
    if not _LABEL_VALUE_RE.fullmatch(value):
        problems.append(_LABEL_VALUE_RULE)
    return tuple(problems)


@cached_rule
def config_key_problems(key: str) -> Problems:
    """What keeps `key` from being a key of a ConfigMap or Secret."""
    problems = _length_problems(key, _MAX_SUBDOMAIN_LENGTH)
    if not _CONFIG_KEY_RE.fullmatch(key):
        problems.append(_CONFIG_KEY_RULE)
    if key in (".", ".."):
        problems.append(f"must not be '{key}'")
    elif key.startswith(".."):
        problems.append("must not start with '..'")
    return tuple(problems)


@cached_rule
def port_name_problems(name: str) -> Problems:
    """What keeps `name` from being a port's name."""
    problems = _length_problems(name, _MAX_PORT_NAME_LENGTH)
    if not _PORT_NAME_RE.fullmatch(name):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _LETTER_RE.search(name):
        problems.append("must contain at least one letter (a-z)")
    if "--" in name:
        problems.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return tuple(problems)


@cached_rule
def variable_name_problems(name: str) -> Problems:
    """What keeps `name` from being an environment variable's name."""
    if not name:
        return ("environment variable name must be non-empty",)
    fine = name.isascii() and name.isprintable() and "=" not in name
    return () if fine else (_VARIABLE_RULE,)


@cached_rule
def c_identifier_problems(name: str) -> Problems:
    """What keeps `name` from being an identifier of the C language."""
    return () if _C_IDENTIFIER_RE.fullmatch(name) else (_C_IDENTIFIER_RULE,)


@cached_rule
def header_name_problems(name: str) -> Problems:
    """What keeps `name` from being an HTTP header's name."""
    return () if _HEADER_RE.fullmatch(name) else (_HEADER_RULE,)


def path_segment_problems(name: str) -> Problems:
    """What keeps `name` from being one part of a URL's path."""
    if name in (".", ".."):
        return (f"may not be '{name}'",)
    return tuple(f"may not contain '{mark}'" for mark in ("/", "%") if mark in name)


HUGE_PAGES = "hugepages-"


def is_pod_level_resource(name: str) -> bool:
    """Resources that a pod as a whole may ask for."""
    return name in ("cpu", "memory") or name.startswith(HUGE_PAGES)


def is_native_resource(name: str) -> bool:
    """Kubernetes' own resources: without a domain, or under kubernetes.io/."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended_resource(name: str) -> bool:
    """A resource with a vendor's domain, such as example.com/gpu."""
    if is_native_resource(name) or name.startswith("requests."):
        return False
    return not qualified_name_problems(f"requests.{name}")


def is_scalar_resource(name: str) -> bool:
    """Resources counted beside cpu, memory, ephemeral-storage and pods; all other names mean nothing."""
    return (
        is_extended_resource(name)
        or name.startswith((HUGE_PAGES, "attachable-volumes-"))
        or "kubernetes.io/" in name
    )
