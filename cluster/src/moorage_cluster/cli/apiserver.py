"""`moorage apiserver`: a Kubernetes API server alone, for trying things with kubectl or a client library."""

from __future__ import annotations

import asyncio
import ipaddress
from pathlib import Path
from typing import Annotated, Literal

import typer
import uvloop

from moorage.api.decode import InputError
from moorage.cli.process import long_running
from moorage.http.certificates import CertificateError
from moorage.http.serving import MAX_CONNECTIONS, HttpServer, ServingError, listen
from moorage.services.termination import on_termination
from moorage.version import KUBERNETES_VERSION
from moorage_cluster.apiserver.embedded import EmbeddedServer, Settings
from moorage_cluster.apiserver.journal import JournalError
from moorage_cluster.cli.local_server import (
    DEFAULT_EVENT_TTL,
    DEFAULT_KUBECONFIG,
    DEFAULT_PORT,
    EventTtl,
    advertise,
    let_in,
    server_url,
)


def apiserver(
    port: Annotated[
        int, typer.Option(help="The port to listen on; 0: any free one.", min=0, max=65535)
    ] = DEFAULT_PORT,
    address: Annotated[
        str, typer.Option(help="The address to listen on; others than loopback let other hosts in.")
    ] = "127.0.0.1",
    data_dir: Annotated[
        Path | None, typer.Option(help="Keep everything in this directory; without it, in memory only.")
    ] = None,
    kubeconfig: Annotated[
        Path, typer.Option(help="Where to write the kubeconfig, with the token that lets you in.")
    ] = DEFAULT_KUBECONFIG,
    authorization: Annotated[
        Literal["AlwaysAllow", "RBAC"],
        typer.Option(help="RBAC: Roles and their bindings decide; AlwaysAllow: who has a token may do all."),
    ] = "AlwaysAllow",
    watch_history: Annotated[
        int, typer.Option(help="So many changes of each resource can be watched from the past.", min=1)
    ] = 20_000,
    max_connections: Annotated[
        int,
        typer.Option(
            help="The most connections at once; a watch takes one. Beyond it, idle ones are closed first.",
            min=1,
        ),
    ] = MAX_CONNECTIONS,
    event_ttl: EventTtl = DEFAULT_EVENT_TTL,
) -> None:
    """Run a Kubernetes API server that kubectl and client libraries accept."""
    long_running("apiserver")
    names = () if _is_wildcard(address) else (address,)
    settings = Settings(data_dir, authorization, names, watch_history, event_ttl_seconds=event_ttl)
    try:
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
            let_in(kubeconfig, url, embedded)
            advertise(embedded, listener)
            context = embedded.certificate.ssl_context()
            server = HttpServer(embedded.api, context, max_connections=max_connections)
            on_termination(server.stop)
            serving = asyncio.ensure_future(server.serve(listener))
            await server.listens()
            embedded.start()
            typer.echo(f"Kubernetes v{KUBERNETES_VERSION} API at {url}. In another terminal:")
            typer.echo(f"  export KUBECONFIG={kubeconfig.absolute()}")
            typer.echo("  kubectl get namespaces")
            await serving
        finally:
            embedded.close()
