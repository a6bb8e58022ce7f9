"""`moorage extender`: a plugin as an extender, for clusters that keep kube-scheduler."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from random import Random
from typing import Any, Final

import typer
import uvloop

from moorage.api.decode import InputError
from moorage.api.files import load_documents, read_text
from moorage.cli.garbage_collection import long_running
from moorage.cli.plugin_loading import with_plugins
from moorage.client.connect import connected
from moorage.client.credentials import find_access
from moorage.clock import LoopClock
from moorage.config.load import dump_yaml, parse_config
from moorage.config.types import API_VERSION, KIND, SchedulerConfiguration
from moorage.framework.loading.plugin_discovery import DiscoveredPlugins, plugins_in_files
from moorage.framework.loading.registry import RegistryError
from moorage.framework.runtime.framework import Framework
from moorage.http.errors import KubeconfigError
from moorage.http.server import HttpServer, ServingError, listen
from moorage.http.server_connection import HttpConnection
from moorage.http.server_connections import Connections
from moorage.http.transport import Request, Response, Transport
from moorage.scheduler.extender_cluster import ExtenderCluster
from moorage.scheduler.extender_server import ExtenderServer, Guarded
from moorage.services.server_tls import ServerTls, TlsOptions, certificate_names
from moorage.services.termination import on_termination

_WRONG: Final = 1
"""Exit status: anything given for it is wrong."""
_MAX_BODY_BYTES: Final = 512 * 1024 * 1024
"""Maximum size of a request's body, in bytes; it may contain all nodes of a large cluster."""
_EVERYTHING: Final = "*"


@dataclass(frozen=True, slots=True)
class _Options:
    plugin: str
    found: DiscoveredPlugins
    kubeconfig: Path | None
    address: str
    port: int
    tls: TlsOptions | None
    client_authority: Path | None


def serve(
    plugin: str,
    plugin_files: list[Path] | None,
    args: Path | None,
    *,
    kubeconfig: Path | None,
    port: int,
    address: str,
    tls_cert_file: Path | None,
    tls_private_key_file: Path | None,
    client_ca_file: Path | None,
) -> None:
    """Serve a plugin until a signal; exits with status 1 if anything given for it is wrong."""
    long_running("extender")
    try:
        _check_address(address, client_ca_file)
        tls = _tls_options(tls_cert_file, tls_private_key_file, client_ca_file)
        name, found = _found(plugin, plugin_files or [], args)
        uvloop.run(_serve(_Options(name, found, kubeconfig, address, port, tls, client_ca_file)))
    except (InputError, RegistryError, ServingError, KubeconfigError) as error:
        typer.echo(f"moorage extender: {'; '.join(str(error).splitlines())}", err=True)
        raise typer.Exit(_WRONG) from None


def _check_address(address: str, authority: Path | None) -> None:
    """InputError for an address that other hosts can reach, unless client certificates are required."""
    try:
        is_loopback = ipaddress.ip_address(address).is_loopback
    except ValueError:
        is_loopback = address == "localhost"
    if not is_loopback and authority is None:
        raise InputError("--address", f"{address} lets other hosts in, which needs --client-ca-file")


def _tls_options(certificate: Path | None, key: Path | None, authority: Path | None) -> TlsOptions | None:
    if certificate is None and key is None:
        if authority is not None:
            raise InputError("--client-ca-file", "needs --tls-cert-file and --tls-private-key-file")
        return None
    return TlsOptions(certificate, key)


def _found(plugin: str, files: list[Path], args_file: Path | None) -> tuple[str, DiscoveredPlugins]:
    """The plugin's name, and a configuration in which it is the only one that filters and scores nodes."""
    if not plugin:
        classes = [*plugins_in_files(files)]
        if len(classes) != 1:
            names = ", ".join(each.name for each in classes)
            raise InputError("", f"which plugin? {f'There are {names}.' if names else 'Name one.'}")
        plugin = classes[0].name
    found = with_plugins(_configuration(plugin, _args(args_file)), files)
    name = found.config.profiles[0].plugins.multi_point.enabled[0].name
    return name, found


def _configuration(plugin: str, args: Any) -> SchedulerConfiguration:
    # A profile requires a queue-sort plugin and a bind plugin.
    enabled = [{"name": each} for each in dict.fromkeys((plugin, "PrioritySort", "DefaultBinder"))]
    profile: dict[str, Any] = {
        "plugins": {"multiPoint": {"enabled": enabled, "disabled": [{"name": _EVERYTHING}]}}
    }
    if args is not None:
        profile["pluginConfig"] = [{"name": plugin, "args": args}]
    return parse_config({"apiVersion": API_VERSION, "kind": KIND, "profiles": [profile]}, "moorage extender")


def _args(file: Path | None) -> Any:
    if file is None:
        return None
    documents = load_documents(read_text(file), str(file))
    if len(documents) != 1:
        raise InputError(
            str(file), f"one document with the plugin's arguments is wanted, not {len(documents)}"
        )
    return documents[0]


async def _serve(options: _Options) -> None:
    with listen(options.address, options.port) as listener:
        tls = None if options.tls is None else ServerTls(options.tls, options.address)
        if tls is not None and options.client_authority is not None:
            tls.trust([read_text(options.client_authority)])
        async with _answering(options) as endpoint:
            context = None if tls is None else tls.context
            connection = _Connection if options.client_authority is None else _KnownClient
            server = HttpServer(Guarded(endpoint, _names(options)), context, connection)
            on_termination(server.stop)
            serving = asyncio.ensure_future(server.serve(listener))
            await server.listens()
            url = _url(options.address, listener.getsockname()[1], is_secure=tls is not None)
            typer.echo(_snippet(url, endpoint.verbs, options), nl=False)
            typer.echo(f"{options.plugin} answers at {url}", err=True)
            await serving


class _Connection(HttpConnection):
    """A connection that accepts large requests."""

    def __init__(self, transport: Transport, connections: Connections) -> None:
        super().__init__(transport, connections, _MAX_BODY_BYTES)


class _KnownClient(_Connection):
    """A connection that rejects every request, with the reason, if the client has no certificate."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is open, after the TLS handshake."""
        super().connection_made(transport)
        secured: ssl.SSLObject = transport.get_extra_info("ssl_object")
        if not secured.getpeercert(binary_form=True):
            self.answer_with(_Refusal())
            address, *_ = transport.get_extra_info("peername") or ("a client",)  # It may have disconnected.
            typer.echo(f"moorage extender: refused {address}: it showed no client certificate", err=True)


class _Refusal:
    """Handles requests of unauthenticated clients."""

    def answer(self, request: Request) -> Response:
        """An error that names what is missing."""
        return Response(
            HTTPStatus.UNAUTHORIZED,
            b"a client certificate is required (tlsConfig.certFile and keyFile of the extender)\n",
            "text/plain; charset=utf-8",
        )

    async def handle(self, request: Request) -> Response:
        """The same error for every request."""
        return self.answer(request)


@asynccontextmanager
async def _answering(options: _Options) -> AsyncIterator[ExtenderServer]:
    """The server, after its informers have synced if it has any."""
    profile, registry = options.found.config.profiles[0], options.found.registry
    if options.kubeconfig is None:
        yield ExtenderServer(Framework(profile, registry), options.plugin)
        return
    async with connected(find_access(options.kubeconfig), user_agent="moorage extender") as client:
        cluster = ExtenderCluster(client, LoopClock(), Random())
        framework = Framework(profile, registry, cluster.handle)
        is_known = asyncio.Event()
        following = asyncio.ensure_future(cluster.run_informers(framework, is_known))
        try:
            await is_known.wait()
            yield ExtenderServer(framework, options.plugin, cluster.cache, cluster.pod)
        finally:
            following.cancel()
            await asyncio.wait((following,))


def _names(options: _Options) -> Iterator[str]:
    """The host names that requests may use."""
    yield options.address
    if options.tls is not None and options.tls.certificate_file is not None:
        yield from certificate_names(options.tls.certificate_file)


def _url(address: str, port: int, *, is_secure: bool) -> str:
    try:
        numeric = ipaddress.ip_address(address)
        host = "127.0.0.1" if numeric.is_unspecified else address
    except ValueError:
        host = address
    scheme = "https" if is_secure else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _snippet(url: str, verbs: list[str], options: _Options) -> str:
    """The extender's entry for a KubeSchedulerConfiguration."""
    if options.kubeconfig is None:
        verbs = [verb for verb in verbs if verb != "preempt"]  # Without the cluster it always agrees.
    entry: dict[str, Any] = {"urlPrefix": url, **{f"{verb}Verb": verb for verb in verbs}}
    if "prioritize" in verbs:
        entry["weight"] = 1
    if options.kubeconfig is not None:
        entry["nodeCacheCapable"] = True
    if options.tls is not None:
        entry |= {"enableHTTPS": True, "tlsConfig": {"caFile": str(options.tls.certificate_file)}}
        if options.client_authority is not None:
            entry["tlsConfig"] |= {"certFile": "CLIENT.crt", "keyFile": "CLIENT.key"}
    return dump_yaml({"extenders": [entry]})
