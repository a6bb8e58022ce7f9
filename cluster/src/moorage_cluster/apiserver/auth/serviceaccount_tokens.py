"""Authentication of service accounts by tokens, which are valid while the objects they are bound to exist."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from moorage.admission.attributes import Reader
from moorage.admission.users import User
from moorage.api.manifests import Manifest
from moorage.api.text import quoted
from moorage_cluster.apiserver.auth import jwt
from moorage_cluster.apiserver.auth.claims import ISSUER, PrivateClaims, Ref, TokenClaims, user_of
from moorage_cluster.apiserver.auth.rules import quoted_list

_LEEWAY_SECONDS: Final = 60
"""Tolerated clock skew, in seconds."""
_MAX_CACHED: Final = 1024
"""Number of verified tokens in the cache."""


class TokenError(Exception):
    """A token that identifies no user; the text is the reason."""


class AuthenticatedToken(NamedTuple):
    """The user that a token identifies, and which of the wanted audiences it is for."""

    user: User
    audiences: tuple[str, ...]


class _Issuer(msgspec.Struct):
    iss: str = ""


_ISSUER: Final = msgspec.json.Decoder(_Issuer)
_CLAIMS: Final = msgspec.json.Decoder(TokenClaims)


class ServiceAccountTokens:
    """Authenticates tokens. `now` returns Unix seconds; `audiences` are the names of this server."""

    def __init__(
        self,
        signing_key: jwt.SigningKey,
        reader: Reader,
        *,
        now: Callable[[], float] = time.time,
        audiences: Sequence[str] = (ISSUER,),
    ) -> None:
        self._key = signing_key
        self._reader = reader
        self._now = now
        self._audiences = tuple(audiences)
        self._verified: dict[str, tuple[TokenClaims, User]] = {}

    def authenticate(self, token: str, audiences: Sequence[str] = ()) -> AuthenticatedToken | None:
        """The user of a token; None if this server did not issue it; TokenError if it is not valid.

        A signature is checked once for each token; times and bound objects are checked every time.
        """
        known = self._verified.get(token)
        if known is None:
            read = self._read(token)
            if read is None:
                return None
            if len(self._verified) >= _MAX_CACHED:
                self._verified.clear()
            known = self._verified[token] = (read, user_of(read))
        claims, user = known
        wanted = audiences or self._audiences
        shared = tuple(audience for audience in claims.aud if audience in wanted)
        if not shared:
            said, targets = quoted_list(claims.aud), quoted_list(wanted)
            raise TokenError(f"token audiences {said} is invalid for the target audiences {targets}")
        self._check_times(claims)
        self._check_objects(claims.private)
        return AuthenticatedToken(user, shared)

    def known_user(self, token: str) -> User | None:
        """The user of a token whose signature was found valid before; it may have expired since."""
        known = self._verified.get(token)
        return None if known is None else known[1]

    def _read(self, token: str) -> TokenClaims | None:
        try:
            if _ISSUER.decode(jwt.payload(token)).iss != ISSUER:
                return None
        except (jwt.BadTokenError, msgspec.DecodeError, UnicodeDecodeError):
            return None
        try:
            return _CLAIMS.decode(self._key.verify(token))
        except (jwt.BadTokenError, msgspec.DecodeError) as error:
            raise TokenError(str(error)) from error

    def _check_times(self, claims: TokenClaims) -> None:
        now = self._now()
        if now - _LEEWAY_SECONDS > claims.exp:
            raise TokenError("service account token has expired")
        if now + _LEEWAY_SECONDS < claims.nbf:
            raise TokenError("service account token is not valid yet")
        if now + _LEEWAY_SECONDS < claims.iat:
            raise TokenError("service account token is issued in the future")

    def _check_objects(self, said: PrivateClaims) -> None:
        namespace, account = said.namespace, said.serviceaccount
        found = self._reader.find("/serviceaccounts", namespace, account.name)
        if found is None:
            raise TokenError(f"serviceaccounts {quoted(account.name)} not found")
        uid = found["metadata"].get("uid", "")
        if uid != account.uid:
            raise TokenError(f"service account UID ({uid}) does not match claim ({account.uid})")
        if self._not_found(found):
            raise TokenError(f"service account {namespace}/{account.name} has been deleted")
        if said.secret:
            self._check_bound("/secrets", "secret", namespace, said.secret)
        if said.pod:
            self._check_bound("/pods", "pod", namespace, said.pod)
        elif said.node:
            # A pod's token names the node too, but is valid as long as the pod exists.
            self._check_bound("/nodes", "node", "", said.node)

    def _check_bound(self, storage: str, kind: str, namespace: str, ref: Ref) -> None:
        found = self._reader.find(storage, namespace, ref.name)
        if found is None:
            raise TokenError("service account token has been invalidated")
        uid = found["metadata"].get("uid", "")
        if uid != ref.uid:
            raise TokenError(
                f"{kind} UID ({uid}) does not match service account {kind} ref claim ({ref.uid})"
            )
        if self._not_found(found):
            raise TokenError("service account token has been invalidated")

    def _not_found(self, obj: Manifest) -> bool:
        """Whether an object's deletion is due, so that it only waits to be removed."""
        when = obj["metadata"].get("deletionTimestamp")
        if not when:
            return False
        return datetime.fromisoformat(when).timestamp() < self._now() - _LEEWAY_SECONDS
