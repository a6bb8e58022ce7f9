"""Delegated authentication and authorization for the scheduler's metrics and state, as in every component.

Users are authenticated by a client certificate (`client_certificates`) or a bearer token, which the API
server reviews (TokenReview), and authorized by the API server (SubjectAccessReview). Results are cached for
ten seconds. Requests without credentials are anonymous. Probes need no authorization; a request for one is
rejected only if it has invalid credentials.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Final

import msgspec

from moorage.api.manifests import Manifest
from moorage.client.client import Client
from moorage.clock import Clock
from moorage.http.transport import Request
from moorage.services.access_reviews import SUBJECT_ACCESS_REVIEW, TOKEN_REVIEW, ReviewCache, Reviewer
from moorage.services.client_certificates import ClientCertificates
from moorage.services.metrics import Metrics
from moorage.services.requesting_user import ANONYMOUS, MASTERS, Unauthenticated, User

CACHE_SECONDS: Final = 10.0
OPEN_PATHS: Final = ("/healthz", "/readyz", "/livez")
"""Default paths that need no authorization."""
_MAX_CACHED_REQUEST_LENGTH: Final = 10_000
"""Maximum length of a request whose decision is cached, as in every component: any client can send one."""
_KNOWN_NAMES: Final = (
    "admin",
    "client",
    "kube_proxy",
    "kubelet",
    "system:serviceaccount:kube-system:default",
)
"""User names that have a metric label of their own."""


class OpenPathError(ValueError):
    """An invalid path among those that need no authorization."""


class Authentication:
    """Authenticates requests. Without a client tokens cannot be reviewed: requests with one are anonymous."""

    def __init__(
        self,
        client: Client | None,
        clock: Clock,
        random: Random,
        metrics: Metrics,
        certificates: ClientCertificates | None = None,
        *,
        token_seconds: float = CACHE_SECONDS,
    ) -> None:
        self._reviewer = (
            None
            if client is None
            else Reviewer(
                client,
                TOKEN_REVIEW,
                clock,
                random,
                metrics.authentication_requests,
                metrics.authentication_request_duration,
            )
        )
        self._clock = clock
        self._metrics = metrics
        self._certificates = certificates
        self._known: ReviewCache[bytes, User | Unauthenticated] = ReviewCache(clock, token_seconds)
        self._secret = secrets.token_bytes(32)

    async def user(self, request: Request, certificate: bytes = b"") -> User:
        """The user of a request; Unauthenticated or ReviewFailed if its credentials cannot be verified.

        certificate: the client certificate of the connection, if TLS has verified it.
        """
        began = self._clock.now()
        result = "error"
        try:
            user = await self._find(request, certificate)
            result = "success"
        finally:
            self._metrics.authentication_attempts.labels(result).inc()
            self._metrics.authentication_duration.labels(result).observe(self._clock.now() - began)
        self._metrics.authenticated_users.labels(_kind_of_name(user.name)).inc()
        return user

    async def _find(self, request: Request, certificate: bytes) -> User:
        problem: Unauthenticated | None = None
        if certificate and self._certificates is not None:
            try:
                user = self._certificates.user(certificate, request)
            except Unauthenticated as error:
                problem, user = error, None
            if user is not None:
                return user.authenticated()
        token = _bearer_token(request.headers.get("authorization", ""))
        if token and self._reviewer is not None:
            return await self._owner(token, self._reviewer)
        if problem is not None:
            raise problem
        return ANONYMOUS

    async def _owner(self, token: str, reviewer: Reviewer) -> User:
        """The user of a token, as reviewed by the API server or cached."""
        # Tokens themselves are not kept.
        key = hashlib.blake2b(token.encode(), key=self._secret).digest()
        began = self._clock.now()
        found = self._known.get(key)
        status = "hit" if found is not None else "miss"
        try:
            if found is None:
                found = await self._reviewed(token, key, reviewer)
        finally:
            self._metrics.token_cache_requests.labels(status).inc()
            self._metrics.token_cache_duration.labels(status).observe(self._clock.now() - began)
        if isinstance(found, Unauthenticated):
            raise Unauthenticated(str(found))
        return found

    async def _reviewed(self, token: str, key: bytes, reviewer: Reviewer) -> User | Unauthenticated:
        in_flight = self._metrics.token_cache_fetching.labels("in_flight")
        in_flight.inc()
        outcome = "error"
        try:
            status = await reviewer.ask({"token": token})
            found = _user(status)
            if isinstance(found, User) or not status.get("error"):
                self._known.put(key, found)
                outcome = "ok"
            return found
        finally:
            in_flight.inc(-1)
            self._metrics.token_cache_fetches.labels(outcome).inc()


def _kind_of_name(name: str) -> str:
    """A user's label in metrics: one for all but well-known names."""
    if name in _KNOWN_NAMES:
        return name
    return "email_id" if "@" in name else "other"


def _bearer_token(header: str) -> str:
    scheme, _, rest = header.strip().partition(" ")
    return rest.split(" ", 1)[0] if scheme.lower() == "bearer" else ""


def _user(status: Manifest) -> User | Unauthenticated:
    if not status.get("authenticated"):
        return Unauthenticated(status.get("error") or "invalid bearer token")
    user = status.get("user") or {}
    groups = tuple(user.get("groups") or ())
    named = User(user.get("username", ""), groups, user.get("uid", ""), user.get("extra") or {})
    return named.authenticated()


@dataclass(frozen=True, slots=True)
class AccessDecision:
    """Whether a request is allowed, and possibly why."""

    is_allowed: bool
    reason: str = ""
    is_final: bool = False
    """Whether the request was denied explicitly; otherwise no authorizer has allowed it."""


class Authorization:
    """Authorizes requests. Without a client only the open paths are allowed."""

    def __init__(
        self,
        client: Client | None,
        clock: Clock,
        random: Random,
        metrics: Metrics,
        open_paths: Iterable[str] = OPEN_PATHS,
        *,
        allowed_seconds: float = CACHE_SECONDS,
        denied_seconds: float = CACHE_SECONDS,
    ) -> None:
        self._reviewer = (
            None
            if client is None
            else Reviewer(
                client,
                SUBJECT_ACCESS_REVIEW,
                clock,
                random,
                metrics.authorization_requests,
                metrics.authorization_request_duration,
            )
        )
        self._clock = clock
        self._metrics = metrics
        self._allowed: ReviewCache[bytes, AccessDecision] = ReviewCache(clock, allowed_seconds)
        self._denied: ReviewCache[bytes, AccessDecision] = ReviewCache(clock, denied_seconds)
        self._open, self._open_prefixes = _open_paths(open_paths)

    async def decide(self, user: User, verb: str, path: str) -> AccessDecision:
        """Whether a user may access a path; ReviewFailed if the API server does not answer."""
        began = self._clock.now()
        result = "error"
        try:
            decision = await self._decide(user, verb, path)
            result = "allowed" if decision.is_allowed else "denied" if decision.is_final else "no-opinion"
        finally:
            self._metrics.authorization_attempts.labels(result).inc()
            self._metrics.authorization_duration.labels(result).observe(self._clock.now() - began)
        return decision

    async def _decide(self, user: User, verb: str, path: str) -> AccessDecision:
        if MASTERS in user.groups or self._is_open(path):
            return AccessDecision(True)
        if self._reviewer is None:
            return AccessDecision(False)
        spec: Manifest = {"nonResourceAttributes": {"path": path, "verb": verb}, "user": user.name}
        if user.groups:
            spec["groups"] = list(user.groups)
        if user.extra:
            spec["extra"] = {key: list(values) for key, values in user.extra.items()}
        if user.uid:
            spec["uid"] = user.uid
        key = msgspec.json.encode(spec)
        found = self._allowed.get(key) or self._denied.get(key)
        if found is None:
            status = await self._reviewer.ask(spec)
            is_denied = bool(status.get("denied"))
            is_allowed = bool(status.get("allowed")) and not is_denied
            found = AccessDecision(is_allowed, status.get("reason") or "", is_denied)
            if len(key) + len(found.reason) <= _MAX_CACHED_REQUEST_LENGTH:
                (self._allowed if is_allowed else self._denied).put(key, found)
        return found

    def _is_open(self, path: str) -> bool:
        bare = path.removeprefix("/")
        return bare in self._open or bare.startswith(self._open_prefixes)


def _open_paths(paths: Iterable[str]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Paths and path prefixes, without their first slash; a `*` may only be at the end."""
    exact, prefixes = set(), []
    for each in paths:
        bare = each.removeprefix("/")
        if "*" in bare[:-1]:
            raise OpenPathError(f'only trailing * allowed in "{bare}"')
        if bare.endswith("*"):
            prefixes.append(bare[:-1])
        else:
            exact.add(bare)
    return frozenset(exact), tuple(prefixes)
