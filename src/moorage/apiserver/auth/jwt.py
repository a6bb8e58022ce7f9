"""JSON web tokens, signed with a key that only this server has."""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

import msgspec


class BadTokenError(Exception):
    """Text that is not a token we signed."""


def sign(claims: Any, key: bytes) -> str:
    """A compact token that says these claims (a struct or a dict)."""
    # The key is secret, so a part of its digest names it without telling anything.
    header = {"alg": "HS256", "kid": hashlib.sha256(key).hexdigest()[:16]}
    signed = b".".join(_encoded(msgspec.json.encode(part)) for part in (header, claims))
    return b".".join((signed, _encoded(_signature(signed, key)))).decode()


def payload(token: str) -> bytes:
    """What a token says, be it signed or not; raises BadTokenError if it is no token at all."""
    parts = token.split(".")
    if len(parts) != 3:
        raise BadTokenError("not a token")
    return _decoded(parts[1])


def verify(token: str, key: bytes) -> bytes:
    """What a token says, if it was signed with this key by the one algorithm that we use."""
    said = payload(token)
    signed, _, signature = token.rpartition(".")
    try:
        header = msgspec.json.decode(_decoded(signed.partition(".")[0]))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadTokenError("not a token") from error
    if not isinstance(header, dict) or header.get("alg") != "HS256":
        raise BadTokenError("unexpected signature algorithm")
    if not hmac.compare_digest(_decoded(signature), _signature(signed.encode(), key)):
        raise BadTokenError("invalid signature")
    return said


def _signature(signed: bytes, key: bytes) -> bytes:
    return hmac.digest(key, signed, "sha256")


def _encoded(data: bytes) -> bytes:
    return urlsafe_b64encode(data).rstrip(b"=")


def _decoded(text: str) -> bytes:
    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError as error:
        raise BadTokenError("not a token") from error
