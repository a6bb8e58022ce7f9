"""The scheduler's service account, and its RBAC roles and bindings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from moorage.api.manifests import Manifest
from moorage.manifests.installation import Installation
from moorage.manifests.objects import RBAC, account, new_object, role
from moorage.manifests.permissions import lease_permissions, rules
from moorage.services.client_certificates import NAME as AUTHORITIES
from moorage.services.client_certificates import NAMESPACE as AUTHORITIES_NAMESPACE

_VERSION: Final = f"{RBAC}/v1"


def access(installation: Installation) -> Iterator[Manifest]:
    """The service account, its roles and their bindings.

    Permissions are namespaced where possible: for the lease and its events, and for the client certificate
    authorities, for which every cluster has a role.
    """
    name, namespace = installation.name, installation.namespace
    subjects = [account(name, namespace)]

    def bound(where: str, kind: str, what: str, suffix: str) -> Manifest:
        binding = "RoleBinding" if where else "ClusterRoleBinding"
        return new_object(
            _VERSION,
            binding,
            f"{name}{suffix}",
            where,
            installation,
            roleRef=role(kind, what),
            subjects=subjects,
        )

    # The scheduler's pods mount a token explicitly; other pods of the account get none by default.
    yield new_object(
        "v1", "ServiceAccount", name, namespace, installation, automountServiceAccountToken=False
    )
    allowed = rules(installation.permissions)
    yield new_object(_VERSION, "ClusterRole", name, "", installation, rules=allowed)
    yield bound("", "ClusterRole", name, "")
    if installation.lease is not None:
        leading, where = f"{name}-leader-election", installation.lease.namespace
        allowed = rules(lease_permissions(installation.lease.name))
        yield new_object(_VERSION, "Role", leading, where, installation, rules=allowed)
        yield bound(where, "Role", leading, "-leader-election")
    yield bound(AUTHORITIES_NAMESPACE, "Role", f"{AUTHORITIES}-reader", "-authentication-reader")
