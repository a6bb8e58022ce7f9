"""Prevention of privilege escalation: users may grant only permissions that they have themselves."""

from __future__ import annotations

from typing import Final

from moorage.admission.users import MASTERS, User
from moorage.api.manifests import Manifest
from moorage.api.text import quoted
from moorage.apimachinery import errors, fields
from moorage_cluster.apiserver.auth.attributes import RequestAttributes
from moorage_cluster.apiserver.auth.authorizers import Authorizer
from moorage_cluster.apiserver.auth.rbac import GROUP
from moorage_cluster.apiserver.auth.rules import (
    EVERYTHING,
    Rule,
    TooManyPartsError,
    merged,
    missing,
    quoted_list,
    rules_of,
)

GUARDED_RESOURCES: Final = frozenset(("roles", "clusterroles", "rolebindings", "clusterrolebindings"))
"""The resources of the rbac.authorization.k8s.io group whose writes must be checked."""

_BINDABLE: Final = {
    "rolebindings": ("RoleBinding", ("ClusterRole", "Role")),
    "clusterrolebindings": ("ClusterRoleBinding", ("ClusterRole",)),
}
_NOT_GUARDED = ("ownerReferences", "finalizers", "selfLink", "managedFields")
"""Metadata that the garbage collector must be able to change without holding what the role grants."""


def check_escalation(
    authorizer: Authorizer,
    user: User,
    resource: str,
    namespace: str,
    obj: Manifest,
    old: Manifest | None = None,
    *,
    request_name: str = "",
) -> None:
    """Reject a role or binding that grants more than its writer has, unless they may `escalate` or `bind`.

    `obj` is decoded; `old` is what an update replaces; `request_name` is the name in the URL, which a
    create does not have.
    """
    if MASTERS in user.groups:
        return
    if resource in ("roles", "clusterroles"):
        _check_role(authorizer, user, resource, namespace, obj, old, request_name)
    elif resource in ("rolebindings", "clusterrolebindings"):
        _check_binding(authorizer, user, resource, namespace, obj, old)


def _check_role(
    authorizer: Authorizer,
    user: User,
    resource: str,
    namespace: str,
    obj: Manifest,
    old: Manifest | None,
    request_name: str,
) -> None:
    attributes = RequestAttributes(user, "escalate", GROUP, "*", resource, "", namespace, request_name)
    if authorizer.authorize(attributes).allowed or _changes_metadata_only(obj, old):
        return
    name = obj.get("metadata", {}).get("name", "")
    if why := _escalation(authorizer, user, namespace, rules_of(obj)):
        raise errors.forbidden(GROUP, resource, name, why)
    gathers = any(
        (each.get("aggregationRule") or {}).get("clusterRoleSelectors") for each in (obj, old or {})
    )
    if gathers and _escalation(authorizer, user, namespace, EVERYTHING):
        why = "must have cluster-admin privileges to use the aggregationRule"
        raise errors.forbidden(GROUP, resource, name, why)


def _check_binding(
    authorizer: Authorizer, user: User, resource: str, namespace: str, obj: Manifest, old: Manifest | None
) -> None:
    role = obj.get("roleRef") or {}
    kind, role_name = role.get("kind", ""), role.get("name", "")
    roles = {"Role": "roles", "ClusterRole": "clusterroles"}.get(kind)
    if roles is not None:
        group = role.get("apiGroup", "")
        attributes = RequestAttributes(user, "bind", group, "*", roles, "", namespace, role_name)
        if authorizer.authorize(attributes).allowed:
            return
    if _changes_metadata_only(obj, old):
        return
    if roles is None:
        name = obj.get("metadata", {}).get("name", "")
        binding_kind, supported = _BINDABLE[resource]
        problem = fields.not_supported("roleRef.kind", kind, supported)
        raise errors.invalid(GROUP, binding_kind, name, [problem])
    rules = authorizer.rules_of_role(kind, role_name, namespace)
    if rules is None:
        raise errors.not_found(GROUP, roles, role_name)
    if why := _escalation(authorizer, user, namespace, rules):
        raise errors.forbidden(GROUP, resource, obj.get("metadata", {}).get("name", ""), why)


def _escalation(authorizer: Authorizer, user: User, namespace: str, wanted: tuple[Rule, ...]) -> str:
    """The permissions that a user would grant without having them, as a sentence; empty if there are none."""
    held = authorizer.rules_for(user, namespace)
    grants = f"user {quoted(user.name)} (groups={quoted_list(user.groups)}) is attempting to grant"
    try:
        lacking = missing(held.rules, wanted)
    except TooManyPartsError:
        return (
            f"{grants} more combinations of verbs, resources and names than can be checked: split the rules"
        )
    if not lacking:
        return ""
    listed = "\n".join(sorted({str(rule) for rule in merged(lacking)}))
    why = f"{grants} RBAC permissions not currently held:\n{listed}"
    return f"{why}; resolution errors: [{held.problem}]" if held.problem else why


def _changes_metadata_only(obj: Manifest, old: Manifest | None) -> bool:
    """Whether an update changes only what the garbage collector changes."""
    return old is not None and _guarded(obj) == _guarded(old)


def _guarded(obj: Manifest) -> Manifest:
    metadata = obj.get("metadata", {})
    kept = {key: value for key, value in metadata.items() if key not in _NOT_GUARDED}
    return {**obj, "metadata": kept}
