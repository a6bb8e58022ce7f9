"""Validation of signer names, such as `example.com/signer`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from moorage.api.names import Problems, dns_label_problems, dns_subdomain_problems
from moorage.api.text import quoted
from moorage.apimachinery.fields import FieldError, invalid, required, too_long

_MAX_DOMAIN_LENGTH: Final = 253
_MAX_NAME_LENGTH: Final = _MAX_DOMAIN_LENGTH + 1 + 63 + 1 + 253
"""Maximum length: a domain, and the namespace and name of an object."""


def check_signer_name(name: str, path: str) -> list[FieldError]:
    """A signer name in a field: a domain and a path."""
    if not name:
        return [required(path)]
    if name.count("/") != 1:
        why = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [invalid(path, name, why)]
    domain, _, rest = name.partition("/")
    errors = [too_long(path, _MAX_DOMAIN_LENGTH)] if len(domain.encode()) > _MAX_DOMAIN_LENGTH else []
    errors += _check_parts(domain, dns_label_problems, path)
    if "." not in domain:
        why = "should be a domain with at least two segments separated by dots"
        errors.append(invalid(path, domain, why))
    errors += _check_parts(rest, dns_subdomain_problems, path)
    if len(name.encode()) > _MAX_NAME_LENGTH:
        errors.append(too_long(path, _MAX_NAME_LENGTH))
    return errors


def _check_parts(text: str, problems_of: Callable[[str], Problems], path: str) -> list[FieldError]:
    """Validation errors of the first invalid label between dots."""
    for part in text.split("."):
        if problems := problems_of(part):
            return [invalid(path, text, f"validating label {quoted(part)}: {each}") for each in problems]
    return []
