"""Validation of certificates and certificate requests in PEM; functions return a problem, or empty."""

from __future__ import annotations

import re
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from moorage.api.text import quoted

_BLOCK: Final = re.compile(rb"^-----BEGIN ([^\r\n]*)-----\r?$", re.MULTILINE)
_UNREADABLE: Final = (ValueError, UnsupportedAlgorithm, x509.InvalidVersion)


def request_problem(pem: bytes) -> str:
    """A certificate request, signed with the key that it is for."""
    block = _BLOCK.search(pem)
    if block is None or block[1] != b"CERTIFICATE REQUEST":
        return "PEM block type must be CERTIFICATE REQUEST"
    try:
        request = x509.load_pem_x509_csr(pem[block.start() :])
        if request.is_signature_valid:
            return ""
        key = request.public_key()
    except _UNREADABLE:
        return "x509: malformed certificate request"
    if isinstance(key, rsa.RSAPublicKey):
        return "crypto/rsa: verification error"
    return (
        f"x509: {'ECDSA' if isinstance(key, ec.EllipticCurvePublicKey) else 'Ed25519'} verification failure"
    )


def certificate_problem(pem: bytes) -> str:
    """Certificates; an empty list is valid."""
    if not pem:
        return ""
    kinds = _BLOCK.findall(pem)
    if not kinds:
        return "must contain at least one CERTIFICATE PEM block"
    for kind in kinds:
        if kind != b"CERTIFICATE":
            return f"only CERTIFICATE PEM blocks are allowed, found {quoted(kind.decode(errors='replace'))}"
    try:
        x509.load_pem_x509_certificates(pem)
    except _UNREADABLE:
        return "x509: malformed certificate"
    return ""
