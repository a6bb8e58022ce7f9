"""Who may read the scheduler's metrics and state: the API server decides, as for every component.

A bearer token is shown to the API server (TokenReview), what its owner wants is asked of it
(SubjectAccessReview); answers hold for ten seconds. Who shows no token is anonymous. Probes are open: nobody
is asked about them, and only who shows a token that is nobody's is refused.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

import msgspec

from moorage.api.manifests import Manifest
from moorage.client.client import Client
from moorage.clock import Clock
from moorage.services.metrics import Metrics
from moorage.services.reviews import SUBJECT_ACCESS_REVIEW, TOKEN_REVIEW, Remembered, Reviewer
from moorage.transport import Request

CACHE_SECONDS: Final = 10.0
OPEN_PATHS: Final = ("/healthz", "/readyz", "/livez")
"""What everybody may ask, unless other paths are named."""
MASTERS: Final = "system:masters"
"""Whose members may do everything, everywhere."""
_AUTHENTICATED: Final = "system:authenticated"
_UNAUTHENTICATED: Final = "system:unauthenticated"


@dataclass(frozen=True, slots=True)
class User:
    """Who asks."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)


ANONYMOUS: Final = User("system:anonymous", (_UNAUTHENTICATED,))


class Unauthenticated(Exception):  # noqa: N818 -- it says what happened
    """A token that is nobody's."""


class OpenPathError(ValueError):
    """A path for everybody that cannot be one."""


class Authentication:
    """Finds out who asks. Without a client there is nobody to show tokens to: everybody is anonymous."""

    def __init__(self, client: Client | None, clock: Clock, random: Random, metrics: Metrics) -> None:
        self._reviewer = (
            None
            if client is None
            else Reviewer(
                client,
                TOKEN_REVIEW,
                clock,
                random,
                metrics.authentication_requests,
                metrics.authentication_duration,
            )
        )
        self._known: Remembered[bytes, User | Unauthenticated] = Remembered(clock, CACHE_SECONDS)
        self._secret = secrets.token_bytes(32)

    async def user(self, request: Request) -> User:
        """Who asks; Unauthenticated or ReviewFailed if a token is shown that is not known to be good."""
        token = _bearer_token(request.headers.get("authorization", ""))
        if not token or self._reviewer is None:
            return ANONYMOUS
        # Tokens themselves are not kept.
        key = hashlib.blake2b(token.encode(), key=self._secret).digest()
        found = self._known.get(key)
        if found is None:
            status = await self._reviewer.ask({"token": token})
            found = _user(status)
            if isinstance(found, User) or not status.get("error"):
                self._known.put(key, found)
        if isinstance(found, Unauthenticated):
            raise Unauthenticated(str(found))
        return found


def _bearer_token(header: str) -> str:
    scheme, _, rest = header.strip().partition(" ")
    return rest.split(" ", 1)[0] if scheme.lower() == "bearer" else ""


def _user(status: Manifest) -> User | Unauthenticated:
    if not status.get("authenticated"):
        return Unauthenticated(status.get("error") or "invalid bearer token")
    user = status.get("user") or {}
    groups = tuple(user.get("groups") or ())
    if not {_AUTHENTICATED, _UNAUTHENTICATED} & set(groups):
        groups += (_AUTHENTICATED,)
    return User(user.get("username", ""), groups, user.get("uid", ""), user.get("extra") or {})


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether something may be done, and perhaps why."""

    is_allowed: bool
    reason: str = ""


class Authorization:
    """Finds out what somebody may do. Without a client nobody may do anything but ask for the open paths."""

    def __init__(
        self,
        client: Client | None,
        clock: Clock,
        random: Random,
        metrics: Metrics,
        open_paths: Iterable[str] = OPEN_PATHS,
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
                metrics.authorization_duration,
            )
        )
        self._known: Remembered[bytes, Decision] = Remembered(clock, CACHE_SECONDS)
        self._open, self._open_prefixes = _open_paths(open_paths)

    async def decide(self, user: User, verb: str, path: str) -> Decision:
        """Whether a user may do something with a path; ReviewFailed if nobody knows."""
        if MASTERS in user.groups or self._is_open(path):
            return Decision(True)
        if self._reviewer is None:
            return Decision(False)
        spec: Manifest = {"nonResourceAttributes": {"path": path, "verb": verb}, "user": user.name}
        if user.groups:
            spec["groups"] = list(user.groups)
        if user.extra:
            spec["extra"] = {key: list(values) for key, values in user.extra.items()}
        if user.uid:
            spec["uid"] = user.uid
        key = msgspec.json.encode(spec)
        found = self._known.get(key)
        if found is None:
            status = await self._reviewer.ask(spec)
            is_allowed = bool(status.get("allowed")) and not status.get("denied")
            found = Decision(is_allowed, status.get("reason") or "")
            self._known.put(key, found)
        return found

    def _is_open(self, path: str) -> bool:
        bare = path.removeprefix("/")
        return bare in self._open or bare.startswith(self._open_prefixes)


def _open_paths(paths: Iterable[str]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Paths and beginnings of paths, without their first slash; a `*` may only be at the end."""
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
