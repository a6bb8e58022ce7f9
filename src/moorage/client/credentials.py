"""Credentials and the server's address: from a kubeconfig, from inside a pod, or by an address alone.

Credentials are not sent to a server whose address is `http://`, as in client-go: they could be read on the
network.
"""

from __future__ import annotations

import os
import ssl
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

from moorage.client.authenticated import Credentials
from moorage.client.exec_credentials import ExecCredentials, ProviderCredentials
from moorage.client.kubeconfig import Entry, KubeconfigContext, choose, kubeconfig_paths
from moorage.client.token_credentials import FixedCredentials, TokenFile, bearer
from moorage.clock import Clock, LoopClock
from moorage.http.client_tls import client_context, use_certificate
from moorage.http.client_transport import Endpoint
from moorage.http.errors import KubeconfigError
from moorage.klog import Logger

SERVICE_ACCOUNT_MOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
SERVICE_ACCOUNT_DIR: Final = "MOORAGE_SERVICE_ACCOUNT_DIR"
"""Environment variable with the directory of an account's token and CA, if it is not the well-known one."""
_SECRETS: Final = ("exec", "auth-provider", "tokenFile", "token", "username")
"""Fields of a kubeconfig's user with credentials other than certificates."""

log = Logger(__name__)


@dataclass(frozen=True, slots=True)
class Access:
    """A server and the credentials for it."""

    endpoint: Endpoint
    credentials: Credentials
    impersonated: Sequence[tuple[str, str]] = ()
    """Headers for impersonation."""


def find_access(
    kubeconfig: Path | None = None,
    master: str = "",
    *,
    context: str = "",
    clock: Clock | None = None,
    environ: Mapping[str, str] = os.environ,
    mount: Path | None = None,
    credentials_over_http: bool = False,
) -> Access:
    """What the arguments name; else the pod's service account; else what kubectl uses. KubeconfigError if
    none.

    `master` overrides the server's address, and is enough for servers that need no credentials.
    """
    clock = clock or LoopClock()
    if kubeconfig is not None:
        return from_kubeconfig(
            [kubeconfig], context, master, clock=clock, credentials_over_http=credentials_over_http
        )
    if master:
        return Access(_endpoint({"server": master}), FixedCredentials({}))
    if environ.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster(mount, environ, clock=clock)
    return from_kubeconfig(
        kubeconfig_paths(environ), context, clock=clock, credentials_over_http=credentials_over_http
    )


def in_cluster(
    mount: Path | None = None,
    environ: Mapping[str, str] = os.environ,
    *,
    clock: Clock | None = None,
) -> Access:
    """The cluster in which this process runs as a pod, with the pod's service account.

    mount: directory of the account's files; default: from the environment, or the well-known path.
    """
    mount = mount or Path(environ.get(SERVICE_ACCOUNT_DIR) or SERVICE_ACCOUNT_MOUNT)
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise KubeconfigError("not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
    url = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    endpoint = Endpoint(url, client_context(_file(mount / "ca.crt")))
    return Access(endpoint, TokenFile(mount / "token", clock or LoopClock()))


def from_kubeconfig(
    paths: Sequence[Path],
    context: str = "",
    master: str = "",
    *,
    clock: Clock | None = None,
    credentials_over_http: bool = False,
) -> Access:
    """The server and credentials of a context of kubeconfig files.

    credentials_over_http: whether to send tokens and passwords to a server whose address is `http://`.
    """
    choice = choose(paths, context)
    cluster = {**choice.cluster, "server": master} if master else choice.cluster
    return _access(choice, cluster, clock or LoopClock(), credentials_over_http=credentials_over_http)


def _access(
    choice: KubeconfigContext, cluster: Entry, clock: Clock, *, credentials_over_http: bool
) -> Access:
    """A server with the credentials of a context's user."""
    endpoint = _endpoint(cluster)
    _show_certificate(endpoint.tls, choice.user)
    if endpoint.tls is not None or credentials_over_http:
        credentials = _credentials(endpoint, choice, clock)
    else:
        credentials = FixedCredentials({})
        if any(choice.user.get(key) for key in _SECRETS):
            _warn_of_plain_http(endpoint.url)
    return Access(endpoint, credentials, _impersonated(choice.user))


@lru_cache(maxsize=64)  # one for the process: a kubeconfig is read again at every reload
def _warn_of_plain_http(url: str) -> None:
    """Warn once for each server that requests to it are anonymous."""
    log.warning("Credentials are not sent to a server without TLS", server=url)


def component_access(
    server: str,
    kubeconfig: Path | None,
    authority: Path | None = None,
    *,
    context: str = "",
    skips_verification: bool = False,
    token: str = "",
) -> Access:
    """Another component of the cluster, such as a scheduler's port, with the credentials for its API server.

    authority: a file with the CA of the component's certificate; without it, the system's CAs.
    token: a token for the component itself, instead of those credentials.
    """
    cluster: dict[str, object] = {"server": server, "insecure-skip-tls-verify": skips_verification}
    if authority is not None:
        cluster["certificate-authority"] = str(authority)
    if token:
        return Access(_endpoint(cluster), FixedCredentials(bearer(token)))
    paths = kubeconfig_paths(os.environ) if kubeconfig is None else [kubeconfig]
    return _access(choose(paths, context), cluster, LoopClock(), credentials_over_http=False)


def _endpoint(cluster: Entry) -> Endpoint:
    url = str(cluster.get("server") or "")
    if "://" not in url:
        url = f"http://{url}"
    try:
        parts = urlsplit(url)
        is_known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_known = False
    if not is_known:
        raise KubeconfigError(f"{cluster.get('server') or ''!r} is not the address of a server")
    proxy = str(cluster.get("proxy-url") or "")
    if proxy and urlsplit(proxy).scheme != "http":
        raise KubeconfigError(f"proxy-url {proxy!r}: only http:// proxies can be used")
    endpoint = Endpoint(url, None, str(cluster.get("tls-server-name") or ""), proxy)
    if parts.scheme == "http":
        return endpoint
    insecure = bool(cluster.get("insecure-skip-tls-verify"))
    ca_pem = _content(cluster, "certificate-authority")
    return replace(endpoint, tls=client_context(ca_pem, skip_verification=insecure))


def _show_certificate(tls: ssl.SSLContext | None, user: Entry) -> None:
    certificate, key = _content(user, "client-certificate"), _content(user, "client-key")
    if (certificate is None) != (key is None):
        raise KubeconfigError("client-certificate and client-key must be set together")
    if tls is not None and certificate is not None and key is not None:
        use_certificate(tls, certificate, key)


def _credentials(endpoint: Endpoint, choice: KubeconfigContext, clock: Clock) -> Credentials:
    user = choice.user
    if isinstance(user.get("exec"), dict):
        return ExecCredentials(user["exec"], endpoint.tls, clock)
    if isinstance(user.get("auth-provider"), dict):
        return ProviderCredentials(endpoint.url, user["auth-provider"], clock)
    if user.get("tokenFile"):
        return TokenFile(Path(user["tokenFile"]), clock)
    if user.get("token"):
        return FixedCredentials(bearer(str(user["token"])))
    if user.get("username"):
        basic = f"{user['username']}:{user.get('password') or ''}".encode()
        return FixedCredentials({"authorization": f"Basic {b64encode(basic).decode()}"})
    return FixedCredentials({})


def _impersonated(user: Entry) -> list[tuple[str, str]]:
    pairs = []
    if user.get("as"):
        pairs.append(("impersonate-user", str(user["as"])))
    if user.get("as-uid"):
        pairs.append(("impersonate-uid", str(user["as-uid"])))
    pairs += [("impersonate-group", str(group)) for group in user.get("as-groups") or ()]
    for key, values in (user.get("as-user-extra") or {}).items():
        name = f"impersonate-extra-{quote(str(key).lower(), safe='')}"
        pairs += [(name, str(value)) for value in values]
    return pairs


def _content(entry: Entry, key: str) -> bytes | None:
    """The content of a `-data` field, or else of the file that the field without `-data` names."""
    data = entry.get(f"{key}-data")
    if data:
        try:
            return b64decode(str(data), validate=True)
        except (Base64Error, ValueError):
            raise KubeconfigError(f"{key}-data is not base64") from None
    return _file(Path(entry[key])) if entry.get(key) else None


def _file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise KubeconfigError(f"cannot read {path}: {reason}") from None
