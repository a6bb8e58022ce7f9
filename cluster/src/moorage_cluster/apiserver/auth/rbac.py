"""Role-based access control: bindings give the rules of roles to users, groups and service accounts.

Every request is authorized here, so what is read from stored objects is cached while they stay the same.
Stored objects are never changed, only replaced: a list equals the cached one exactly when nothing changed,
and comparing lists of identical objects costs nanoseconds each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from moorage.admission.attributes import Reader
from moorage.admission.users import MASTERS, User
from moorage.api.manifests import Manifest, labels_of
from moorage.api.selectors import valid_selector
from moorage.api.text import quoted
from moorage_cluster.apiserver.auth import serviceaccounts
from moorage_cluster.apiserver.auth.attributes import RequestAttributes
from moorage_cluster.apiserver.auth.authorizers import ALLOWED, DENIED, AuthorizationDecision, UserRules
from moorage_cluster.apiserver.auth.rules import Rule, RuleSet, rules_of

GROUP: Final = "rbac.authorization.k8s.io"
ROLES: Final = f"{GROUP}/roles"
CLUSTER_ROLES: Final = f"{GROUP}/clusterroles"
ROLE_BINDINGS: Final = f"{GROUP}/rolebindings"
CLUSTER_ROLE_BINDINGS: Final = f"{GROUP}/clusterrolebindings"

_MAX_CACHED: Final = 1024
"""Number of users for which the applicable bindings are cached."""


class _Grant(NamedTuple):
    """A binding that applies to a user."""

    position: tuple[int, int]
    """The indices of the binding and of its subject: the first that applies gives the reason."""
    role_kind: str
    role_name: str
    namespace: str
    """The namespace of the role if it is a Role."""
    source: str
    """The binding, its role and its subject, for the reason of a decision."""


class _Bindings:
    """The bindings of one namespace, or of the cluster, indexed by subject."""

    def __init__(self, objects: list[Manifest], namespace: str) -> None:
        self.objects = objects
        self._by_user: dict[str, list[_Grant]] = {}
        self._by_group: dict[str, list[_Grant]] = {}
        self._applying: dict[tuple[str, tuple[str, ...]], tuple[_Grant, ...]] = {}
        for number, binding in enumerate(objects):
            for subject_number, subject in enumerate(binding.get("subjects") or ()):
                self._add((number, subject_number), binding, subject, namespace)

    def _add(self, position: tuple[int, int], binding: Manifest, subject: Manifest, namespace: str) -> None:
        kind, name = subject.get("kind", ""), subject.get("name", "")
        shown, by_subject, subject_name = name, self._by_user, name
        match kind:
            case "User":
                pass
            case "Group":
                by_subject = self._by_group
            case "ServiceAccount":
                account_namespace = subject.get("namespace") or namespace
                shown = f"{name}/{account_namespace}"
                if not account_namespace:
                    return
                subject_name = serviceaccounts.username(account_namespace, name)
            case _:
                return
        role = binding.get("roleRef") or {}
        role_kind, role_name = role.get("kind", ""), role.get("name", "")
        binding_name = binding["metadata"]["name"]
        if namespace:
            described = f"RoleBinding {quoted(f'{binding_name}/{namespace}')}"
        else:
            described = f"ClusterRoleBinding {quoted(binding_name)}"
        source = f"{described} of {role_kind} {quoted(role_name)} to {kind} {quoted(shown)}"
        grant = _Grant(position, role_kind, role_name, namespace, source)
        by_subject.setdefault(subject_name, []).append(grant)

    def applying_to(self, user: User) -> tuple[_Grant, ...]:
        """The bindings that apply to a user, each once, in order."""
        user_key = (user.name, user.groups)
        known = self._applying.get(user_key)
        if known is None:
            if len(self._applying) >= _MAX_CACHED:
                self._applying.clear()
            known = self._applying[user_key] = self._find(user)
        return known

    def _find(self, user: User) -> tuple[_Grant, ...]:
        found = list(self._by_user.get(user.name, ()))
        for group in user.groups:
            found += self._by_group.get(group, ())
        first: dict[int, _Grant] = {}
        for grant in sorted(found):
            first.setdefault(grant.position[0], grant)
        return tuple(first.values())


@dataclass(slots=True)
class _Role:
    """A role's rules and the object they came from; the reference keeps its identity from being reused."""

    made_from: object
    rules: tuple[Rule, ...]
    compiled: RuleSet


class Rbac:
    """Decides by the stored Roles, ClusterRoles and bindings."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._bindings: dict[str, _Bindings] = {}
        self._roles: dict[tuple[str, str], _Role] = {}

    def authorize(self, attributes: RequestAttributes) -> AuthorizationDecision:
        """Whether this request is allowed."""
        user = attributes.user
        if MASTERS in user.groups:
            return ALLOWED
        problems: list[str] = []
        for grant in self._grants(user, attributes.namespace):
            role = self._role(grant.role_kind, grant.role_name, grant.namespace)
            if role is None:
                problems.append(_unresolved(grant))
            elif role.compiled.allows(attributes):
                return AuthorizationDecision(True, f"RBAC: allowed by {grant.source}")
        return AuthorizationDecision(False, f"RBAC: {_joined_problems(problems)}") if problems else DENIED

    def rules_for(self, user: User, namespace: str) -> UserRules:
        """All that a user may do in a namespace, cluster-wide rules included."""
        rules: list[Rule] = []
        problems: list[str] = []
        for grant in self._grants(user, namespace):
            role = self._role(grant.role_kind, grant.role_name, grant.namespace)
            if role is None:
                problems.append(_unresolved(grant))
            else:
                rules.extend(role.rules)
        return UserRules(tuple(rules), _joined_problems(problems))

    def rules_of_role(self, kind: str, name: str, namespace: str) -> tuple[Rule, ...] | None:
        """The rules of a Role or ClusterRole; None if there is no such role."""
        role = self._role(kind, name, namespace)
        return None if role is None else role.rules

    def _grants(self, user: User, namespace: str) -> Iterator[_Grant]:
        yield from self._bound(CLUSTER_ROLE_BINDINGS, "").applying_to(user)
        if namespace:
            yield from self._bound(ROLE_BINDINGS, namespace).applying_to(user)

    def _bound(self, storage: str, namespace: str) -> _Bindings:
        objects = list(self._reader.all(storage, namespace or None))
        known = self._bindings.get(namespace)
        if known is None or known.objects != objects:
            if namespace and not objects:
                self._bindings.pop(namespace, None)
                return _NOTHING_BOUND
            known = self._bindings[namespace] = _Bindings(objects, namespace)
        return known

    def _role(self, kind: str, name: str, namespace: str) -> _Role | None:
        if kind == "ClusterRole":
            storage, namespace = CLUSTER_ROLES, ""
        elif kind == "Role" and namespace:
            storage = ROLES
        else:
            return None
        role = self._reader.find(storage, namespace, name)
        key = (namespace, name)
        if role is None:
            self._roles.pop(key, None)
            return None
        aggregated = bool(role.get("aggregationRule"))
        made_from: object = list(self._reader.all(CLUSTER_ROLES)) if aggregated else role
        known = self._roles.get(key)
        if known is None or (known.made_from is not made_from and known.made_from != made_from):
            rules = aggregated_rules(role, self._reader.all(CLUSTER_ROLES)) if aggregated else rules_of(role)
            known = self._roles[key] = _Role(made_from, rules, RuleSet(rules))
        return known


_NOTHING_BOUND: Final = _Bindings([], "")


def _unresolved(grant: _Grant) -> str:
    if grant.role_kind not in ("Role", "ClusterRole"):
        return f"unsupported role reference kind: {quoted(grant.role_kind)}"
    return f"{grant.role_kind.lower()}.{GROUP} {quoted(grant.role_name)} not found"


def _joined_problems(problems: list[str]) -> str:
    said = list(dict.fromkeys(problems))
    return f"[{', '.join(said)}]" if len(said) > 1 else "".join(said)


def aggregated_rules(role: Manifest, cluster_roles: Iterable[Manifest]) -> tuple[Rule, ...]:
    """The rules of an aggregated ClusterRole; the roles it selects may be aggregated themselves."""
    by_name = {each["metadata"]["name"]: each for each in cluster_roles}
    return tuple(_gathered(role, by_name, {role["metadata"]["name"]}))


def _gathered(role: Manifest, by_name: dict[str, Manifest], seen: set[str]) -> dict[Rule, None]:
    """Rules in order, each once. `seen` contains the roles visited on this path, so that cycles end."""
    aggregation = role.get("aggregationRule")
    if not aggregation:
        return dict.fromkeys(rules_of(role))
    rules: dict[Rule, None] = {}
    for selector in map(valid_selector, aggregation.get("clusterRoleSelectors") or ()):
        for name in sorted(by_name.keys() - seen):
            if selector.matches(labels_of(by_name[name])):
                rules |= _gathered(by_name[name], by_name, seen | {name})
    return rules
