"""Authorizers: they decide whether a request is allowed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from moorage.admission.users import UNAUTHENTICATED, User
from moorage_cluster.apiserver.auth.attributes import RequestAttributes, forbidden
from moorage_cluster.apiserver.auth.rules import EVERYTHING, Rule

PUBLIC_PATHS: Final = ("/healthz", "/livez", "/readyz", "/version", "/version/")
"""Paths that every user may read, anonymous users included."""


class AuthorizationDecision(NamedTuple):
    """Whether a request is allowed, and the reason (often empty)."""

    allowed: bool
    reason: str = ""


ALLOWED: Final = AuthorizationDecision(True)
DENIED: Final = AuthorizationDecision(False)

Authorize = Callable[[RequestAttributes], AuthorizationDecision]


@dataclass(frozen=True, slots=True)
class UserRules:
    """What a user may do in a namespace: the rules, and the errors that occurred in resolving them."""

    rules: tuple[Rule, ...]
    problem: str = ""


class Authorizer(Protocol):
    """Allows or denies requests."""

    def authorize(self, attributes: RequestAttributes) -> AuthorizationDecision:
        """Whether this request is allowed."""

    def rules_for(self, user: User, namespace: str) -> UserRules:
        """All that a user may do in a namespace, cluster-wide rules included."""

    def rules_of_role(self, kind: str, name: str, namespace: str) -> tuple[Rule, ...] | None:
        """The rules of a Role or ClusterRole; None if there is no such role."""


def require(authorizer: Authorizer, attributes: RequestAttributes) -> None:
    """Raise ApiError (403) if a request is not allowed."""
    decision = authorizer.authorize(attributes)
    if not decision.allowed:
        raise forbidden(attributes, decision.reason)


class AlwaysAllow:
    """Allows everything to authenticated users, and reading public paths to anonymous ones."""

    def authorize(self, attributes: RequestAttributes) -> AuthorizationDecision:
        """Whether this request is allowed."""
        if UNAUTHENTICATED not in attributes.user.groups:
            return ALLOWED
        public = (
            not attributes.is_resource_request
            and attributes.verb == "get"
            and attributes.path in PUBLIC_PATHS
        )
        return ALLOWED if public else DENIED

    def rules_for(self, user: User, namespace: str) -> UserRules:
        """All that a user may do in a namespace."""
        if UNAUTHENTICATED in user.groups:
            return UserRules((Rule(verbs=("get",), urls=PUBLIC_PATHS),))
        return UserRules(EVERYTHING)

    def rules_of_role(self, kind: str, name: str, namespace: str) -> tuple[Rule, ...] | None:
        """Roles grant nothing here, since no user needs them."""
        return ()
