"""Authentication: from a request's Authorization header to a user."""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from moorage.admission.attributes import Reader
from moorage.admission.users import ANONYMOUS, AUTHENTICATED, MASTERS, UNAUTHENTICATED, User
from moorage.api.manifests import Manifest
from moorage.apimachinery import errors
from moorage_cluster.apiserver.auth.claims import ISSUER
from moorage_cluster.apiserver.auth.jwt import SigningKey
from moorage_cluster.apiserver.auth.serviceaccount_tokens import (
    AuthenticatedToken,
    ServiceAccountTokens,
    TokenError,
)
from moorage_cluster.apiserver.auth.token_requests import TokenIssuer

ADMIN: Final = User("kubernetes-admin", (MASTERS, AUTHENTICATED))
_COMPONENTS: Final = frozenset({"system:kube-scheduler", "system:kube-controller-manager"})
_COMPONENT_GROUPS: Final = frozenset({"system:nodes", "system:serviceaccounts:kube-system"})
"""Users that kube-apiserver's default flow schemas put into priority levels of their own."""
ANONYMOUS_USER: Final = User(ANONYMOUS, (UNAUTHENTICATED,))


class Authenticator:
    """Authenticates the admin, further users with static tokens, and service accounts.

    Service accounts' tokens are signed with `signing_key`; `now` returns Unix seconds. Requests without a
    token are anonymous if `allows_anonymous`; invalid tokens are rejected in any case.
    """

    def __init__(
        self,
        admin_token: str,
        signing_key: SigningKey,
        reader: Reader,
        *,
        now: Callable[[], float] = time.time,
        static_users: Mapping[str, User] | None = None,
        allows_anonymous: bool = True,
        audiences: Sequence[str] = (ISSUER,),
    ) -> None:
        self._audiences = tuple(audiences)
        self._static: list[tuple[bytes, User]] = []
        self._by_header: dict[str | None, User] = {}
        """Static users by Authorization header: looked up by a keyed hash, so timing reveals nothing."""
        if admin_token:
            self._add_static(admin_token, ADMIN)
        for token, user in (static_users or {}).items():
            groups = user.groups if AUTHENTICATED in user.groups else (*user.groups, AUTHENTICATED)
            self._add_static(token, User(user.name, groups, user.uid, user.extra))
        self._allows_anonymous = allows_anonymous
        self._accounts = ServiceAccountTokens(signing_key, reader, now=now, audiences=audiences)
        self._issuer = TokenIssuer(signing_key, reader, now=now, audiences=audiences)

    def authenticate(self, authorization: str | None) -> User:
        """The user that an Authorization header identifies, or the error 401."""
        user = self._by_header.get(authorization)
        if user is not None:
            return user
        token = _bearer_token(authorization)
        if token is None:
            if not self._allows_anonymous:
                raise errors.unauthorized()
            return ANONYMOUS_USER
        try:
            return self.identify(token).user
        except TokenError as error:
            raise errors.unauthorized() from error

    def is_of_control_plane(self, authorization: str | None) -> bool:
        """Whether a header is known as that of a component of the cluster, without verifying it again."""
        user = self._by_header.get(authorization)
        if user is None:
            token = _bearer_token(authorization)
            user = None if token is None else self._accounts.known_user(token)
        return user is not None and (
            user.name in _COMPONENTS or not _COMPONENT_GROUPS.isdisjoint(user.groups)
        )

    def identify(self, token: str, audiences: Sequence[str] = ()) -> AuthenticatedToken:
        """The user of a token, or TokenError; it must be for this server unless other audiences are given."""
        shared = self._audiences
        if audiences:
            shared = tuple(audience for audience in self._audiences if audience in audiences)
        user = self._static_user(token)
        if user is not None and shared:
            return AuthenticatedToken(user, shared)
        found = self._accounts.authenticate(token, audiences)
        if found is None:
            raise TokenError("invalid bearer token")
        return found

    def issue(self, service_account: Manifest, body: Manifest) -> Manifest:
        """Answer a TokenRequest for a stored service account: the request with its status, or ApiError."""
        return self._issuer.issue(service_account, body)

    def _add_static(self, token: str, user: User) -> None:
        self._static.append((_comparable(token), user))
        header = f"Bearer {token}"
        if _bearer_token(header) == token:
            self._by_header.setdefault(header, user)

    def _static_user(self, token: str) -> User | None:
        given = _comparable(token)
        found = None
        for known, user in self._static:
            # A comparison takes the same time whether it succeeds or not, and all tokens are compared.
            if hmac.compare_digest(known, given) and found is None:
                found = user
        return found


def _comparable(token: str) -> bytes:
    return token.encode("utf-8", "backslashreplace")


def _bearer_token(authorization: str | None) -> str | None:
    """The token of a header `Bearer <token>`; None for any other header, which is ignored."""
    if not authorization:
        return None
    parts = authorization.strip().split(" ", 2)
    if len(parts) < 2 or parts[0].lower() != "bearer":
        return None
    return parts[1] or None
