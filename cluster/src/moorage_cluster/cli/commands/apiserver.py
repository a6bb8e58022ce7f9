"""`moorage apiserver`: a Kubernetes API server alone, for trying things with kubectl or a client library."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from moorage.cli.version_options import EmulatedVersion, FeatureGateFlags
from moorage.http.limits import MAX_CONNECTIONS, MAX_READS, MAX_WRITES
from moorage_cluster.cli.server_options import (
    DEFAULT_EVENT_TTL,
    DEFAULT_KUBECONFIG,
    DEFAULT_PORT,
    AuthorizationMode,
    DataDirectory,
    EventTtl,
    KubeconfigFile,
    MaxReadsInFlight,
    MaxWritesInFlight,
)


def apiserver(
    port: Annotated[
        int, typer.Option(help="The port to listen on; 0: any free one.", min=0, max=65535)
    ] = DEFAULT_PORT,
    address: Annotated[
        str, typer.Option(help="The address to listen on; others than loopback let other hosts in.")
    ] = "127.0.0.1",
    data_dir: DataDirectory = None,
    sync: Annotated[
        bool,
        typer.Option(
            "--sync",
            help="With --data-dir: flush each write to disk before it is answered. Writes then survive a "
            "power failure, too, and are slower.",
        ),
    ] = False,
    kubeconfig: KubeconfigFile = DEFAULT_KUBECONFIG,
    authorization: AuthorizationMode = "AlwaysAllow",
    watch_history: Annotated[
        int, typer.Option(help="Number of past changes of each resource from which a watch can start.", min=1)
    ] = 20_000,
    max_connections: Annotated[
        int,
        typer.Option(
            help="The most connections at once; a watch takes one. Beyond it, idle ones are closed first.",
            min=1,
        ),
    ] = MAX_CONNECTIONS,
    max_requests_inflight: MaxReadsInFlight = MAX_READS,
    max_mutating_requests_inflight: MaxWritesInFlight = MAX_WRITES,
    event_ttl: EventTtl = DEFAULT_EVENT_TTL,
    audit_log_path: Annotated[
        Path | None,
        typer.Option(help="Add a line for each request to this file: who asked for what, when, the result."),
    ] = None,
    emulated_version: EmulatedVersion = None,
    feature_gates: FeatureGateFlags = None,
) -> None:
    """Run a Kubernetes API server that kubectl and client libraries accept."""
    from moorage_cluster.cli.apiserver import serve

    serve(
        port=port,
        address=address,
        data_dir=data_dir,
        sync=sync,
        kubeconfig=kubeconfig,
        authorization=authorization,
        watch_history=watch_history,
        max_connections=max_connections,
        max_requests_inflight=max_requests_inflight,
        max_mutating_requests_inflight=max_mutating_requests_inflight,
        event_ttl=event_ttl,
        audit_log_path=audit_log_path,
        emulated_version=emulated_version,
        feature_gates=feature_gates,
    )
