"""`moorage up`: a cluster on a laptop, in one command."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import typer
import uvloop

from moorage.api.decode import InputError
from moorage.api.files import load_documents, read_text
from moorage.api.manifests import Manifest
from moorage.api.quantity import parse_quantity
from moorage.api.resource_requests import CPU, EPHEMERAL_STORAGE, MEMORY
from moorage.cli.garbage_collection import long_running
from moorage.cli.logs import LoggingOptions, write_logs
from moorage.cli.page_process import PageProcess
from moorage.cli.plugin_loading import with_plugins
from moorage.cli.version_options import emulated
from moorage.clock import LoopClock
from moorage.config.duration import Duration
from moorage.config.load import ConfigError, default_config, load_config
from moorage.config.types import SchedulerConfiguration
from moorage.emulation.kubernetes_version import KubernetesVersion
from moorage.framework.loading.plugin_discovery import DiscoveredPlugins, enabled_everywhere
from moorage.framework.loading.plugin_files import files_read
from moorage.framework.loading.registry import RegistryError
from moorage.http.certificates import CertificateError
from moorage.http.in_flight import InFlightLimits
from moorage.http.server import HttpServer, ServingError, listen
from moorage.services.termination import on_termination
from moorage_cluster.addons import AddonName
from moorage_cluster.addons.addon import ADDONS, Addon
from moorage_cluster.apiserver.auth.modes import Authorization
from moorage_cluster.apiserver.embedded import Settings
from moorage_cluster.apiserver.journal import JournalError
from moorage_cluster.cli.cluster_page import ClusterPage
from moorage_cluster.cli.kubelets import read_kubelets
from moorage_cluster.cli.local_server import advertise, server_url, write_admin_kubeconfig
from moorage_cluster.cli.watching import watch as watch_files
from moorage_cluster.dump import flattened
from moorage_cluster.local import LocalCluster, LocalSettings, PreparedCluster
from moorage_cluster.manifest_files import FileObject
from moorage_cluster.nodes.kubelet_config import Kubelets
from moorage_cluster.nodes.nodeobject import new_node
from moorage_cluster.nodes.settings import NodeTemplate
from moorage_cluster.nodes.thresholds import parse_thresholds

_FAILED: Final = 1
"""Exit status: something that was asked for cannot be had."""
_MAX_REFUSALS_SHOWN: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    """What `moorage up` is asked for."""

    nodes: int
    node_cpu: str
    node_memory: str
    zones: int
    port: int
    data_dir: Path | None
    config: Path | None
    dumps: Sequence[Path]
    """Dumps of other clusters, with nodes of their own."""
    files: Sequence[Path]
    """Files with objects to create when all is up."""
    addons: Sequence[AddonName]
    plugins: list[Path]
    watches_plugins: bool
    schedules: bool
    runs_containers: bool
    emulated_version: str | None
    feature_gates: list[str]
    authorization: Authorization
    event_ttl: Duration
    logs: LoggingOptions | None
    """None: nothing is logged."""
    kubeconfig: Path
    page: PageProcess | None
    """The page that shows the cluster; None: none."""
    kubelet_config: Path | None
    kubelet_flags: Mapping[str, str | int | None]
    """The kubelet's flags by the names of their fields; None where not given."""


def run_cluster(options: UpOptions) -> None:
    """Run a cluster until a signal; exits with status 1 if not all that is asked for can be had."""
    try:
        all_created = _run_until_signal(options)
    except (ConfigError, InputError, RegistryError, JournalError, ServingError, CertificateError) as error:
        typer.echo(f"moorage up: {error}", err=True)
        raise typer.Exit(_FAILED) from None
    if not all_created:
        raise typer.Exit(_FAILED)


def _run_until_signal(options: UpOptions) -> bool:
    """Whether every object of the files could be created; nothing is started unless all options are valid."""
    _check_plugin_options(options)
    version = emulated(options.emulated_version, options.feature_gates)
    addons = tuple(ADDONS[name] for name in dict.fromkeys(options.addons))
    plugins = _Plugins(options.config, options.plugins, version, options.watches_plugins, addons)
    found = plugins.read()
    dump = [each.manifest for each in _objects(options.dumps)]
    files = _objects(options.files)
    kubelets = _kubelets(options)
    settings = _settings(options, version, found, kubelets, addons, has_own_nodes=bool(dump))
    for ignored in kubelets.ignored:
        typer.echo(
            f"moorage up: {options.kubelet_config}: {ignored} has no effect on simulated nodes", err=True
        )
    long_running("up")
    if options.logs is not None:
        write_logs(options.logs)
    return uvloop.run(_run(settings, options, dump, files, plugins))


def _check_plugin_options(options: UpOptions) -> None:
    if options.watches_plugins and not options.plugins:
        raise InputError("--watch", "there is no file to watch; name one with --plugin FILE.py")
    if options.plugins and not options.schedules:
        raise InputError("--plugin", "plugins run in the scheduler; leave --no-scheduler out")


def _kubelets(options: UpOptions) -> Kubelets:
    template = _template(options.node_cpu, options.node_memory, options.zones)
    kubelets = read_kubelets(options.kubelet_config, options.kubelet_flags, template)
    _check_allocatable(kubelets)
    return kubelets


def _settings(
    options: UpOptions,
    version: KubernetesVersion,
    found: DiscoveredPlugins,
    kubelets: Kubelets,
    addons: tuple[Addon, ...],
    *,
    has_own_nodes: bool,
) -> LocalSettings:
    """The settings of a cluster; one with nodes from a dump gets no further ones."""
    return LocalSettings(
        0 if has_own_nodes else options.nodes,
        kubelets.template,
        replace(kubelets.settings, version=version.number),
        server=Settings(
            options.data_dir,
            options.authorization,
            event_ttl_seconds=options.event_ttl,
            version=version,
        ),
        config=found.config,
        registry=found.registry,
        schedules=options.schedules,
        version=version,
        addons=addons,
    )


class _Plugins:
    """The configuration and the plugins of a cluster, which change as their files are saved."""

    def __init__(
        self,
        config: Path | None,
        files: list[Path],
        version: KubernetesVersion,
        is_watched: bool,
        addons: Iterable[Addon],
    ) -> None:
        self._addons = addons
        self._version = version
        self._config = config
        self._files = files
        self._is_watched = is_watched

    def read(self) -> DiscoveredPlugins:
        """What the files say now."""
        config, registry = with_plugins(_configuration(self._config, self._version), self._files)
        for addon in self._addons:
            for plugin in addon.plugins:
                config = enabled_everywhere(config, plugin)
        return DiscoveredPlugins(config, registry)

    async def reload_on_save(self, cluster: LocalCluster) -> None:
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


def _configuration(path: Path | None, version: KubernetesVersion) -> SchedulerConfiguration:
    return default_config(version) if path is None else load_config(path, version)


def _template(cpu: str, memory: str, zones: int) -> NodeTemplate:
    return NodeTemplate(
        cpu=_quantity(cpu, "--node-cpu"), memory=_quantity(memory, "--node-memory"), zones=zones
    )


def _check_allocatable(kubelets: Kubelets) -> None:
    """InputError unless machines are of a size that leaves something for pods."""
    template = kubelets.template
    thresholds = parse_thresholds(kubelets.settings.eviction_hard)
    status = new_node(template, 0, "", "", thresholds, "", "")["status"]
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
    options: UpOptions,
    dump: list[Manifest],
    files: list[FileObject],
    plugins: _Plugins,
) -> bool:
    """Run until a signal; whether every object of the files could be created."""
    prepared: PreparedCluster | None = None
    address = "127.0.0.1"
    with listen(address, options.port) as listener:
        if options.runs_containers:
            settings = replace(settings, run_containers_with=listener.getsockname()[:2])
        page = None if options.page is None else ClusterPage(options.page, settings.version)
        if page is not None:
            settings = replace(settings, observer=page.observer, requests=page.requests)
        cluster = LocalCluster(settings)
        try:
            url = server_url(address, listener.getsockname()[1])
            write_admin_kubeconfig(options.kubeconfig, url, cluster.server)
            advertise(cluster.server, listener)
            context = cluster.server.certificate.ssl_context()
            limits = InFlightLimits(is_own=cluster.server.is_of_control_plane)
            server = HttpServer(cluster.server.api, context, limits=limits)
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
                _print_left_out(prepared)
                _print_access(url, options.kubeconfig, settings.version)
                following = asyncio.ensure_future(plugins.reload_on_save(cluster))
                others.append(following)
                async with nullcontext() if page is None else page.shown(cluster):
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
) -> PreparedCluster:
    await server.listens()
    return await cluster.prepare(files, dump)


def _print_left_out(prepared: PreparedCluster) -> None:
    dump = prepared.dump
    for kind in sorted(dump.unknown_kinds):
        typer.echo(f"moorage up: left out {kind}: not served here", err=True)
    for line in dump.refused[:_MAX_REFUSALS_SHOWN]:
        typer.echo(f"moorage up: left out: {line}", err=True)
    if len(dump.refused) > _MAX_REFUSALS_SHOWN:
        typer.echo(f"moorage up: left out {len(dump.refused) - _MAX_REFUSALS_SHOWN} more", err=True)
    for line in prepared.refused:
        typer.echo(f"moorage up: cannot create {line}", err=True)


def _print_access(url: str, kubeconfig: Path, version: KubernetesVersion) -> None:
    typer.echo(f"A Kubernetes v{version.number} cluster is up at {url}. In another terminal:")
    typer.echo(f"  export KUBECONFIG={kubeconfig.absolute()}")
    typer.echo("  kubectl get nodes")
    typer.echo("  kubectl create deployment hello --image=registry.example/hello:1 --replicas=20")
    typer.echo("  kubectl get pods -o wide --watch")
    typer.echo("Ctrl-C ends it.")
