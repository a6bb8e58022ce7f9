"""`moorage up`: a cluster on a laptop, in one command."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
import uvloop

from moorage.api.decode import InputError
from moorage.api.files import load_documents, read_text
from moorage.api.quantity import parse_quantity
from moorage.apiserver.certificates import CertificateError
from moorage.apiserver.documents import KUBERNETES_VERSION
from moorage.apiserver.embedded import Settings
from moorage.apiserver.journal import JournalError
from moorage.apiserver.kubeconfig import write_kubeconfig
from moorage.apiserver.serving import HttpServer, ServingError, listen
from moorage.cli.apiserver import DEFAULT_KUBECONFIG, DEFAULT_PORT, server_url
from moorage.cli.process import long_running
from moorage.config.load import ConfigError, default_config, load_config
from moorage.config.types import SchedulerConfiguration
from moorage.framework.registry import RegistryError
from moorage.sim.dump import Brought
from moorage.sim.local import LocalCluster, LocalSettings
from moorage.sim.nodes.settings import NodeTemplate

_MOST_REFUSALS_SHOWN = 5


def up(
    nodes: Annotated[int, typer.Option(help="How many nodes there are.", min=0)] = 10,
    node_cpu: Annotated[str, typer.Option(help="The cores of each node.")] = "8",
    node_memory: Annotated[str, typer.Option(help="The memory of each node.")] = "32Gi",
    zones: Annotated[int, typer.Option(help="The zones that nodes are spread over.", min=1)] = 3,
    port: Annotated[
        int, typer.Option(help="The API server's port; 0: any free one.", min=0, max=65535)
    ] = DEFAULT_PORT,
    data_dir: Annotated[
        Path | None, typer.Option(help="Keep everything in this directory; without it, in memory only.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="A KubeSchedulerConfiguration; without it, the default one.")
    ] = None,
    from_: Annotated[
        Path | None,
        typer.Option("--from", help="Begin with the objects of a dump: what `kubectl get -o yaml` printed."),
    ] = None,
    apply: Annotated[
        list[Path] | None,
        typer.Option(help="Create the objects of this file when all is up; may be repeated."),
    ] = None,
    scheduler: Annotated[
        bool, typer.Option("--scheduler/--no-scheduler", help="Leave the scheduling to another process.")
    ] = True,
    kubeconfig: Annotated[
        Path, typer.Option(help="Where to write the kubeconfig, with the token that lets you in.")
    ] = DEFAULT_KUBECONFIG,
) -> None:
    """Run a cluster: API server, controllers, simulated nodes and the scheduler, for kubectl to drive."""
    long_running("up")
    try:
        dump = _documents([from_] if from_ else [])
        workloads = _documents(apply or [])
        settings = LocalSettings(
            _number_of_nodes(nodes, dump),
            NodeTemplate(
                cpu=_quantity(node_cpu, "--node-cpu"),
                memory=_quantity(node_memory, "--node-memory"),
                zones=zones,
            ),
            server=Settings(data_dir),
            config=_configuration(config),
            schedules=scheduler,
        )
        uvloop.run(_run(settings, port, kubeconfig, dump, workloads))
    except (ConfigError, InputError, RegistryError, JournalError, ServingError, CertificateError) as error:
        typer.echo(f"moorage up: {error}", err=True)
        raise typer.Exit(1) from None


def _documents(paths: Iterable[Path]) -> list[Any]:
    return [document for path in paths for document in load_documents(read_text(path), str(path))]


def _configuration(path: Path | None) -> SchedulerConfiguration:
    return default_config() if path is None else load_config(path)


def _number_of_nodes(wanted: int, dump: list[Any]) -> int:
    """A dump brings its own nodes."""
    return 0 if dump else wanted


def _quantity(text: str, option: str) -> str:
    try:
        amount = parse_quantity(text)
    except ValueError as error:
        raise InputError(option, str(error)) from None
    if amount <= 0:
        raise InputError(option, f"{text!r} is not more than nothing")
    return text


async def _run(
    settings: LocalSettings, port: int, kubeconfig: Path, dump: list[Any], workloads: list[Any]
) -> None:
    address = "127.0.0.1"
    with listen(address, port) as listener:
        cluster = LocalCluster(settings)
        try:
            url = server_url(address, listener.getsockname()[1])
            write_kubeconfig(kubeconfig, url, cluster.server.token, cluster.server.certificate.ca_pem)
            server = HttpServer(cluster.server.api, cluster.server.certificate.ssl_context())
            loop = asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, server.stop)
            serving = asyncio.ensure_future(server.serve(listener))
            running = asyncio.ensure_future(cluster.run())
            await server.listens()
            brought = await cluster.prepare(workloads, dump)
            _greet(url, kubeconfig, brought)
            await asyncio.wait((serving, running), return_when=asyncio.FIRST_COMPLETED)
            server.stop()
            running.cancel()
            await asyncio.gather(serving, running, return_exceptions=True)
        finally:
            cluster.close()
    if not running.cancelled() and running.exception() is not None:
        raise running.exception() or AssertionError


def _greet(url: str, kubeconfig: Path, brought: Brought) -> None:
    for kind in sorted(brought.unknown_kinds):
        typer.echo(f"moorage up: left out {kind}: not served here", err=True)
    for line in brought.refused[:_MOST_REFUSALS_SHOWN]:
        typer.echo(f"moorage up: left out: {line}", err=True)
    if len(brought.refused) > _MOST_REFUSALS_SHOWN:
        typer.echo(f"moorage up: left out {len(brought.refused) - _MOST_REFUSALS_SHOWN} more", err=True)
    typer.echo(f"A Kubernetes {KUBERNETES_VERSION} cluster is up at {url}. In another terminal:")
    typer.echo(f"  export KUBECONFIG={kubeconfig.absolute()}")
    typer.echo("  kubectl get nodes")
    typer.echo("  kubectl create deployment hello --image=registry.example/hello:1 --replicas=20")
    typer.echo("  kubectl get pods -o wide --watch")
    typer.echo("Ctrl-C ends it.")
