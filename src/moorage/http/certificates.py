"""The server's certificate, and the authority of its own that signs it."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from moorage.api.manifests import utc_now
from moorage.http.private_files import write_private

ALWAYS_NAMED: Final = (
    "127.0.0.1",
    "::1",
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
_TLS12_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""The ciphers that Go prefers, without CBC, which is no longer considered safe."""
_CA_LIFETIME: Final = timedelta(days=3650)
_SERVER_LIFETIME: Final = timedelta(days=365)
_RENEWED_BEFORE: Final = timedelta(days=30)
_BACKDATED: Final = timedelta(hours=1)
"""Time before now at which certificates become valid, for clients with slow clocks."""


class CertificateError(ValueError):
    """Stored certificates or keys that cannot be used, or a name that cannot be in a certificate."""


def server_context() -> ssl.SSLContext:
    """A context for servers: TLS 1.2 or later, with forward secrecy and authenticated encryption."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_TLS12_CIPHERS)
    return context


@dataclass(frozen=True, slots=True)
class ServerCertificate:
    """The server's certificate, its key, and the CA certificate for clients; all in PEM."""

    ca_pem: str
    certificate_pem: str
    key_pem: str

    def ssl_context(self) -> ssl.SSLContext:
        """The TLS context of a server with this certificate."""
        context = server_context()
        # The ssl module reads certificates from files only; this one is private and removed right after.
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(self.certificate_pem + self.key_pem)
            file.flush()
            context.load_cert_chain(file.name)
        return context


@dataclass(frozen=True, slots=True)
class _Pair:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def certificate_pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )


def load_or_make(
    directory: Path | None, names: Iterable[str] = (), *, now: datetime | None = None
) -> ServerCertificate:
    """The certificate kept in a directory, made or renewed as needed; without a directory a new one.

    `names` are host names and addresses in addition to the built-in ones. The CA stays the same
    until it expires, so that clients that trust it keep working. Raises CertificateError or OSError.
    """
    moment = now or utc_now()
    wanted = [_general_name(name) for name in dict.fromkeys((*ALWAYS_NAMED, *names))]
    authority = _load(directory, "ca")
    if authority is None or _is_due(authority, moment):
        authority = _make_authority(moment)
        _save(directory, "ca", authority)
    server = _load(directory, "server")
    if server is None or _is_due(server, moment) or not _serves(server, authority, wanted):
        server = _make_server(authority, wanted, moment)
        _save(directory, "server", server)
    return ServerCertificate(
        ca_pem=authority.certificate_pem.decode(),
        certificate_pem=server.certificate_pem.decode(),
        key_pem=server.key_pem.decode(),
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        pass
    try:
        if not name:
            raise ValueError("it is empty")
        return x509.DNSName(name)
    except ValueError as error:
        raise CertificateError(f"{name!r} cannot be a name in the server's certificate: {error}") from error


def _files(directory: Path, name: str) -> tuple[Path, Path]:
    return directory / f"{name}.crt", directory / f"{name}.key"


def _load(directory: Path | None, name: str) -> _Pair | None:
    """A pair as stored; None if there is none."""
    if directory is None:
        return None
    certificate_file, key_file = _files(directory, name)
    try:
        certificate_pem, key_pem = certificate_file.read_bytes(), key_file.read_bytes()
    except FileNotFoundError:
        return None
    try:
        certificate = x509.load_pem_x509_certificate(certificate_pem)
        key = serialization.load_pem_private_key(key_pem, password=None)
    except (ValueError, TypeError) as error:
        raise _unusable(certificate_file, key_file, str(error)) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        raise _unusable(certificate_file, key_file, "the key is not the certificate's")
    return _Pair(certificate, key)


def _unusable(certificate_file: Path, key_file: Path, why: str) -> CertificateError:
    return CertificateError(
        f"{certificate_file} and {key_file} cannot be used ({why}); remove both to have new ones made"
    )


def _save(directory: Path | None, name: str, pair: _Pair) -> None:
    if directory is None:
        return
    certificate_file, key_file = _files(directory, name)
    # A pair without its certificate counts as absent, so a crash in between leaves no mismatched pair.
    certificate_file.unlink(missing_ok=True)
    write_private(key_file, pair.key_pem)
    write_private(certificate_file, pair.certificate_pem)


def _is_due(pair: _Pair, now: datetime) -> bool:
    return now > pair.certificate.not_valid_after_utc - _RENEWED_BEFORE


def _serves(server: _Pair, authority: _Pair, wanted: list[x509.GeneralName]) -> bool:
    """Whether a certificate is signed by the authority and contains all the required names."""
    try:
        server.certificate.verify_directly_issued_by(authority.certificate)
        named = server.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
        return False
    return set(wanted) <= set(named)


def _make_authority(now: datetime) -> _Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _common_name("moorage-ca")
    builder = _builder(name, name, key, now, _CA_LIFETIME)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_key_usage(signs_certificates=True), critical=True)
    return _Pair(builder.sign(key, hashes.SHA256()), key)


def _make_server(authority: _Pair, names: list[x509.GeneralName], now: datetime) -> _Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    # A certificate must not outlive its authority.
    lifetime = min(_SERVER_LIFETIME, authority.certificate.not_valid_after_utc - now)
    builder = _builder(_common_name("moorage"), authority.certificate.subject, key, now, lifetime)
    issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    builder = (
        builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(issuer_key, critical=False)
    )
    return _Pair(builder.sign(authority.key, hashes.SHA256()), key)


def _common_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    lifetime: timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + lifetime)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
