"""`moorage run`: the live scheduler, with kube-scheduler's flags."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any, Final, NoReturn

import typer
import uvloop
from typer.core import TyperCommand

from moorage.api.decode import InputError
from moorage.apiserver.serving import ServingError
from moorage.cli.flags import FlagError, FlagValues, read_flags
from moorage.cli.logs import write_logs
from moorage.cli.process import collect_rarely
from moorage.cli.run_flags import FLAGS, GROUPS
from moorage.cli.run_options import (
    access_options,
    check_versions,
    configuration,
    log_options,
    metric_options,
    serving_options,
)
from moorage.client.errors import KubeconfigError
from moorage.config.load import dump_yaml, to_manifest
from moorage.config.types import SchedulerConfiguration
from moorage.framework.registry import RegistryError
from moorage.plugins import default_registry
from moorage.scheduler.process import LiveScheduler, RunOptions
from moorage.services.delegation import OpenPathError
from moorage.services.feature_gates import FeatureGates, GateError, parse_gates
from moorage.services.leader_election import ElectionConfigError
from moorage.services.metrics import KUBERNETES_VERSION, build_info
from moorage.version import __version__

_COMMAND: Final = "moorage run"
_WRONG: Final = 1
"""Exit status: the input is wrong."""
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

log = logging.getLogger(__name__)


class KubeFlags(TyperCommand):
    """Reads flags as Kubernetes components do; complains in one line."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take the command line apart; what cannot be read ends the process with status 1."""
        try:
            ctx.obj = flags = read_flags(FLAGS, args, _COMMAND)
        except FlagError as error:
            _fail(str(error))
        if flags.switch("help"):
            typer.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, [])

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Say what each flag means, group by group."""
        formatter.write_usage(_COMMAND, "[flags]")
        formatter.write_paragraph()
        formatter.write_text(self.help or "")
        for group in GROUPS:
            with formatter.section(group.title):
                formatter.write_dl([_described(flag) for flag in group.flags])


def _described(flag: Any) -> tuple[str, str]:
    short = f"-{flag.short}, " if flag.short else ""
    kind = "" if flag.kind.bare else f" {flag.kind.name}"
    default = f" (default: {flag.default})" if flag.default not in ("", "false") else ""
    note = f" No effect: {flag.note}." if flag.note else ""
    return f"{short}--{flag.name}{kind}", f"{flag.help}{default}{note}"


def _fail(message: str) -> NoReturn:
    typer.echo(f"{_COMMAND}: {'; '.join(message.splitlines())}", err=True)
    raise typer.Exit(_WRONG)


def run(ctx: typer.Context) -> None:
    """Schedule the pods of a cluster, as kube-scheduler does, or beside it."""
    flags: FlagValues = ctx.obj
    if flags.text("version") != "false":
        _show_version(flags.text("version"))
        return
    try:
        _run(flags)
    except _COMPLAINTS as error:
        _fail(str(error))


def _run(flags: FlagValues) -> None:
    gates = parse_gates(flags.words("feature-gates"))
    check_versions(flags)
    logs = log_options(flags, gates)
    features = gates.features()

    def read() -> SchedulerConfiguration:
        return configuration(flags, features)

    options = RunOptions(
        read(),
        read,
        flags.text("master"),
        serving_options(flags),
        access_options(flags),
        flags.duration("pod-max-in-unschedulable-pods-duration"),
        metric_options(flags),
        gates,
        flags.shown(),
    )
    target = flags.path("write-config-to")
    if target is not None:
        _write(options.config, target)
        return
    write_logs(logs)
    _tell(flags, gates)
    collect_rarely()
    uvloop.run(_live(options))


async def _live(options: RunOptions) -> None:
    await LiveScheduler(options, default_registry()).run()


def _tell(flags: FlagValues, gates: FeatureGates) -> None:
    """Log what runs, and what was asked for in vain."""
    log.info("moorage %s, like kube-scheduler v%s", __version__, KUBERNETES_VERSION)
    for name, value in flags.shown().items():
        log.debug('FLAG: --%s="%s"', name, value)
    for note in flags.notes():
        log.info("a flag without effect: %s", note)
    for gate in gates.without_effect():
        log.warning("feature gate %s has no effect: moorage does as v1.36 does by default", gate)


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
