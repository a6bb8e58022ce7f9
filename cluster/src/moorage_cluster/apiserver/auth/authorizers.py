"""Who decides whether a request may go on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from moorage_cluster.apiserver.auth.attributes import RequestAttributes, forbidden
from moorage_cluster.apiserver.auth.rules import EVERYTHING, Rule
from moorage_cluster.apiserver.auth.users import UNAUTHENTICATED, User

PUBLIC_PATHS: Final = ("/healthz", "/livez", "/readyz", "/version", "/version/")
"""What everybody may read, known or not."""


class Decision(NamedTuple):
    """Whether a request may go on, and why (often there is nothing to say)."""

    allowed: bool
    reason: str = ""


ALLOWED: Final = Decision(True)
DENIED: Final = Decision(False)

Authorize = Callable[[RequestAttributes], Decision]


@dataclass(frozen=True, slots=True)
class UserRules:
    """What somebody may do in a namespace: the rules, and what went wrong in finding them."""

    rules: tuple[Rule, ...]
    problem: str = ""


class Authorizer(Protocol):
    """Decides about requests."""

    def authorize(self, attributes: RequestAttributes) -> Decision:
        """Whether this request may go on."""

    def rules_for(self, user: User, namespace: str) -> UserRules:
        """All that somebody may do in a namespace, cluster-wide rules included."""

    def rules_of_role(self, kind: str, name: str, namespace: str) -> tuple[Rule, ...] | None:
        """The rules of a Role or ClusterRole; None if there is no such role."""


def require(authorizer: Authorizer, attributes: RequestAttributes) -> None:
    """ApiError (403) if a request may not go on."""
    decision = authorizer.authorize(attributes)
    if not decision.allowed:
        raise forbidden(attributes, decision.reason)


class AlwaysAllow:
    """Whoever is known may do everything; who is not may read what is public."""

    def authorize(self, attributes: RequestAttributes) -> Decision:
        """Whether this request may go on."""
        if UNAUTHENTICATED not in attributes.user.groups:
            return ALLOWED
        public = (
            not attributes.is_resource_request
            and attributes.verb == "get"
            and attributes.path in PUBLIC_PATHS
        )
        return ALLOWED if public else DENIED

    def rules_for(self, user: User, namespace: str) -> UserRules:
        """All that somebody may do in a namespace."""
        if UNAUTHENTICATED in user.groups:
            return UserRules((Rule(verbs=("get",), urls=PUBLIC_PATHS),))
        return UserRules(EVERYTHING)

    def rules_of_role(self, kind: str, name: str, namespace: str) -> tuple[Rule, ...] | None:
        """Roles grant nothing here, since nobody needs them."""
        return ()
