"""`moorage up`: a cluster on a laptop, in one command."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
import uvloop

from moorage.api.decode import InputError
from moorage.api.files import load_documents, read_text
from moorage.api.manifests import Manifest
from moorage.api.quantity import parse_quantity
from moorage.api.requests import CPU, EPHEMERAL_STORAGE, MEMORY
from moorage.cli.logs import LogFormat, LogOptions, write_logs
from moorage.cli.plugin_options import PluginFiles, with_plugins
from moorage.cli.process import long_running
from moorage.clock import LoopClock
from moorage.config.load import ConfigError, default_config, load_config
from moorage.config.types import SchedulerConfiguration
from moorage.framework.loading.plugin_discovery import DiscoveredPlugins
from moorage.framework.loading.plugin_files import files_read
from moorage.framework.loading.registry import RegistryError
from moorage.http.certificates import CertificateError
from moorage.http.serving import HttpServer, ServingError, listen
from moorage.services.termination import on_termination
from moorage.version import KUBERNETES_VERSION
from moorage_cluster.apiserver.embedded import Authorization, Settings
from moorage_cluster.apiserver.journal import JournalError
from moorage_cluster.cli.kubelet_options import (
    EvictionHard,
    EvictionMaxPodGracePeriod,
    EvictionMinimumReclaim,
    EvictionPressureTransitionPeriod,
    EvictionSoft,
    EvictionSoftGracePeriod,
    KubeletConfigFile,
    KubeReserved,
    MaxPods,
    SystemReserved,
    read_kubelets,
)
from moorage_cluster.cli.local_server import (
    DEFAULT_EVENT_TTL,
    DEFAULT_KUBECONFIG,
    DEFAULT_PORT,
    EventTtl,
    advertise,
    let_in,
    server_url,
)
from moorage_cluster.cli.watching import watch as watch_files
from moorage_cluster.dump import flattened
from moorage_cluster.local import LocalCluster, LocalSettings, Prepared
from moorage_cluster.manifest_files import FileObject
from moorage_cluster.nodes.kubelet_config import Kubelets
from moorage_cluster.nodes.nodeobject import new_node
from moorage_cluster.nodes.settings import NodeTemplate
from moorage_cluster.nodes.thresholds import parse_thresholds

_MOST_REFUSALS_SHOWN = 5


def _verbosity(text: str) -> int:
    """A number, which may be written after `-v`, `-v=` or `--v=`, as for all of Kubernetes' commands."""
    number = text.removeprefix("=")
    if not number.isdecimal():
        raise typer.BadParameter(f"{number!r} is not a number")
    return int(number)


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
        typer.Option(
            help="Create the objects of this file when all is up, as `kubectl create -f` does; repeatable."
        ),
    ] = None,
    plugin: PluginFiles = None,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Go on with the new plugins whenever a file of --plugin, or a module beside it that it "
            "imports, is saved.",
        ),
    ] = False,
    scheduler: Annotated[
        bool, typer.Option("--scheduler/--no-scheduler", help="Leave the scheduling to another process.")
    ] = True,
    run_containers: Annotated[
        bool,
        typer.Option(
            "--run-containers",
            help="Run containers whose command is `moorage`, and those of pods with the annotation "
            "`moorage.io/run: true`, as processes of this machine: as you, without isolation. Everyone who "
            "may create pods can then run commands here.",
        ),
    ] = False,
    authorization: Annotated[
        Authorization,
        typer.Option(help="RBAC: Roles and their bindings decide; AlwaysAllow: who has a token may do all."),
    ] = "AlwaysAllow",
    event_ttl: EventTtl = DEFAULT_EVENT_TTL,
    v: Annotated[
        int | None,
        typer.Option(
            "--v",
            "-v",
            parser=_verbosity,
            metavar="N",
            help="Log to stderr what the scheduler does: 2 bindings, 3 attempts, 5 the queue, 10 scores.",
        ),
    ] = None,
    logging_format: Annotated[LogFormat, typer.Option(help="How to log, with -v: text or json.")] = "text",
    kubeconfig: Annotated[
        Path, typer.Option(help="Where to write the kubeconfig, with the token that lets you in.")
    ] = DEFAULT_KUBECONFIG,
    kubelet_config: KubeletConfigFile = None,
    eviction_hard: EvictionHard = None,
    eviction_soft: EvictionSoft = None,
    eviction_soft_grace_period: EvictionSoftGracePeriod = None,
    eviction_minimum_reclaim: EvictionMinimumReclaim = None,
    eviction_pressure_transition_period: EvictionPressureTransitionPeriod = None,
    eviction_max_pod_grace_period: EvictionMaxPodGracePeriod = None,
    kube_reserved: KubeReserved = None,
    system_reserved: SystemReserved = None,
    max_pods: MaxPods = None,
) -> None:
    """Run a cluster: API server, controllers, simulated nodes and the scheduler, for kubectl to drive."""
    try:
        _check_plugin_options(plugin, watch, scheduler)
        plugins = _Plugins(config, plugin or [], watch)
        found = plugins.read()
        dump = [each.manifest for each in _objects([from_] if from_ else [])]
        files = _objects(apply or [])
        flags: dict[str, str | int | None] = {
            "evictionHard": eviction_hard,
            "evictionSoft": eviction_soft,
            "evictionSoftGracePeriod": eviction_soft_grace_period,
            "evictionMinimumReclaim": eviction_minimum_reclaim,
            "evictionPressureTransitionPeriod": eviction_pressure_transition_period,
            "evictionMaxPodGracePeriod": eviction_max_pod_grace_period,
            "kubeReserved": kube_reserved,
            "systemReserved": system_reserved,
            "maxPods": max_pods,
        }
        kubelets = read_kubelets(kubelet_config, flags, _template(node_cpu, node_memory, zones))
        _check_allocatable(kubelets)
        settings = LocalSettings(
            _number_of_nodes(nodes, dump),
            kubelets.template,
            kubelets.settings,
            server=Settings(data_dir, authorization, event_ttl_seconds=event_ttl),
            config=found.config,
            registry=found.registry,
            schedules=scheduler,
        )
        for ignored in kubelets.ignored:
            typer.echo(f"moorage up: {kubelet_config}: {ignored} has no effect on simulated nodes", err=True)
        long_running("up")
        if v is not None:
            write_logs(LogOptions(v, logging_format))
        all_created = uvloop.run(_run(settings, port, kubeconfig, dump, files, plugins, run_containers))
    except (ConfigError, InputError, RegistryError, JournalError, ServingError, CertificateError) as error:
        typer.echo(f"moorage up: {error}", err=True)
        raise typer.Exit(1) from None
    if not all_created:
        raise typer.Exit(1)


def _check_plugin_options(files: list[Path] | None, watch: bool, schedules: bool) -> None:
    if watch and not files:
        raise InputError("--watch", "there is no file to watch; name one with --plugin FILE.py")
    if files and not schedules:
        raise InputError("--plugin", "plugins run in the scheduler; leave --no-scheduler out")


class _Plugins:
    """The configuration and the plugins of a cluster, which change as their files are saved."""

    def __init__(self, config: Path | None, files: list[Path], is_watched: bool) -> None:
        self._config = config
        self._files = files
        self._is_watched = is_watched

    def read(self) -> DiscoveredPlugins:
        """What the files say now."""
        return with_plugins(_configuration(self._config), self._files)

    async def follow(self, cluster: LocalCluster) -> None:
        """Let a cluster go on with what is saved; with what it has if that cannot be used."""
        if not self._is_watched:
            await asyncio.Event().wait()
        names = ", ".join(map(str, self._files))

        async def reload() -> None:
            try:
                await cluster.reconfigure(*self.read())
            except (InputError, RegistryError) as error:
                problem = "; ".join(str(error).splitlines())
                typer.echo(f"moorage up: the plugins stay as they were: {problem}", err=True)
            else:
                typer.echo(f"moorage up: {names} reloaded")

        typer.echo(f"Watching {names}: save it, and the next pods are placed by what it says then.")
        await watch_files(lambda: files_read(self._files), LoopClock(), reload)


def _objects(paths: Iterable[Path]) -> list[FileObject]:
    return [
        FileObject(obj, str(path))
        for path in paths
        for obj in flattened(load_documents(read_text(path), str(path)), str(path))
    ]


def _configuration(path: Path | None) -> SchedulerConfiguration:
    return default_config() if path is None else load_config(path)


def _number_of_nodes(wanted: int, dump: list[Manifest]) -> int:
    """A dump brings its own nodes."""
    return 0 if dump else wanted


def _template(cpu: str, memory: str, zones: int) -> NodeTemplate:
    return NodeTemplate(
        cpu=_quantity(cpu, "--node-cpu"), memory=_quantity(memory, "--node-memory"), zones=zones
    )


def _check_allocatable(kubelets: Kubelets) -> None:
    """InputError unless machines are of a size that leaves something for pods."""
    template = kubelets.template
    thresholds = parse_thresholds(kubelets.settings.eviction_hard)
    status = new_node(template, 0, "", "", thresholds, "")["status"]
    for resource, option in (
        (CPU, "--node-cpu"),
        (MEMORY, "--node-memory"),
        (EPHEMERAL_STORAGE, "--kubelet-config, --system-reserved, --kube-reserved, --eviction-hard"),
    ):
        if parse_quantity(status["allocatable"][resource]) <= 0:
            raise InputError(
                option,
                f"{status['capacity'][resource]!r} is no more than a node keeps for itself: nothing is left "
                "for pods",
            )


def _quantity(text: str, option: str) -> str:
    try:
        amount = parse_quantity(text)
    except ValueError as error:
        raise InputError(option, str(error)) from None
    if amount <= 0:
        raise InputError(option, f"{text!r} is not more than nothing")
    return text


async def _run(
    settings: LocalSettings,
    port: int,
    kubeconfig: Path,
    dump: list[Manifest],
    files: list[FileObject],
    plugins: _Plugins,
    run_containers: bool,
) -> bool:
    """Run until a signal; whether every object of the files could be created."""
    prepared: Prepared | None = None
    address = "127.0.0.1"
    with listen(address, port) as listener:
        if run_containers:
            settings = replace(settings, run_containers_with=listener.getsockname()[:2])
        cluster = LocalCluster(settings)
        try:
            url = server_url(address, listener.getsockname()[1])
            let_in(kubeconfig, url, cluster.server)
            advertise(cluster.server, listener)
            server = HttpServer(cluster.server.api, cluster.server.certificate.ssl_context())
            stopped = asyncio.Event()
            on_termination(stopped.set)
            stopping = asyncio.ensure_future(stopped.wait())
            serving = asyncio.ensure_future(server.serve(listener))
            running = asyncio.ensure_future(cluster.run())
            preparing = asyncio.ensure_future(_prepare(server, cluster, dump, files))
            others: list[asyncio.Future[Any]] = [stopping, running, preparing]
            await asyncio.wait((serving, *others), return_when=asyncio.FIRST_COMPLETED)
            if preparing.done() and preparing.exception() is None:
                prepared = preparing.result()
                _say_left_out(prepared)
                _greet(url, kubeconfig)
                following = asyncio.ensure_future(plugins.follow(cluster))
                others.append(following)
                await asyncio.wait(
                    (stopping, serving, running, following), return_when=asyncio.FIRST_COMPLETED
                )
            for task in others:
                task.cancel()
            # Containers that run end while the server still answers them.
            await asyncio.wait(others)
            server.stop()
            results = await asyncio.gather(serving, *others, return_exceptions=True)
        finally:
            cluster.close()
    for result in results:
        if isinstance(result, Exception):
            raise result
    return prepared is None or not prepared.refused


async def _prepare(
    server: HttpServer, cluster: LocalCluster, dump: list[Manifest], files: list[FileObject]
) -> Prepared:
    await server.listens()
    return await cluster.prepare(files, dump)


def _say_left_out(prepared: Prepared) -> None:
    dump = prepared.dump
    for kind in sorted(dump.unknown_kinds):
        typer.echo(f"moorage up: left out {kind}: not served here", err=True)
    for line in dump.refused[:_MOST_REFUSALS_SHOWN]:
        typer.echo(f"moorage up: left out: {line}", err=True)
    if len(dump.refused) > _MOST_REFUSALS_SHOWN:
        typer.echo(f"moorage up: left out {len(dump.refused) - _MOST_REFUSALS_SHOWN} more", err=True)
    for line in prepared.refused:
        typer.echo(f"moorage up: cannot create {line}", err=True)


def _greet(url: str, kubeconfig: Path) -> None:
    typer.echo(f"A Kubernetes v{KUBERNETES_VERSION} cluster is up at {url}. In another terminal:")
    typer.echo(f"  export KUBECONFIG={kubeconfig.absolute()}")
    typer.echo("  kubectl get nodes")
    typer.echo("  kubectl create deployment hello --image=registry.example/hello:1 --replicas=20")
    typer.echo("  kubectl get pods -o wide --watch")
    typer.echo("Ctrl-C ends it.")
