"""`moorage run`: the live scheduler, with kube-scheduler's flags."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import typer
import uvloop

from moorage.api.decode import InputError
from moorage.cli.flags import FlagError, FlagValues
from moorage.cli.garbage_collection import collect_in_passing
from moorage.cli.kube_flags import fail
from moorage.cli.logs import write_logs
from moorage.cli.run_options import (
    access_options,
    check_versions,
    configuration,
    log_options,
    metric_options,
    plugin_files,
    serving_options,
    slow_plugin_seconds,
    without_keys,
)
from moorage.config.load import dump_yaml, to_manifest
from moorage.config.types import SchedulerConfiguration
from moorage.config.without_effect import fields_without_effect
from moorage.framework.loading.plugin_discovery import DiscoveredPlugins, find_plugins
from moorage.framework.loading.registry import NamedPlugin, Registry, RegistryError
from moorage.http.errors import KubeconfigError
from moorage.http.server import ServingError
from moorage.klog import Logger, quoted
from moorage.plugins import default_registry
from moorage.scheduler.process import LiveScheduler, RunOptions
from moorage.services.delegation import OpenPathError
from moorage.services.feature_gates import FeatureGates, GateError, parse_gates
from moorage.services.leader_election import ElectionConfigError
from moorage.services.metrics import build_info
from moorage.version import KUBERNETES_VERSION, __version__

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


def _run(flags: FlagValues, plugins: Sequence[NamedPlugin]) -> None:
    gates = parse_gates(flags.words("feature-gates"))
    check_versions(flags)
    logs = log_options(flags, gates)
    features = gates.features()

    files = plugin_files(flags)

    def read() -> DiscoveredPlugins:
        return find_plugins(configuration(flags, features), default_registry(), files, plugins)

    found = read()
    options = RunOptions(
        found.config,
        read,
        flags.text("master"),
        serving_options(flags),
        access_options(flags),
        flags.duration("pod-max-in-unschedulable-pods-duration"),
        slow_plugin_seconds(flags),
        metric_options(flags),
        gates,
        flags.switch("http-pipelining"),
        flags.switch("insecure-send-credentials-over-http"),
        flags.shown(),
    )
    target = flags.path("write-config-to")
    if target is not None:
        _write(options.config, target)
        return
    write_logs(logs)
    _log_startup(flags, gates, found.config)
    collect_in_passing()
    uvloop.run(_live(options, found.registry))


async def _live(options: RunOptions, registry: Registry) -> None:
    await LiveScheduler(options, registry).run()


def _log_startup(flags: FlagValues, gates: FeatureGates, config: SchedulerConfiguration) -> None:
    """Log flags, configuration and version, and which settings have no effect."""
    for name, value in flags.shown().items():
        log.infof(1, f"FLAG: --{name}={quoted(value)}")
    if log.v >= 2:
        log.info(2, "Using component config", config=dump_yaml(to_manifest(without_keys(config))))
    log.info(0, "Starting Kubernetes Scheduler", version=f"v{KUBERNETES_VERSION}", moorage=__version__)
    for note in flags.notes():
        log.info(0, "Flag has no effect", flag=note)
    if flags.path("config") is not None:
        for note in fields_without_effect(config):
            log.info(0, "Configuration field has no effect", field=note)
    for gate in gates.without_effect():
        log.warning("Feature gate has no effect: moorage does as v1.36 does by default", gate=gate)


def _show_version(wanted: str) -> None:
    if wanted == "raw":
        typer.echo(json.dumps(build_info()))
    elif wanted == "true":
        typer.echo(f"Kubernetes v{KUBERNETES_VERSION} (moorage {__version__})")


def _write(config: SchedulerConfiguration, path: Path) -> None:
    try:
        path.write_text(dump_yaml(to_manifest(config)), encoding="utf-8")
    except OSError as error:
        raise InputError(str(path), f"cannot be written: {error.strerror}") from None
