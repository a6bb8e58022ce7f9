"""Go's names of TLS versions, cipher suites and curves, and OpenSSL's for the same."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterable, Mapping
from typing import Final

VERSIONS: Final[Mapping[str, ssl.TLSVersion]] = {
    "VersionTLS10": ssl.TLSVersion.TLSv1,
    "VersionTLS11": ssl.TLSVersion.TLSv1_1,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}
DEFAULT_VERSION: Final = "VersionTLS12"

CURVES: Final[Mapping[int, str]] = {
    23: "prime256v1",
    24: "secp384r1",
    25: "secp521r1",
    29: "X25519",
    4588: "X25519MLKEM768",
}
"""By Go's number, which is that of the standard."""

_TLS13: Final = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
"""Always accepted, in Go as in Python."""
_SUITES: Final = (
    *_TLS13,
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_RC4_128_SHA",
)
_REPLACED: Final = (
    (r"^TLS_RSA_WITH_", ""),
    (r"^TLS_", ""),
    (r"_WITH_", "-"),
    (r"AES_(\d+)_CBC", r"AES\1"),
    (r"AES_(\d+)", r"AES\1"),
    (r"3DES_EDE_CBC", "DES-CBC3"),
    (r"RC4_128", "RC4"),
    (r"POLY1305_SHA256$", "POLY1305"),
    (r"_", "-"),
)
"""Replacements that turn the standard's names into OpenSSL's, in order."""


def openssl_ciphers(names: Iterable[str]) -> str:
    """OpenSSL's names of cipher suites up to TLS 1.2; ValueError for names that Go does not have."""
    found = []
    for name in names:
        if name not in _SUITES:
            raise ValueError(f"Cipher suite {name} not supported or doesn't exist")
        if name not in _TLS13:
            for pattern, replacement in _REPLACED:
                name = re.sub(pattern, replacement, name)
            found.append(name)
    return ":".join(found)
