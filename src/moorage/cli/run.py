"""`moorage run`: the live scheduler, with kube-scheduler's flags."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Final, NamedTuple

import typer
import uvloop

from moorage.api.decode import InputError
from moorage.cli.flags import FlagError, FlagValues
from moorage.cli.garbage_collection import collect_in_passing
from moorage.cli.kube_flags import fail
from moorage.cli.logs import write_logs
from moorage.cli.page_process import PageProcess
from moorage.cli.run_options import (
    access_options,
    check_compatibility,
    configuration,
    emulated_version,
    log_options,
    metric_options,
    page,
    plugin_files,
    recording_path,
    remembered_attempts,
    serving_options,
    shadow_options,
    slow_plugin_seconds,
    without_keys,
)
from moorage.client.connect import connected
from moorage.client.server_version import emulated_by_server
from moorage.clock import LoopClock
from moorage.config.load import dump_yaml, to_manifest
from moorage.config.types import SchedulerConfiguration
from moorage.config.without_effect import fields_without_effect
from moorage.emulation.feature_gates import GateError, parse_gates
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, KUBERNETES_VERSIONS, KubernetesVersion
from moorage.framework.loading.plugin_discovery import DiscoveredPlugins, find_plugins
from moorage.framework.loading.registry import NamedPlugin, Registry, RegistryError
from moorage.http.errors import KubeconfigError
from moorage.http.server import ServingError
from moorage.klog import Logger, quoted
from moorage.plugins import default_registry
from moorage.scheduler.process import LiveScheduler, RunOptions, server_access
from moorage.services.delegation import OpenPathError
from moorage.services.leader_election import ElectionConfigError
from moorage.services.metrics import build_info
from moorage.version import __version__

_COMPLAINTS: Final = (
    FlagError,
    GateError,
    InputError,
    RegistryError,
    KubeconfigError,
    ServingError,
    ElectionConfigError,
    OpenPathError,
)

log = Logger(__name__)


def schedule(ctx: typer.Context, plugins: Sequence[NamedPlugin]) -> None:
    """Run the scheduler that the flags describe, with the given plugins besides the discovered ones."""
    flags: FlagValues = ctx.obj
    if flags.text("version") != "false":
        _show_version(flags.text("version"))
        return
    try:
        _run(flags, plugins)
    except _COMPLAINTS as error:
        fail(ctx, error)


class _Prepared(NamedTuple):
    """A scheduler to run: everything that flags and files say has been checked."""

    options: RunOptions
    registry: Registry
    page: PageProcess | None


Prepare = Callable[[KubernetesVersion], _Prepared]


def _run(flags: FlagValues, plugins: Sequence[NamedPlugin]) -> None:
    gates = parse_gates(flags.words("feature-gates"))
    logs = log_options(flags, gates)

    def prepare(version: KubernetesVersion) -> _Prepared:
        return _prepared(flags, plugins, version.with_gates(gates))

    version = emulated_version(flags)
    prepared = _valid_in_any(prepare) if version is None else prepare(version)
    target = flags.path("write-config-to")
    if target is not None:
        _write(prepared.options.config, target)
        return
    write_logs(logs)
    collect_in_passing()
    uvloop.run(_live(flags, prepared, prepare if version is None else None))


def _prepared(flags: FlagValues, plugins: Sequence[NamedPlugin], version: KubernetesVersion) -> _Prepared:
    check_compatibility(flags, version)
    files = plugin_files(flags)

    def read() -> DiscoveredPlugins:
        return find_plugins(configuration(flags, version), default_registry(), files, plugins)

    found = read()
    options = RunOptions(
        found.config,
        read,
        flags.text("master"),
        serving_options(flags),
        access_options(flags),
        flags.duration("pod-max-in-unschedulable-pods-duration"),
        slow_plugin_seconds(flags),
        metric_options(flags, version),
        version,
        flags.switch("http-pipelining"),
        flags.switch("insecure-send-credentials-over-http"),
        flags.shown(),
        *remembered_attempts(flags),
        recording_path(flags, found.config),
        shadow_options(flags, found.config),
        flags.given("tie-seed"),
    )
    return _Prepared(options, found.registry, page(flags, options))


def _valid_in_any(prepare: Prepare) -> _Prepared:
    """The scheduler in the newest version in which flags and files are valid; else the newest's problems."""
    problems: list[Exception] = []
    for version in reversed(KUBERNETES_VERSIONS.values()):
        try:
            return prepare(version)
        except _COMPLAINTS as error:
            problems.append(error)
    raise problems[0]


async def _live(flags: FlagValues, prepared: _Prepared, prepare: Prepare | None) -> None:
    """Run a scheduler; with `prepare`, the one for the API server's version."""
    if prepare is not None:
        async with connected(server_access(prepared.options), user_agent="moorage") as client:
            version = await emulated_by_server(client, LoopClock())
        if version.minor != prepared.options.version.minor:
            prepared = prepare(version)
    _log_startup(flags, prepared.options)
    with nullcontext() if prepared.page is None else prepared.page.running():
        await LiveScheduler(prepared.options, prepared.registry).run()


def _log_startup(flags: FlagValues, options: RunOptions) -> None:
    """Log flags, configuration and version, and which settings have no effect."""
    config, version = options.config, options.version
    for name, value in flags.shown().items():
        log.infof(1, f"FLAG: --{name}={quoted(value)}")
    if log.v >= 2:
        log.info(2, "Using component config", config=dump_yaml(to_manifest(without_keys(config))))
    log.info(0, "Starting Kubernetes Scheduler", version=f"v{version.number}", moorage=__version__)
    for note in flags.notes():
        log.info(0, "Flag has no effect", flag=note)
    if flags.path("config") is not None:
        for note in fields_without_effect(config):
            log.info(0, "Configuration field has no effect", field=note)
    for gate in version.gates.without_effect():
        does = f"moorage does as v{version.minor} does by default"
        log.warning(f"Feature gate has no effect: {does}", gate=gate)


def _show_version(wanted: str) -> None:
    if wanted == "raw":
        typer.echo(json.dumps(build_info()))
    elif wanted == "true":
        typer.echo(f"Kubernetes v{DEFAULT_VERSION.number} (moorage {__version__})")


def _write(config: SchedulerConfiguration, path: Path) -> None:
    try:
        path.write_text(dump_yaml(to_manifest(config)), encoding="utf-8")
    except OSError as error:
        raise InputError(str(path), f"cannot be written: {error.strerror}") from None
