"""Authorities and the certificates that they sign, for tests."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = timedelta(days=1)


class Authority:
    """Signs certificates; `pem` is its own."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._own = self._signed(self._name, self._key, x509.BasicConstraints(ca=True, path_length=None))
        self.pem = self._own.public_bytes(Encoding.PEM).decode()

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *extensions: x509.ExtensionType
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self._name)
        builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - DAY).not_valid_after(now + DAY)
        for extension in extensions:
            builder = builder.add_extension(extension, critical=True)
        return builder.sign(self._key, hashes.SHA256())

    def client(self, name: str, *groups: str) -> tuple[x509.Certificate, str]:
        """A client's certificate, and it with its key in PEM."""
        words = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        words.append(x509.NameAttribute(NameOID.COMMON_NAME, name))
        key = ec.generate_private_key(ec.SECP256R1())
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
        certificate = self._signed(x509.Name(words), key, usage)
        return certificate, _pem(certificate, key)

    def server(self, *names: str) -> str:
        """A server's certificate with its key, in PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        alternatives = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
        return _pem(self._signed(subject, key, alternatives), key)


def _pem(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> str:
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return (certificate.public_bytes(Encoding.PEM) + private).decode()


def trusting_all(folder: Path, pem: str = "") -> ssl.SSLContext:
    """TLS for a client that believes everything, and shows a certificate if there is one."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if pem:
        file = folder / "shown.pem"
        file.write_text(pem)
        context.load_cert_chain(file)
    return context
