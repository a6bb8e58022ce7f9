"""User impersonation, as requested by Impersonate-* headers.

Kubernetes has several modes of permission for this. The constrained modes allow certain requests as certain
users: `impersonate-on:<mode>:<verb>` on what is requested, and `impersonate:<mode>` on the user. The legacy
one, `impersonate` on the user, allows every request as that user. They are tried in order; when none allows
it, the reason of the first is returned.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import unquote

from moorage.admission.users import ANONYMOUS, AUTHENTICATED, MASTERS, UNAUTHENTICATED, User
from moorage.api.names import dns_subdomain_problems
from moorage.api.text import quoted
from moorage.apimachinery import errors, fields
from moorage.apimachinery.errors import ApiError
from moorage_cluster.apiserver.auth import serviceaccounts
from moorage_cluster.apiserver.auth.attributes import RequestAttributes, forbidden
from moorage_cluster.apiserver.auth.authorizers import Authorize

_PREFIX: Final = "impersonate-"
_EXTRA_PREFIX: Final = "impersonate-extra-"
_NODE_PREFIX: Final = "system:node:"
_NODES_GROUP: Final = "system:nodes"
_AUTHENTICATION: Final = "authentication.k8s.io"
_MAX_SINGLE_CHECKS: Final = 4
"""Number of groups or extra values from which a permission for all of them is checked first."""

_PATH_CHARACTERS: Final = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_PATH: Final = re.compile(_PATH_CHARACTERS)
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


def impersonate(
    attributes: RequestAttributes, headers: Iterable[tuple[str, str]], authorize: Authorize
) -> User:
    """The user that a request acts as: `attributes.user`, or the one in the headers if that is allowed."""
    wanted = requested_user(headers)
    if wanted is None:
        return attributes.user
    refusal: ApiError | None = None
    for mode in _modes(attributes.user, wanted):
        try:
            if mode:
                return _Check(authorize, attributes.user, f"impersonate:{mode}", True).constrained(
                    mode, attributes, wanted
                )
            return _Check(authorize, attributes.user, "impersonate", False).acting_as(wanted)
        except ApiError as error:
            refusal = refusal or error
    assert refusal is not None  # the last mode is always tried, and either returns or refuses
    raise refusal


def requested_user(headers: Iterable[tuple[str, str]]) -> User | None:
    """The user in the headers, exactly as they name it; None if they name none."""
    name = uid = ""
    groups: list[str] = []
    extra: dict[str, tuple[str, ...]] = {}
    for header, value in headers:
        key = header.lower()
        if not key.startswith(_PREFIX):
            continue
        if key == "impersonate-user":
            name = name or value
        elif key == "impersonate-uid":
            uid = uid or value
        elif key == "impersonate-group":
            groups.append(value)
        elif key.startswith(_EXTRA_PREFIX):
            extra_key = _unescaped(key.removeprefix(_EXTRA_PREFIX))
            extra[extra_key] = (*extra.get(extra_key, ()), value)
    if name:
        return User(name, tuple(groups), uid, extra)
    if uid or groups or extra:
        raise errors.bad_request(f"requested {_shown(uid, groups, extra)} without impersonating a user name")
    return None


def _unescaped(key: str) -> str:
    return key if _BAD_ESCAPE.search(key) else unquote(key, errors="replace")


def _shown(uid: str, groups: Sequence[str], extra: dict[str, tuple[str, ...]]) -> str:
    """A user without a name, as messages show it."""
    group_headers = _shown_list(groups) if groups else "[]string(nil)"
    extra_headers = "(nil)"
    if extra:
        pairs = (f"{quoted(key)}:{_shown_list(values)}" for key, values in sorted(extra.items()))
        extra_headers = f"{{{', '.join(pairs)}}}"
    return (
        f'&user.DefaultInfo{{Name:"", UID:{quoted(uid)}, Groups:{group_headers}, '
        f"Extra:map[string][]string{extra_headers}}}"
    )


def _shown_list(values: Iterable[str]) -> str:
    return f"[]string{{{', '.join(map(quoted, values))}}}"


def _node_name(user_name: str) -> str:
    """The name of the node that a user represents; empty if the user is not a node."""
    node = user_name.removeprefix(_NODE_PREFIX)
    return "" if node == user_name or dns_subdomain_problems(node) else node


def _modes(requestor: User, wanted: User) -> list[str]:
    """The modes that apply to these two users; the legacy mode has no name."""
    only_name = not (wanted.uid or wanted.groups or wanted.extra)
    if node := _node_name(wanted.name):
        if not only_name:
            return [""]
        is_account = serviceaccounts.split_username(requestor.name) is not None
        on_node = requestor.extra.get(serviceaccounts.NODE_NAME) == (node,)
        return ["associated-node", "arbitrary-node", ""] if is_account and on_node else ["arbitrary-node", ""]
    if serviceaccounts.split_username(wanted.name):
        return ["serviceaccount", ""] if only_name else [""]
    return ["user-info", ""]


class _Check:
    """One mode of impersonation: checks whether the requestor may act as the wanted user."""

    def __init__(self, authorize: Authorize, requestor: User, verb: str, is_constrained: bool) -> None:
        self._authorize = authorize
        self._requestor = requestor
        self._verb = verb
        self._is_constrained = is_constrained
        self._group_of_names = _AUTHENTICATION if is_constrained else ""

    def constrained(self, mode: str, attributes: RequestAttributes, wanted: User) -> User:
        """The user that the request acts as, if the requestor may make this request as users of this mode."""
        if mode == "associated-node":
            # Permission is given for all nodes at once, so it must not depend on which node this is.
            keys = tuple(sorted(self._requestor.extra))
            extra = {"authentication.kubernetes.io/associated-node-keys": keys}
            self._requestor = replace(self._requestor, extra=extra)
            attributes = attributes._replace(user=self._requestor)
        self._require(attributes._replace(verb=f"impersonate-on:{mode}:{attributes.verb}"))
        return self.acting_as(wanted, any_node=mode == "associated-node")

    def acting_as(self, wanted: User, any_node: bool = False) -> User:
        """The wanted user, with the groups that such a user has."""
        groups = self._check_name(wanted, any_node)
        if wanted.uid:
            self._require(self._attributes(_AUTHENTICATION, "uids", wanted.uid))
        self._check_groups(wanted.groups)
        self._check_extra(wanted.extra)
        if wanted.name == ANONYMOUS:
            implied = UNAUTHENTICATED
        else:
            implied = UNAUTHENTICATED if UNAUTHENTICATED in groups else AUTHENTICATED
        return replace(wanted, groups=groups if implied in groups else (*groups, implied))

    def _check_name(self, wanted: User, any_node: bool) -> tuple[str, ...]:
        asking = self._attributes(self._group_of_names, "users", wanted.name)
        groups = wanted.groups
        if self._is_constrained and (node := _node_name(wanted.name)):
            asking = asking._replace(resource="nodes", name="*" if any_node else node)
            groups = (_NODES_GROUP,)
        if account := serviceaccounts.split_username(wanted.name):
            namespace, name = account
            asking = asking._replace(resource="serviceaccounts", namespace=namespace, name=name)
            groups = groups or serviceaccounts.groups(namespace)
        self._require(asking)
        return groups

    def _check_groups(self, groups: tuple[str, ...]) -> None:
        asking = self._attributes(self._group_of_names, "groups", "")
        if self._is_constrained:
            if "" in groups:
                raise forbidden(asking, "impersonating the empty string group is not allowed")
            if MASTERS in groups:
                raise forbidden(
                    asking._replace(name=MASTERS), "impersonating the system:masters group is not allowed"
                )
            if len(groups) >= _MAX_SINGLE_CHECKS and self._authorize(asking._replace(name="*")).allowed:
                return
        for group in groups:
            self._require(asking._replace(name=group))

    def _check_extra(self, extra: dict[str, tuple[str, ...]]) -> None:
        asking = self._attributes(_AUTHENTICATION, "userextras", "")
        if self._is_constrained:
            if problem := _extra_problem(extra):
                raise forbidden(asking, problem)
            many = len(extra) >= _MAX_SINGLE_CHECKS or sum(map(len, extra.values())) >= _MAX_SINGLE_CHECKS
            if many and self._authorize(asking._replace(subresource="*", name="*")).allowed:
                return
        for key, values in extra.items():
            for value in values:
                self._require(asking._replace(subresource=key, name=value))

    def _attributes(self, group: str, resource: str, name: str) -> RequestAttributes:
        return RequestAttributes(self._requestor, self._verb, group, "v1", resource, name=name)

    def _require(self, asking: RequestAttributes) -> None:
        decision = self._authorize(asking)
        if not decision.allowed:
            raise forbidden(asking, decision.reason)


def _extra_problem(extra: dict[str, tuple[str, ...]]) -> str:
    """Why extra values cannot be given in a constrained mode."""
    for key, values in extra.items():
        if not key:
            return "impersonating the empty string key in extra is not allowed"
        if problems := _key_problems(key):
            said = str(problems[0]) if len(problems) == 1 else f"[{', '.join(map(str, problems))}]"
            return f"impersonating an invalid key in extra is not allowed: {said}"
        if key != key.lower():
            return f"impersonating a non-lowercase key in extra is not allowed: {quoted(key)}"
        if "" in values:
            return "impersonating the empty string value in extra is not allowed"
    return ""


def _key_problems(key: str) -> list[fields.FieldError]:
    host, _, path = key.partition("/")
    field = "extra.key"
    if not host or not path:
        return [fields.invalid(field, key, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    problems = fields.complaints(field, host, dns_subdomain_problems(host))
    if not _PATH.fullmatch(path):
        rule = f"Invalid path (regex used for validation is '{_PATH_CHARACTERS}')"
        problems.append(fields.invalid(field, path, rule))
    return problems
