"""TLS of the scheduler's own server: its certificates, accepted versions, and trusted client authorities.

Every handshake begins with one outer context, and continues with the context of the certificate for the
requested server name. Contexts are created again when a certificate's file or the trusted client authorities
have changed; existing connections are not affected.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from cryptography import x509
from cryptography.x509.oid import NameOID

from moorage.http.certificates import CertificateError, ServerCertificate, load_or_make, server_context
from moorage.http.server import ServingError
from moorage.klog import Logger
from moorage.services.tls_names import CURVES, DEFAULT_VERSION, VERSIONS, openssl_ciphers

log = Logger(__name__)

_PAIR_NAME: Final = "kube-scheduler"
_EVERYWHERE: Final = ("0.0.0.0", "::")


@dataclass(frozen=True, slots=True)
class NamedCertificate:
    """A certificate for some names; without patterns, for those that it has itself."""

    certificate_file: Path
    key_file: Path
    patterns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """The certificates to present, and the accepted parameters."""

    certificate_file: Path | None = None
    """The server's certificate and its chain; None: a self-signed one is generated."""
    key_file: Path | None = None
    directory: Path | None = None
    """Where a generated certificate is stored and found the next time; None: it is not stored."""
    by_name: Sequence[NamedCertificate] = ()
    min_version: str = ""
    cipher_suites: Sequence[str] = ()
    """Go's names; none: those with forward secrecy and authenticated encryption."""
    curves: Sequence[int] = ()
    """Go's numbers."""


def named_certificate(text: str) -> NamedCertificate:
    """Parse a flag: `cert,key` or `cert,key:pattern,pattern`; ServingError if it is invalid."""
    files, _, patterns = text.partition(":")
    certificate, comma, key = (part.strip() for part in files.partition(","))
    if not comma or not certificate or not key or "," in key:
        raise ServingError("expected comma separated certificate and key file paths")
    names = tuple(name.strip() for name in patterns.split(",")) if patterns else ()
    return NamedCertificate(Path(certificate), Path(key), names)


class ServerTls:
    """A server's TLS context (`context`); ServingError if it cannot be created."""

    def __init__(self, options: TlsOptions, bind_address: str) -> None:
        self._limits = _Limits(options)
        self._authorities = ""
        self._default = _Shown(_source(options, bind_address))
        self._named = [self._shown(each) for each in options.by_name]
        self.context = self._limits.imposed(self._default.source.load())
        self.context.sni_callback = self._choose

    def _shown(self, named: NamedCertificate) -> _Shown:
        files = _Files(named.certificate_file, named.key_file)
        files.load()  # Report unusable files at startup.
        names = named.patterns or tuple(certificate_names(named.certificate_file))
        return _Shown(files, named.patterns, names)

    def trust(self, authorities: Iterable[str]) -> None:
        """Request client certificates, and trust those signed by these authorities (in PEM)."""
        self._authorities = "\n".join(filter(None, authorities))
        # Whether a client certificate is requested is decided before the server name is known.
        self.context.verify_mode = ssl.CERT_OPTIONAL if self._authorities else ssl.CERT_NONE
        for shown in (self._default, *self._named):
            self._current(shown)  # Not during a handshake, when there may be no file descriptor left.

    def _choose(self, connection: ssl.SSLSocket | ssl.SSLObject, name: str | None, _: Any) -> None:
        """Continue with the certificate for the requested server name."""
        connection.context = self._current(self._for_name(name or ""))

    def _for_name(self, name: str) -> _Shown:
        """The certificate for a name: patterns precede a certificate's own names, exact ones wildcards."""
        wildcard = f"*.{name.partition('.')[2]}"
        for wanted in (name, wildcard):
            for are_patterns in (True, False):
                for shown in self._named:
                    if bool(shown.patterns) is are_patterns and wanted in shown.names:
                        return shown
        return self._default

    def _current(self, shown: _Shown) -> ssl.SSLContext:
        """The context of a certificate's current files; of the previous ones if they cannot be used."""
        try:
            made_of = (shown.source.stamp(), self._authorities)
            if shown.context is None or shown.made_of != made_of:
                context = self._limits.imposed(shown.source.load())
                if self._authorities:
                    context.load_verify_locations(cadata=self._authorities)
                    context.verify_mode = ssl.CERT_OPTIONAL
                shown.context, shown.made_of = context, made_of
        except (ServingError, OSError) as error:
            if shown.context is None:
                raise
            log.error(error, "Failed to load the serving certificate; keeping the current one")
        assert shown.context is not None
        return shown.context


class _Source(Protocol):
    """The source of a certificate."""

    def stamp(self) -> Any:
        """A value that differs when the certificate has changed."""

    def load(self) -> ssl.SSLContext:
        """A context with the certificate; ServingError if there is none."""


def certificate_names(file: Path) -> Iterator[str]:
    """The usable names in a certificate."""
    certificate = x509.load_pem_x509_certificate(file.read_bytes())
    for attribute in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME):
        yield str(attribute.value)
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return
    yield from found.get_values_for_type(x509.DNSName)
    yield from map(str, found.get_values_for_type(x509.IPAddress))


class _Files:
    """A certificate and its key in files."""

    def __init__(self, certificate_file: Path, key_file: Path) -> None:
        self._certificate_file = certificate_file
        self._key_file = key_file

    def stamp(self) -> Any:
        found = [file.stat() for file in (self._certificate_file, self._key_file)]
        return [(one.st_mtime_ns, one.st_size, one.st_ino) for one in found]

    def load(self) -> ssl.SSLContext:
        context = server_context()
        try:
            context.load_cert_chain(self._certificate_file, self._key_file)
        except OSError as error:  # Includes SSLError.
            files = f"{self._certificate_file} and {self._key_file}"
            raise ServingError(f"{files} cannot be used: {error.strerror or error}") from None
        return context


class _Made:
    """A generated certificate, in memory only."""

    def __init__(self, made: ServerCertificate) -> None:
        self._made = made

    def stamp(self) -> Any:
        return None

    def load(self) -> ssl.SSLContext:
        return self._made.ssl_context()


class _Shown:
    """A certificate that is presented, and its context."""

    def __init__(self, source: _Source, patterns: Sequence[str] = (), names: Sequence[str] = ()) -> None:
        self.source = source
        self.patterns = patterns
        self.names = names
        self.context: ssl.SSLContext | None = None
        self.made_of: Any = None


def _source(options: TlsOptions, bind_address: str) -> _Source:
    """The certificate for names without their own."""
    if (options.certificate_file is None) != (options.key_file is None):
        raise ServingError("certificate and key must be set together")
    if options.certificate_file is not None and options.key_file is not None:
        return _Files(options.certificate_file, options.key_file)
    try:
        made = load_or_make(None, () if bind_address in _EVERYWHERE else (bind_address,))
        if options.directory is None:
            return _Made(made)
        return _kept(made, options.directory)
    except CertificateError as error:
        raise ServingError(str(error)) from None


def _kept(made: ServerCertificate, directory: Path) -> _Source:
    """The certificate in a directory; the generated one is stored there if there is none."""
    certificate_file, key_file = directory / f"{_PAIR_NAME}.crt", directory / f"{_PAIR_NAME}.key"
    present = [file for file in (certificate_file, key_file) if file.exists()]
    if len(present) == 1:
        raise ServingError(f"{present[0]} exists without its counterpart")
    if not present:
        try:
            directory.mkdir(parents=True, exist_ok=True)
            key_file.touch(mode=0o600)
            key_file.write_text(made.key_pem)
            certificate_file.write_text(made.certificate_pem + made.ca_pem)
        except OSError as error:
            raise ServingError(f"{directory}: cannot be written: {error.strerror}") from None
        log.infof(0, f"Generated self-signed cert ({certificate_file}, {key_file})")
    return _Files(certificate_file, key_file)


class _Limits:
    """Accepted versions, ciphers and curves; ServingError for unknown names."""

    def __init__(self, options: TlsOptions) -> None:
        version = options.min_version or DEFAULT_VERSION
        if version not in VERSIONS:
            raise ServingError(f'unknown tls version "{version}"')
        self._min_version = VERSIONS[version]
        try:
            self._ciphers = openssl_ciphers(options.cipher_suites)
        except ValueError as error:
            raise ServingError(str(error)) from None
        for curve in options.curves:
            if curve not in CURVES:
                raise ServingError(f"unsupported curve preference: {curve}")
        if len(options.curves) > 1:
            log.warning("--tls-curve-preferences has no effect: one curve can be chosen, or all")
        self._curve = CURVES[options.curves[0]] if len(options.curves) == 1 else ""

    def imposed(self, context: ssl.SSLContext) -> ssl.SSLContext:
        """The same context, with these limits."""
        context.minimum_version = self._min_version
        try:
            if self._ciphers:
                context.set_ciphers(self._ciphers)
            if self._curve:
                context.set_ecdh_curve(self._curve)
        except (ssl.SSLError, ValueError) as error:
            raise ServingError(f"OpenSSL has none of these ciphers or curves: {error}") from None
        return context
