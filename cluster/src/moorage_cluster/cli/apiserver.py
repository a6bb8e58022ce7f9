"""`moorage apiserver`: a Kubernetes API server alone, for trying things with kubectl or a client library."""

from __future__ import annotations

import asyncio
import ipaddress
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Final

import typer
import uvloop

from moorage.api.decode import InputError
from moorage.cli.garbage_collection import long_running
from moorage.cli.version_options import emulated
from moorage.clock import LoopClock
from moorage.config.duration import Duration
from moorage.http.certificates import CertificateError
from moorage.http.in_flight import InFlightLimits
from moorage.http.server import HttpServer, ServingError, listen
from moorage.services.termination import on_termination
from moorage_cluster.apiserver.audit import AuditedServer, AuditLog
from moorage_cluster.apiserver.auth.modes import Authorization
from moorage_cluster.apiserver.embedded import EmbeddedServer, Settings
from moorage_cluster.apiserver.journal import JournalError
from moorage_cluster.apiserver.server import ApiServer
from moorage_cluster.cli.local_server import advertise, server_url, write_admin_kubeconfig

_WRONG: Final = 1
"""Exit status: anything given for it is wrong."""


def serve(
    *,
    port: int,
    address: str,
    data_dir: Path | None,
    sync: bool,
    kubeconfig: Path,
    authorization: Authorization,
    watch_history: int,
    max_connections: int,
    max_requests_inflight: int,
    max_mutating_requests_inflight: int,
    event_ttl: Duration,
    audit_log_path: Path | None,
    emulated_version: str | None,
    feature_gates: list[str] | None,
) -> None:
    """Serve the API until a signal; exits with status 1 if the server cannot be started."""
    long_running("apiserver")
    names = () if _is_wildcard(address) else (address,)
    try:
        if sync and data_dir is None:
            raise InputError("--sync", "there is nothing to flush without --data-dir")
        version = emulated(emulated_version, feature_gates)
        settings = Settings(
            data_dir,
            authorization,
            names,
            watch_history,
            event_ttl_seconds=event_ttl,
            version=version,
            is_synced=sync,
        )
        limits = max_requests_inflight, max_mutating_requests_inflight
        with nullcontext() if audit_log_path is None else closing(AuditLog(audit_log_path)) as audit_log:
            uvloop.run(_run(settings, address, port, kubeconfig, max_connections, limits, audit_log))
    except (InputError, JournalError, ServingError, CertificateError) as error:
        typer.echo(f"moorage apiserver: {error}", err=True)
        raise typer.Exit(_WRONG) from None


def _is_wildcard(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_unspecified
    except ValueError:
        return False


async def _run(
    settings: Settings,
    address: str,
    port: int,
    kubeconfig: Path,
    max_connections: int,
    limits: tuple[int, int],
    audit_log: AuditLog | None,
) -> None:
    with listen(address, port) as listener:
        embedded = EmbeddedServer(settings)
        try:
            url = server_url(address, listener.getsockname()[1])
            write_admin_kubeconfig(kubeconfig, url, embedded)
            advertise(embedded, listener)
            context = embedded.certificate.ssl_context()
            in_flight = InFlightLimits(*limits, embedded.is_of_control_plane)
            served = _served(embedded, audit_log)
            server = HttpServer(served, context, max_connections=max_connections, limits=in_flight)
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


def _served(embedded: EmbeddedServer, audit_log: AuditLog | None) -> ApiServer | AuditedServer:
    if audit_log is None:
        return embedded.api
    return AuditedServer(embedded.api, embedded.authenticator.authenticate, LoopClock().utc_now, audit_log)
