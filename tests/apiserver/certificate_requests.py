"""CertificateSigningRequests to test with."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding

_REQUEST = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
_KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))


def pem(der: bytes, kind: str = "CERTIFICATE REQUEST") -> str:
    """A PEM block as JSON has it."""
    return b64encode(
        f"-----BEGIN {kind}-----\n{b64encode(der).decode()}\n-----END {kind}-----\n".encode()
    ).decode()


def _tampered(der: bytes) -> str:
    return pem(der[:-1] + bytes((der[-1] ^ 1,)))


_DER = _REQUEST.sign(_KEY, None).public_bytes(Encoding.DER)
_DER_ECDSA = _REQUEST.sign(ec.derive_private_key(7, ec.SECP256R1()), hashes.SHA256()).public_bytes(
    Encoding.DER
)
REQUEST = pem(_DER)
"""The same in every run: its signature has nothing random."""
TAMPERED, TAMPERED_ECDSA = _tampered(_DER), _tampered(_DER_ECDSA)


def a_request(name: str = "bob", **spec: Any) -> dict[str, Any]:
    """A request that is valid, unless `spec` makes it otherwise."""
    whole = {"request": REQUEST, "signerName": "example.com/signer", "usages": ["client auth"], **spec}
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name},
        "spec": whole,
    }
