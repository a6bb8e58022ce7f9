"""`moorage apiserver`: a Kubernetes API server alone, for trying things with kubectl or a client library."""

from __future__ import annotations

import asyncio
import ipaddress
from pathlib import Path

import typer
import uvloop

from moorage.api.decode import InputError
from moorage.cli.garbage_collection import long_running
from moorage.cli.version_options import emulated
from moorage.config.duration import Duration
from moorage.http.certificates import CertificateError
from moorage.http.server import HttpServer, ServingError, listen
from moorage.services.termination import on_termination
from moorage_cluster.apiserver.auth.modes import Authorization
from moorage_cluster.apiserver.embedded import EmbeddedServer, Settings
from moorage_cluster.apiserver.journal import JournalError
from moorage_cluster.cli.local_server import advertise, server_url, write_admin_kubeconfig


def serve(
    *,
    port: int,
    address: str,
    data_dir: Path | None,
    kubeconfig: Path,
    authorization: Authorization,
    watch_history: int,
    max_connections: int,
    event_ttl: Duration,
    emulated_version: str | None,
    feature_gates: list[str] | None,
) -> None:
    """Serve the API until a signal; exits with status 1 if the server cannot be started."""
    long_running("apiserver")
    names = () if _is_wildcard(address) else (address,)
    try:
        version = emulated(emulated_version, feature_gates)
        settings = Settings(
            data_dir, authorization, names, watch_history, event_ttl_seconds=event_ttl, version=version
        )
        uvloop.run(_run(settings, address, port, kubeconfig, max_connections))
    except (InputError, JournalError, ServingError, CertificateError) as error:
        typer.echo(f"moorage apiserver: {error}", err=True)
        raise typer.Exit(1) from None


def _is_wildcard(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_unspecified
    except ValueError:
        return False


async def _run(settings: Settings, address: str, port: int, kubeconfig: Path, max_connections: int) -> None:
    with listen(address, port) as listener:
        embedded = EmbeddedServer(settings)
        try:
            url = server_url(address, listener.getsockname()[1])
            write_admin_kubeconfig(kubeconfig, url, embedded)
            advertise(embedded, listener)
            context = embedded.certificate.ssl_context()
            server = HttpServer(embedded.api, context, max_connections=max_connections)
            on_termination(server.stop)
            serving = asyncio.ensure_future(server.serve(listener))
            await server.listens()
            embedded.start()
            typer.echo(f"Kubernetes v{settings.version.number} API at {url}. In another terminal:")
            typer.echo(f"  export KUBECONFIG={kubeconfig.absolute()}")
            typer.echo("  kubectl get namespaces")
            await serving
        finally:
            embedded.close()
