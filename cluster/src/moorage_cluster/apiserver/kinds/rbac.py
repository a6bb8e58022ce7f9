"""Roles, ClusterRoles and their bindings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from moorage.api.manifests import Manifest
from moorage.api.names import path_segment_problems
from moorage.apimachinery.fields import FieldError, invalid, not_supported, required
from moorage.apimachinery.validation.checks import check_optional_word
from moorage.apimachinery.validation.names import check_path_segment, check_subdomain
from moorage.apimachinery.validation.selectors import check_label_selector
from moorage_cluster.apiserver.strategy import Strategy

GROUP: Final = "rbac.authorization.k8s.io"
_RBAC_SUBJECTS = ("User", "Group")


class _RbacStrategy(Strategy):
    allows_create_on_update = True

    def name_problems(self, name: str) -> tuple[str, ...]:
        """Names may have colons and capitals; they only have to be path segments."""
        return path_segment_problems(name)


class RoleStrategy(_RbacStrategy):
    """A Role: permissions in a namespace."""

    namespaced: ClassVar[bool] = True

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Validate each rule."""
        errors: list[FieldError] = []
        for index, rule in enumerate(obj.get("rules") or ()):
            errors += _check_rule(rule, f"rules[{index}]", namespaced=self.namespaced)
        return errors


class ClusterRoleStrategy(RoleStrategy):
    """A ClusterRole: permissions in the whole cluster."""

    namespaced = False

    def default(self, obj: Manifest) -> None:
        """Add an empty list of rules if it is missing."""
        obj.setdefault("rules", [])

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Validate each rule; an aggregation rule needs at least one selector."""
        errors = super().validate(obj)
        if "aggregationRule" not in obj:
            return errors
        path = "aggregationRule.clusterRoleSelectors"
        selectors = obj["aggregationRule"].get("clusterRoleSelectors") or ()
        if not selectors:
            why = "at least one clusterRoleSelector required if aggregationRule is non-nil"
            errors.append(required(path, why))
        for index, selector in enumerate(selectors):
            errors += check_label_selector(selector, f"{path}[{index}]")
        return errors


class RoleBindingStrategy(_RbacStrategy):
    """A RoleBinding: the subjects of a role in a namespace."""

    namespaced: ClassVar[bool] = True
    kinds: ClassVar[Sequence[str]] = ("Role", "ClusterRole")

    def default(self, obj: Manifest) -> None:
        """The API group of roles, users and groups is that of RBAC."""
        role = obj.setdefault("roleRef", {})
        if not role.get("apiGroup"):
            role["apiGroup"] = GROUP
        for subject in obj.get("subjects") or ():
            if not subject.get("apiGroup") and subject.get("kind") in _RBAC_SUBJECTS:
                subject["apiGroup"] = GROUP

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Validate the references to the role and the subjects."""
        role = obj.get("roleRef") or {}
        errors = check_optional_word(role.get("apiGroup", ""), (GROUP,), "roleRef.apiGroup")
        errors += check_optional_word(role.get("kind", ""), self.kinds, "roleRef.kind")
        if role.get("name"):
            errors += check_path_segment(role["name"], "roleRef.name")
        else:
            errors.append(required("roleRef.name"))
        for index, subject in enumerate(obj.get("subjects") or ()):
            errors += _check_subject(subject, f"subjects[{index}]", namespaced=self.namespaced)
        return errors

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The role reference is immutable: changing it could grant more than the user has."""
        errors = self.validate(obj)
        if obj.get("roleRef") != old.get("roleRef"):
            errors.append(invalid("roleRef", obj.get("roleRef"), "cannot change roleRef"))
        return errors


class ClusterRoleBindingStrategy(RoleBindingStrategy):
    """A ClusterRoleBinding: the subjects of a role in the whole cluster."""

    namespaced = False
    kinds = ("ClusterRole",)


def _check_rule(rule: Manifest, path: str, *, namespaced: bool) -> list[FieldError]:
    errors = []
    if not rule.get("verbs"):
        errors.append(required(f"{path}.verbs", "verbs must contain at least one value"))
    if urls := rule.get("nonResourceURLs"):
        here = f"{path}.nonResourceURLs"
        if namespaced:
            errors.append(invalid(here, urls, "namespaced rules cannot apply to non-resource URLs"))
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            why = "rules cannot apply to both regular resources and non-resource URLs"
            errors.append(invalid(here, urls, why))
        return errors
    if not rule.get("apiGroups"):
        errors.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
    if not rule.get("resources"):
        errors.append(required(f"{path}.resources", "resource rules must supply at least one resource"))
    return errors


def _check_subject(subject: Manifest, path: str, *, namespaced: bool) -> list[FieldError]:
    name, kind, group = subject.get("name", ""), subject.get("kind", ""), subject.get("apiGroup", "")
    errors = [] if name else [required(f"{path}.name")]
    if kind == "ServiceAccount":
        if name:
            errors += check_subdomain(name, f"{path}.name")
        if group:
            errors.append(not_supported(f"{path}.apiGroup", group, ("",)))
        if not namespaced and not subject.get("namespace"):
            errors.append(required(f"{path}.namespace"))
    elif kind in _RBAC_SUBJECTS:
        errors += check_optional_word(group, (GROUP,), f"{path}.apiGroup")
    else:
        errors.append(not_supported(f"{path}.kind", kind, ("ServiceAccount", "User", "Group")))
    return errors
