"""Validation of names in a field: the rules are those of `moorage.api.names`, the results field errors."""

from __future__ import annotations

from moorage.api.names import (
    dns_label_problems,
    dns_subdomain_problems,
    label_value_problems,
    long_name_problems,
    path_segment_problems,
    qualified_name_problems,
    short_name_problems,
)
from moorage.apimachinery.fields import FieldError, complaints


def check_label(name: str, path: str) -> list[FieldError]:
    """A DNS label in a field."""
    return complaints(path, name, dns_label_problems(name))


def check_subdomain(name: str, path: str) -> list[FieldError]:
    """A DNS subdomain in a field."""
    return complaints(path, name, dns_subdomain_problems(name))


def check_short_name(name: str, path: str) -> list[FieldError]:
    """A DNS label in a field with declarative validation."""
    return complaints(path, name, short_name_problems(name))


def check_long_name(name: str, path: str) -> list[FieldError]:
    """A DNS subdomain in a field with declarative validation."""
    return complaints(path, name, long_name_problems(name))


def check_qualified_name(name: str, path: str) -> list[FieldError]:
    """A label key or another qualified name in a field."""
    return complaints(path, name, qualified_name_problems(name))


def check_label_value(value: str, path: str) -> list[FieldError]:
    """A label value in a field."""
    return complaints(path, value, label_value_problems(value))


def check_path_segment(name: str, path: str) -> list[FieldError]:
    """One segment of a URL's path in a field."""
    return complaints(path, name, path_segment_problems(name))
