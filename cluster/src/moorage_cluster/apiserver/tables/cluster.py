"""Roles and their bindings."""

from __future__ import annotations

from typing import Final

from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.tables.base import Printer
from moorage_cluster.apiserver.tables.cells import items, text
from moorage_cluster.apiserver.tables.columns import AGED, NAME_AND_CREATION, NAMED, Columns, derived

_RBAC = "rbac.authorization.k8s.io"


def _role(binding: Manifest) -> str:
    return f"{text(binding, 'roleRef', 'kind')}/{text(binding, 'roleRef', 'name')}"


def _subjects(binding: Manifest, kind: str) -> str:
    return ", ".join(text(each, "name") for each in items(binding, "subjects") if each.get("kind") == kind)


def _service_accounts(binding: Manifest) -> str:
    return ", ".join(
        f"{text(each, 'namespace')}/{text(each, 'name')}"
        for each in items(binding, "subjects")
        if each.get("kind") == "ServiceAccount"
    )


_BINDINGS = Columns(
    NAMED,
    derived("Role", _role, "What is allowed."),
    AGED,
    derived("Users", lambda obj: _subjects(obj, "User"), "The users it is allowed to.", wide=True),
    derived("Groups", lambda obj: _subjects(obj, "Group"), "The groups it is allowed to.", wide=True),
    derived("ServiceAccounts", _service_accounts, "The service accounts it is allowed to.", wide=True),
)

PRINTERS: Final[dict[tuple[str, str], Printer]] = {
    (_RBAC, "Role"): NAME_AND_CREATION,
    (_RBAC, "ClusterRole"): NAME_AND_CREATION,
    (_RBAC, "RoleBinding"): _BINDINGS,
    (_RBAC, "ClusterRoleBinding"): _BINDINGS,
}
"""The tables of this family, by group and kind."""
