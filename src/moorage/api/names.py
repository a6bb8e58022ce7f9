"""Kubernetes' rules for names, keys and label values, each as a list of complaints (empty: fine)."""

from __future__ import annotations

import re

_NAME = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_DNS_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME_RE = re.compile(_NAME)
_DNS_SUBDOMAIN = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"
_DNS_SUBDOMAIN_RE = re.compile(_DNS_SUBDOMAIN)

_NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    f"'{_NAME}')"
)
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
    "must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    f"'{_DNS_SUBDOMAIN}')"
)
_LABEL_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used "
    "for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def dns_subdomain_problems(name: str) -> list[str]:
    """What keeps `name` from being a lowercase DNS subdomain."""
    problems = []
    if len(name) > 253:
        problems.append("must be no more than 253 characters")
    if not _DNS_SUBDOMAIN_RE.fullmatch(name):
        problems.append(_SUBDOMAIN_RULE)
    return problems


def qualified_name_problems(name: str) -> list[str]:
    """What keeps `name` from being a qualified name: `name` or `prefix.example.com/name`."""
    prefix, slash, rest = name.partition("/")
    if not slash:
        prefix, rest = "", name
    elif "/" in rest:
        return [
            f"a valid label key {_NAME_RULE} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')"
        ]
    problems = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        problems += [f"prefix part {problem}" for problem in dns_subdomain_problems(prefix)]
    if not rest:
        problems.append("name part must be non-empty")
    elif len(rest) > 63:
        problems.append("name part must be no more than 63 bytes")
    if not _NAME_RE.fullmatch(rest):
        problems.append(f"name part {_NAME_RULE}")
    return problems


def label_value_problems(value: str) -> list[str]:
    """What keeps `value` from being a label value."""
    problems = []
    if len(value) > 63:
        problems.append("must be no more than 63 bytes")
    if value and not _NAME_RE.fullmatch(value):
        problems.append(_LABEL_VALUE_RULE)
    return problems


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
        or name.startswith(("hugepages-", "attachable-volumes-"))
        or "kubernetes.io/" in name
    )
