"""The users of client certificates: the certificate's subject, or the user in a trusted proxy's headers.

The trusted authorities come from files, or else from the cluster: the ConfigMap
`extension-apiserver-authentication`, which every API server writes. Both may change; they are read again
every minute. TLS has verified a certificate before there is a request; this module determines which of the
authorities signed it, and whether it is still valid.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID, ObjectIdentifier

from moorage.api.manifests import utc_now
from moorage.client.client import Client
from moorage.client.kinds import CONFIG_MAP
from moorage.client.waiting import sleep
from moorage.clock import Clock
from moorage.http.errors import ConnectionFailed, RequestError
from moorage.http.server import ServingError
from moorage.http.transport import Request
from moorage.klog import Logger
from moorage.services.metric_values import Distribution
from moorage.services.requesting_user import Unauthenticated, User

log = Logger(__name__)

NAMESPACE: Final = "kube-system"
NAME: Final = "extension-apiserver-authentication"
_REFRESH_SECONDS: Final = 60.0
_CREDENTIAL_ID: Final = "authentication.kubernetes.io/credential-id"
_UID: Final = ObjectIdentifier("1.3.6.1.4.1.57683.2")
_FAILURES: Final = (RequestError, ConnectionFailed, OSError, ValueError)
_strings = msgspec.json.Decoder(list[str]).decode


@dataclass(frozen=True, slots=True)
class HeaderNames:
    """The headers in which a proxy names the user, and the proxies that may; no names: all."""

    users: Sequence[str] = ("x-remote-user",)
    uids: Sequence[str] = ()
    groups: Sequence[str] = ("x-remote-group",)
    extra_prefixes: Sequence[str] = ("x-remote-extra-",)
    allowed: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class CertificateOptions:
    """Sources of the authorities."""

    client_ca_file: Path | None = None
    proxy_ca_file: Path | None = None
    headers: HeaderNames = HeaderNames()
    """Of the proxies that the file's authorities have signed."""
    skips_lookup: bool = False
    """Whether the cluster is not asked for authorities that no file names."""
    tolerates_failure: bool = True
    """Whether to continue if the cluster does not answer."""


class _Authorities:
    """Authorities of one kind of client."""

    def __init__(self, pem: str = "") -> None:
        self.pem = pem
        self.certificates = x509.load_pem_x509_certificates(pem.encode()) if pem.strip() else []

    def signed(self, certificate: x509.Certificate) -> bool:
        """Whether one of them signed a certificate."""
        return any(_is_issuer(authority, certificate) for authority in self.certificates)


def _is_issuer(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


class ClientCertificates:
    """Determines the users of certificates; `on_change` is called with the authorities for TLS."""

    def __init__(
        self,
        options: CertificateOptions,
        remaining_seconds: Distribution,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._options = options
        self._remaining_seconds = remaining_seconds
        self._now = now
        self._clients = _Authorities()
        self._proxies = _Authorities()
        self._headers = options.headers
        self.on_change: Callable[[list[str]], None] = lambda authorities: None
        try:
            self._read_files()
        except (OSError, ValueError) as error:
            raise ServingError(f"unable to load client CA file: {error}") from None

    @property
    def authorities(self) -> list[str]:
        """All authorities, in PEM."""
        return [each.pem for each in (self._clients, self._proxies) if each.pem]

    # -- authentication

    def user(self, certificate_der: bytes, request: Request) -> User | None:
        """The user of a request, by the certificate of its connection; None if it names no user.

        Unauthenticated if the certificate has expired, or if none of the authorities signed it directly.
        """
        certificate = x509.load_der_x509_certificate(certificate_der)
        remaining = certificate.not_valid_after_utc - self._now()
        self._remaining_seconds.observe(remaining.total_seconds())
        if remaining.total_seconds() <= 0:
            raise Unauthenticated("the client's certificate has expired")
        if self._proxies.signed(certificate) and self._is_trusted_proxy(certificate):
            user = _user_in_headers(request, self._headers)
            if user is not None:
                return user
        if self._clients.signed(certificate):
            return _owner(certificate)
        raise Unauthenticated(
            f"the certificate of {_name(certificate)!r} is not signed by a trusted authority"
        )

    def _is_trusted_proxy(self, proxy: x509.Certificate) -> bool:
        return not self._headers.allowed or _name(proxy) in self._headers.allowed

    # -- trusted authorities

    async def load_authorities(self, client: Client) -> None:
        """Read from the cluster what no file names; ServingError if that fails and is not tolerated."""
        if not self._loads_authorities:
            return
        try:
            await self._ask(client)
        except _FAILURES as error:
            reason = _error_text(error)
            if not self._options.tolerates_failure:
                raise ServingError(
                    f"unable to load configmap based request-header-client-ca-file: {reason}"
                ) from None
            log.warning(
                "Unable to load the client CAs of the cluster; client certificates are refused", err=reason
            )

    async def keep_updated(self, client: Client, clock: Clock) -> None:
        """Keep up with changes of the cluster and of files, until cancelled."""
        await self.load_authorities(client)
        while True:
            await sleep(clock, _REFRESH_SECONDS)
            try:
                self._read_files()
                if self._loads_authorities:
                    await self._ask(client)
            except _FAILURES as error:
                log.info(4, "Failed to reload client CAs", err=error)

    @property
    def _loads_authorities(self) -> bool:
        options = self._options
        is_complete = options.client_ca_file is not None and options.proxy_ca_file is not None
        return not options.skips_lookup and not is_complete

    def _read_files(self) -> None:
        client_file, proxy_file = self._options.client_ca_file, self._options.proxy_ca_file
        self._trust(
            None if client_file is None else client_file.read_text(),
            None if proxy_file is None else proxy_file.read_text(),
        )

    async def _ask(self, client: Client) -> None:
        found = await client.get(CONFIG_MAP, NAMESPACE, NAME)
        data: dict[str, Any] = found.get("data") or {}
        if self._options.proxy_ca_file is None and data.get("requestheader-client-ca-file"):
            self._headers = HeaderNames(
                **{
                    field: tuple(_strings(data.get(f"requestheader-{key}") or "[]"))
                    for field, key in (
                        ("users", "username-headers"),
                        ("uids", "uid-headers"),
                        ("groups", "group-headers"),
                        ("extra_prefixes", "extra-headers-prefix"),
                        ("allowed", "allowed-names"),
                    )
                }
            )
        self._trust(
            None if self._options.client_ca_file else data.get("client-ca-file") or "",
            None if self._options.proxy_ca_file else data.get("requestheader-client-ca-file") or "",
        )

    def _trust(self, clients: str | None, proxies: str | None) -> None:
        """Replace the trusted authorities; None: as before."""
        before = (self._clients.pem, self._proxies.pem)
        if clients is not None and clients != self._clients.pem:
            self._clients = _Authorities(clients)
        if proxies is not None and proxies != self._proxies.pem:
            self._proxies = _Authorities(proxies)
        if before != (self._clients.pem, self._proxies.pem):
            self.on_change(self.authorities)


def _error_text(error: Exception) -> str:
    """Why the authorities cannot be read from the cluster."""
    if isinstance(error, RequestError) and error.code == HTTPStatus.FORBIDDEN:
        role = f"{NAME}-reader in {NAMESPACE}"
        return f"the configmap {NAMESPACE}/{NAME} may not be read, for which there is the role {role}"
    return f"the configmap {NAMESPACE}/{NAME} cannot be read: {error}"


def _name(certificate: x509.Certificate) -> str:
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[0].value) if names else ""


def _owner(certificate: x509.Certificate) -> User | None:
    """The subject of a certificate: its common name is the user, its organisations are the groups."""
    name = _name(certificate)
    if not name:
        return None
    subject = certificate.subject
    groups = tuple(str(each.value) for each in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME))
    uids = [str(each.value) for each in subject.get_attributes_for_oid(_UID)]
    if len(uids) > 1 or uids == [""]:
        raise Unauthenticated(f"expected 1 UID, but found {uids}")
    encoded = certificate.public_bytes(Encoding.DER)
    credential = f"X509SHA256={hashlib.sha256(encoded).hexdigest()}"
    return User(name, groups, uids[0] if uids else "", {_CREDENTIAL_ID: [credential]})


def _user_in_headers(request: Request, names: HeaderNames) -> User | None:
    """The user that a proxy names; None if it names none."""
    headers = request.repeated or tuple(request.headers.items())

    def values(wanted: Sequence[str]) -> list[str]:
        return [value for name in wanted for key, value in headers if key == name.lower() and value]

    users = values(names.users)
    if not users:
        return None
    uids = values(names.uids)
    extra: dict[str, list[str]] = {}
    for prefix in names.extra_prefixes:
        for key, value in headers:
            if key.startswith(prefix.lower()):
                extra.setdefault(unquote(key[len(prefix) :]), []).append(value)
    return User(users[0], tuple(values(names.groups)), uids[0] if uids else "", extra)
