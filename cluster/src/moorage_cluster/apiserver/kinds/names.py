"""Names at a place in an object: the rules are those of `moorage.api.names`, the answers errors of fields."""

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
from moorage_cluster.apiserver.fields import FieldError, complaints


def check_label(name: str, path: str) -> list[FieldError]:
    """A DNS label at a place."""
    return complaints(path, name, dns_label_problems(name))


def check_subdomain(name: str, path: str) -> list[FieldError]:
    """A DNS subdomain at a place."""
    return complaints(path, name, dns_subdomain_problems(name))


def check_short_name(name: str, path: str) -> list[FieldError]:
    """A DNS label at a place whose rule is declared."""
    return complaints(path, name, short_name_problems(name))


def check_long_name(name: str, path: str) -> list[FieldError]:
    """A DNS subdomain at a place whose rule is declared."""
    return complaints(path, name, long_name_problems(name))


def check_qualified_name(name: str, path: str) -> list[FieldError]:
    """A label key or another qualified name at a place."""
    return complaints(path, name, qualified_name_problems(name))


def check_label_value(value: str, path: str) -> list[FieldError]:
    """A label value at a place."""
    return complaints(path, value, label_value_problems(value))


def check_path_segment(name: str, path: str) -> list[FieldError]:
    """One part of a URL's path at a place."""
    return complaints(path, name, path_segment_problems(name))
