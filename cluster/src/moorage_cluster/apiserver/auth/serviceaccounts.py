"""Service accounts as users: their names, groups and extra values."""

from __future__ import annotations

from typing import Final

from moorage.api.names import dns_label_problems, dns_subdomain_problems

USERNAME_PREFIX: Final = "system:serviceaccount:"
ALL_SERVICE_ACCOUNTS: Final = "system:serviceaccounts"

POD_NAME: Final = "authentication.kubernetes.io/pod-name"
POD_UID: Final = "authentication.kubernetes.io/pod-uid"
NODE_NAME: Final = "authentication.kubernetes.io/node-name"
NODE_UID: Final = "authentication.kubernetes.io/node-uid"
CREDENTIAL_ID: Final = "authentication.kubernetes.io/credential-id"
"""Keys of a user's `extra`: where a token was issued, and its ID."""


def username(namespace: str, name: str) -> str:
    """The user name of a service account."""
    return f"{USERNAME_PREFIX}{namespace}:{name}"


def split_username(user_name: str) -> tuple[str, str] | None:
    """The namespace and name of the service account that a user represents; None if it is not one."""
    if not user_name.startswith(USERNAME_PREFIX):
        return None
    namespace, colon, name = user_name.removeprefix(USERNAME_PREFIX).partition(":")
    if not colon or dns_label_problems(namespace) or dns_subdomain_problems(name):
        return None
    return namespace, name


def groups(namespace: str) -> tuple[str, ...]:
    """The groups of all service accounts in a namespace."""
    return (ALL_SERVICE_ACCOUNTS, f"{ALL_SERVICE_ACCOUNTS}:{namespace}")
