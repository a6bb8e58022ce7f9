"""Credentials of exec plugins and OpenID Connect, by `kubernetes_asyncio`.

That library is imported only here, and only when such credentials are used: it costs a second and 65 MB.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from moorage.client.kubeconfig import Entry
from moorage.client.token_credentials import bearer
from moorage.clock import Clock
from moorage.http.client_tls import use_certificate
from moorage.http.errors import KubeconfigError

_PROVIDER_CHECK_SECONDS: Final = 60.0
_EXITED: Final = re.compile(r"process returned (-?\d+)")
"""The error text of `kubernetes_asyncio` for a plugin that fails."""
_LEEWAY: Final = timedelta(seconds=10)


class ExecObserver:
    """Receives the calls of an exec plugin; does nothing itself."""

    def called(self, exit_code: int, status: str) -> None:
        """The plugin was run; `status` is the outcome's name in metrics."""

    def certificate(self, pem: str) -> None:
        """The plugin returned a certificate."""


class ExecCredentials:
    """The credentials of an exec plugin: a token or a client certificate, until it expires."""

    is_fixed = False

    def __init__(self, config: Entry, tls: ssl.SSLContext | None, clock: Clock) -> None:
        self._config = config
        self._tls = tls
        self._clock = clock
        self._certificate = ""
        self._expires_at: datetime | None = None
        self._has_run = False
        self.headers: Mapping[str, str] = {}
        self.observer = ExecObserver()
        """Receives each call."""

    @property
    def is_stale(self) -> bool:
        """Whether the plugin has to be run again."""
        return not self._has_run or (
            self._expires_at is not None and self._clock.utc_now() >= self._expires_at
        )

    async def renew(self) -> bool:
        """Run the plugin."""
        status = await self._run()
        token, certificate = status.get("token"), status.get("clientCertificateData")
        if not token and not certificate:
            raise KubeconfigError(f"exec plugin {self._name} gave neither a token nor a certificate")
        before = (self.headers, self._certificate)
        self.headers = bearer(str(token)) if token else {}
        if certificate:
            key = status.get("clientKeyData")
            if not key or self._tls is None:
                raise KubeconfigError(f"exec plugin {self._name} gave a certificate that cannot be used")
            self._certificate = str(certificate)
            use_certificate(self._tls, self._certificate.encode(), str(key).encode())
            self.observer.certificate(self._certificate)
        self._expires_at = self._expiry(status.get("expirationTimestamp"))
        self._has_run = True
        return (self.headers, self._certificate) != before

    @property
    def _name(self) -> str:
        return repr(str(self._config.get("command", "")))

    async def _run(self) -> Mapping[str, Any]:
        from kubernetes_asyncio.config.config_exception import ConfigException
        from kubernetes_asyncio.config.exec_provider import ExecProvider
        from kubernetes_asyncio.config.kube_config import ConfigNode

        try:
            status = await ExecProvider(ConfigNode("exec", self._config)).run()
        except (ConfigException, OSError, TypeError, KeyError, ValueError) as error:
            self.observer.called(*_outcome(error))
            hint = str(self._config.get("installHint") or "").strip()
            reason = " ".join(f"{error} {hint}".split()).removeprefix("exec: ")
            raise KubeconfigError(f"exec plugin {self._name} failed: {reason}") from None
        self.observer.called(0, "no_error")
        return status if isinstance(status, dict) else {}

    def _expiry(self, expiration: object) -> datetime | None:
        if not expiration:
            return None
        try:
            expires_at = datetime.fromisoformat(str(expiration))
        except ValueError:
            raise KubeconfigError(
                f"exec plugin {self._name} gave an unreadable expiry: {expiration}"
            ) from None
        return (expires_at if expires_at.tzinfo else expires_at.replace(tzinfo=UTC)) - _LEEWAY


def _outcome(error: Exception) -> tuple[int, str]:
    """The exit code of an exec plugin that failed, and the outcome's name in metrics."""
    if isinstance(error, OSError):
        return 1, "plugin_not_found_error"
    exited = _EXITED.search(str(error))
    return (int(exited[1]), "plugin_execution_error") if exited else (1, "client_internal_error")


class ProviderCredentials:
    """The credentials of a kubeconfig's auth-provider (`oidc`, `gcp`), refreshed before they expire."""

    is_fixed = False

    def __init__(self, server_url: str, provider: Entry, clock: Clock) -> None:
        self._server_url = server_url
        self._provider = provider
        self._clock = clock
        self._checked_at: float | None = None
        self.headers: Mapping[str, str] = {}

    @property
    def is_stale(self) -> bool:
        """Whether the token has to be checked for expiry."""
        return self._checked_at is None or self._clock.now() - self._checked_at >= _PROVIDER_CHECK_SECONDS

    async def renew(self) -> bool:
        """Get a token, from the provider if necessary."""
        from kubernetes_asyncio.client import Configuration
        from kubernetes_asyncio.config.kube_config import KubeConfigLoader

        config = {
            "current-context": "it",
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "clusters": [{"name": "it", "cluster": {"server": self._server_url}}],
            "users": [{"name": "it", "user": {"auth-provider": self._provider}}],
        }
        configuration = Configuration()
        try:
            await KubeConfigLoader(config).load_and_set(configuration)
            token = str(configuration.api_key["BearerToken"]).removeprefix("Bearer ")
        # Providers raise many types; for the user there is one error: no credentials.
        except Exception as error:
            name = self._provider.get("name")
            reason = " ".join(str(error).split()) or type(error).__name__
            raise KubeconfigError(f"auth-provider {name!r} failed: {reason}") from None
        self._checked_at = self._clock.now()
        before, self.headers = self.headers, bearer(token)
        return self.headers != before
