"""The scheduler's own HTTPS server: probes, metrics, configuration, debugging.

`Endpoints` is a transport like any other: authentication, authorization, then the path's handler.
    `SecureServer` serves it on a socket, and passes on each client's certificate.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final
from urllib.parse import unquote

from moorage.api.pod import Pod
from moorage.config.types import SchedulerConfiguration
from moorage.emulation.kubernetes_version import KubernetesVersion
from moorage.http.server import HttpServer, listen
from moorage.http.server_connection import HttpConnection
from moorage.http.server_connections import Connections
from moorage.http.transport import Request, Response, Transport
from moorage.klog import Logger, quoted, set_verbosity
from moorage.services import responses
from moorage.services.access_reviews import ReviewFailed
from moorage.services.configz import configz
from moorage.services.delegation import Authentication, Authorization
from moorage.services.metrics import CONTENT_TYPE, Metrics
from moorage.services.pod_resources import pod_resources_text
from moorage.services.ports import SECURE_PORT
from moorage.services.private_reads import PrivateReads
from moorage.services.requesting_user import Unauthenticated, User
from moorage.services.responses import Handler
from moorage.services.server_tls import ServerTls, TlsOptions

log = Logger(__name__)

_MAX_VERBOSITY_LENGTH: Final = 9
_OTHER_FILES: Final = 192
"""Number of open files of a scheduler besides the connections to its port: watches, requests, reviews."""
_HTML: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class Endpoints:
    """Handles authorized requests. A route that ends with a slash is for all paths below it."""

    def __init__(
        self,
        routes: Mapping[str, Handler],
        authentication: Authentication,
        authorization: Authorization,
        private_reads: PrivateReads | None = None,
    ) -> None:
        self._routes = routes
        self._prefixes = sorted((path for path in routes if path.endswith("/")), key=len, reverse=True)
        self._authentication = authentication
        self._authorization = authorization
        self._private_reads = private_reads or PrivateReads()

    async def handle(self, request: Request) -> Response:
        """The response to a client without a certificate; failures are responses as well."""
        return await self.answer_client(request, b"")

    async def answer_client(self, request: Request, certificate: bytes) -> Response:
        """The response to a client with a certificate (in DER) that TLS has verified; empty: without one."""
        response = await self._answered(request, certificate)
        response.headers.setdefault("Cache-Control", "no-cache, private")
        return response

    async def _answered(self, request: Request, certificate: bytes) -> Response:
        path = unquote(request.path)
        if self._private_reads.is_owner(request.headers):
            if not self._private_reads.allows(request.method, path):
                return responses.refusal(HTTPStatus.FORBIDDEN, "Forbidden", "the page may not do this")
        else:
            refused = await self._delegated_refusal(request, certificate, path)
            if refused is not None:
                return refused
        handler = self._handler(path)
        if handler is None:
            return responses.error(HTTPStatus.NOT_FOUND, "404 page not found")
        return await handler(request)

    async def _delegated_refusal(self, request: Request, certificate: bytes, path: str) -> Response | None:
        try:
            user = await self._authentication.user(request, certificate)
        except (Unauthenticated, ReviewFailed) as error:
            log.error(error, "Unable to authenticate the request", path=path)
            return responses.refusal(HTTPStatus.UNAUTHORIZED, "Unauthorized", "Unauthorized")
        return await self._refusal(user, request.method.lower(), path)

    async def _refusal(self, user: User, verb: str, path: str) -> Response | None:
        try:
            decision = await self._authorization.decide(user, verb, path)
        except ReviewFailed as error:
            message = f'Internal Server Error: "{path}": {error}'.translate(_HTML)
            return responses.error(HTTPStatus.INTERNAL_SERVER_ERROR, message)
        if decision.is_allowed:
            return None
        message = f'User "{user.name}" cannot {verb} path "{path}"'.translate(_HTML)
        if decision.reason:
            message += f": {decision.reason}"
        return responses.refusal(HTTPStatus.FORBIDDEN, "Forbidden", f"forbidden: {message}", has_details=True)

    def _handler(self, path: str) -> Handler | None:
        if path in self._routes:
            return self._routes[path]
        prefix = next((one for one in self._prefixes if path.startswith(one)), None)
        return self._routes[prefix] if prefix is not None else None


def metric_routes(
    metrics: Metrics, pods: Callable[[], Iterable[Pod]], is_leading: Callable[[], bool]
) -> dict[str, Handler]:
    """`/metrics`, `/metrics/slis`, and `/metrics/resources`, which is empty unless this process leads."""

    async def all_metrics(request: Request) -> Response:
        return _shown(request, metrics.text, metrics.reset)

    async def health(request: Request) -> Response:
        return _shown(request, metrics.health_text, metrics.reset_health)

    async def resources(request: Request) -> Response:
        return responses.text(pod_resources_text(pods()) if is_leading() else b"", CONTENT_TYPE)

    return {"/metrics": all_metrics, "/metrics/slis": health, "/metrics/resources": resources}


def _shown(request: Request, show: Callable[[], bytes], reset: Callable[[], None]) -> Response:
    if request.method == "DELETE":
        reset()
        return responses.text("metrics reset\n")
    return responses.text(show(), CONTENT_TYPE)


def verbosity_routes() -> dict[str, Handler]:
    """`/debug/flags/v`: sets the log verbosity at run time."""

    async def put(request: Request) -> Response:
        if request.method != "PUT":
            return responses.text("unsupported http method", status=HTTPStatus.NOT_ACCEPTABLE)
        text = request.body.decode(errors="replace")
        if not (text.isascii() and text.isdecimal()):
            problem = f"strconv.ParseUint: parsing {quoted(text)}: invalid syntax"
            return responses.text(problem, status=HTTPStatus.BAD_REQUEST)
        if len(text) > _MAX_VERBOSITY_LENGTH:
            problem = f"strconv.ParseUint: parsing {quoted(text)}: value out of range"
            return responses.text(problem, status=HTTPStatus.BAD_REQUEST)
        set_verbosity(int(text))
        return responses.text(f"successfully set klog.logging.verbosity to {text}")

    return {"/debug/flags/v": put}


def config_routes(
    config: Callable[[], SchedulerConfiguration], version: KubernetesVersion
) -> dict[str, Handler]:
    """`/configz`: the configuration in force."""

    async def show(request: Request) -> Response:
        return responses.document(configz(config(), version))

    return {"/configz": show}


@dataclass(frozen=True, slots=True)
class ServingOptions:
    """The address to listen on, and TLS."""

    bind_address: str = "127.0.0.1"
    port: int = SECURE_PORT
    """0: any free port."""
    shares_port: bool = False
    """Whether other processes may listen on the same port."""
    tls: TlsOptions = field(default_factory=TlsOptions)


class _ClientConnection(HttpConnection):
    """A connection whose requests carry the client's certificate."""

    def __init__(self, transport: Transport, connections: Connections) -> None:
        super().__init__(transport, connections)
        assert isinstance(transport, Endpoints)
        self._endpoints = transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is established, including TLS."""
        super().connection_made(transport)
        secured: ssl.SSLObject = transport.get_extra_info("ssl_object")
        certificate = secured.getpeercert(binary_form=True)
        if certificate:
            self._server = _OfClient(self._endpoints, certificate)


class _OfClient:
    """Endpoints for one client."""

    def __init__(self, endpoints: Endpoints, certificate: bytes) -> None:
        self._endpoints = endpoints
        self._certificate = certificate

    async def handle(self, request: Request) -> Response:
        return await self._endpoints.answer_client(request, self._certificate)


class SecureServer:
    """Serves endpoints over HTTPS until stopped; ServingError if that is impossible."""

    def __init__(self, endpoints: Endpoints, options: ServingOptions) -> None:
        self.tls = ServerTls(options.tls, options.bind_address)
        self._server = HttpServer(endpoints, self.tls.context, _ClientConnection, other_files=_OTHER_FILES)
        self._listener = listen(options.bind_address, options.port, shares_port=options.shares_port)
        self.port: int = self._listener.getsockname()[1]
        """The port it listens on."""

    async def serve(self) -> None:
        """Answer requests until `stop`."""
        await self._server.serve(self._listener)

    async def listens(self) -> None:
        """Returns when requests are handled."""
        await self._server.listens()

    def stop(self) -> None:
        """Complete running requests, then close."""
        self._server.stop()
