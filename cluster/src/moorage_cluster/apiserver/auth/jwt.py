"""JSON web tokens, signed with an elliptic-curve key (ES256) with a public half that may be published."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any, Final, Self

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

ALGORITHM: Final = "ES256"
_NUMBER_BYTES: Final = 32
"""Length of a coordinate of the curve P-256, and of each half of a signature, in bytes."""
_SIGNING: Final = ec.ECDSA(hashes.SHA256())


class BadTokenError(Exception):
    """Text that is not a token signed with our key."""


class SigningKey:
    """Signs tokens and verifies its own signatures."""

    def __init__(self, key: ec.EllipticCurvePrivateKey) -> None:
        self._private = key
        self._public = key.public_key()
        encoding, form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        digest = hashlib.sha256(self._public.public_bytes(encoding, form)).digest()
        self.id = _encoded(digest).decode()
        """The key ID in the headers of tokens signed with this key."""

    @classmethod
    def generate(cls) -> Self:
        """A new key."""
        return cls(ec.generate_private_key(ec.SECP256R1()))

    @classmethod
    def from_pem(cls, pem: bytes) -> Self:
        """A stored key; ValueError if it does not fit our algorithm."""
        try:
            key = serialization.load_pem_private_key(pem, None)
        except (TypeError, UnsupportedAlgorithm) as error:
            raise ValueError(str(error)) from error
        if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
            raise ValueError("not a private key of the curve P-256")
        return cls(key)

    def pem(self) -> bytes:
        """The private key, for storage."""
        form, protection = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        return self._private.private_bytes(serialization.Encoding.PEM, form, protection)

    def public_jwk(self) -> dict[str, str]:
        """The public key as a JSON web key."""
        numbers = self._public.public_numbers()
        x, y = (_encoded(_number(each)).decode() for each in (numbers.x, numbers.y))
        return {"use": "sig", "kty": "EC", "kid": self.id, "crv": "P-256", "alg": ALGORITHM, "x": x, "y": y}

    def sign(self, claims: Any) -> str:
        """A compact token with these claims (a struct or a dict)."""
        header = {"alg": ALGORITHM, "kid": self.id}
        signed = b".".join(_encoded(msgspec.json.encode(part)) for part in (header, claims))
        halves = utils.decode_dss_signature(self._private.sign(signed, _SIGNING))
        return b".".join((signed, _encoded(b"".join(map(_number, halves))))).decode()

    def verify(self, token: str) -> bytes:
        """The claims of a token, if it was signed with this key and with the one algorithm in use."""
        said = payload(token)
        signed, _, signature = token.rpartition(".")
        try:
            header = msgspec.json.decode(_decoded(signed.partition(".")[0]))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadTokenError("not a token") from error
        if not isinstance(header, dict) or header.get("alg") != ALGORITHM:
            raise BadTokenError("unexpected signature algorithm")
        try:
            self._public.verify(_dss_signature(_decoded(signature)), signed.encode(), _SIGNING)
        except InvalidSignature as error:
            raise BadTokenError("invalid signature") from error
        return said


def payload(token: str) -> bytes:
    """The claims of a token, signed or not; raises BadTokenError if it is not a token."""
    parts = token.split(".")
    if len(parts) != 3:
        raise BadTokenError("not a token")
    return _decoded(parts[1])


def _dss_signature(signature: bytes) -> bytes:
    if len(signature) != 2 * _NUMBER_BYTES:
        raise BadTokenError("invalid signature")
    halves = signature[:_NUMBER_BYTES], signature[_NUMBER_BYTES:]
    return utils.encode_dss_signature(*(int.from_bytes(half) for half in halves))


def _number(value: int) -> bytes:
    return value.to_bytes(_NUMBER_BYTES)


def _encoded(data: bytes) -> bytes:
    return urlsafe_b64encode(data).rstrip(b"=")


def _decoded(text: str) -> bytes:
    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError as error:
        raise BadTokenError("not a token") from error
