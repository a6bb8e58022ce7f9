"""`moorage run`: the live scheduler, with kube-scheduler's flags."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Final, NoReturn, cast

import typer
import uvloop
from msgspec.structs import replace
from typer.core import TyperCommand

from moorage.api.decode import InputError
from moorage.apiserver.serving import ServingError
from moorage.cli.logs import LogFormat, write_logs
from moorage.cli.process import collect_rarely
from moorage.client.errors import KubeconfigError
from moorage.config.duration import Duration, parse_duration
from moorage.config.load import ConfigError, default_config, dump_yaml, load_config, to_manifest
from moorage.config.types import SchedulerConfiguration
from moorage.config.validation import validate
from moorage.framework.registry import RegistryError
from moorage.plugins import default_registry
from moorage.scheduler.process import LiveScheduler, RunOptions
from moorage.services.delegation import OPEN_PATHS, OpenPathError
from moorage.services.leader_election import ElectionConfigError
from moorage.services.serving import PORT, ServingOptions

_ELECTION = "Leader election"
_SERVING = "Serving"
_WRONG: Final = 1
"""Exit status: the input is wrong."""
_TRUE, _FALSE = ("1", "t", "true"), ("0", "f", "false")
_USAGE_ERROR = cast(type[typer.BadParameter], typer.BadParameter.__base__)
"""Every complaint about a command line; typer has no name of its own for it."""
_SHORT = re.compile(r"-(v)=(.*)", re.DOTALL)


class KubeFlags(TyperCommand):
    """Reads flags as Kubernetes components do (`--leader-elect=false`, `-v=2`); complains in one line."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take the command line apart; what cannot be read ends the process with status 1."""
        try:
            return super().parse_args(ctx, [word for arg in args for word in self._in_words(arg)])
        except _USAGE_ERROR as error:
            _fail(error.format_message())

    def _in_words(self, arg: str) -> list[str]:
        if short := _SHORT.fullmatch(arg):
            return [f"-{short[1]}", short[2]]
        flag, is_given, value = arg.partition("=")
        if is_given and flag in self._switches():
            if value.lower() in _TRUE:
                return [flag]
            if value.lower() in _FALSE:
                return [flag.replace("--", "--no-", 1)]
            _fail(f'invalid argument "{value}" for "{flag}": neither true nor false')
        return [arg]

    def _switches(self) -> set[str]:
        """The flags that are true or false: they have an opposite."""
        return {name for each in self.params if getattr(each, "secondary_opts", ()) for name in each.opts}


def _fail(message: str) -> NoReturn:
    typer.echo(f"moorage run: {'; '.join(message.splitlines())}", err=True)
    raise typer.Exit(_WRONG)


def _duration(text: str | Duration) -> Duration:
    """A flag's value in Go's notation."""
    if isinstance(text, Duration):
        return text
    try:
        return parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _election(help: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=_ELECTION, **more)


def _serving(help: str, **more: Any) -> Any:
    return typer.Option(help=help, rich_help_panel=_SERVING, **more)


_DURATION: Final[dict[str, Any]] = {"parser": _duration, "metavar": "DURATION"}
_LEADER_ELECT = _election("Schedule only while holding the lease.", "--leader-elect/--no-leader-elect")
_LEASE_DURATION = _election("After so long others take a lease that is not renewed.", **_DURATION)
_RENEW_DEADLINE = _election("A leader that cannot renew for so long ends.", **_DURATION)
_RETRY_PERIOD = _election("How long to wait between attempts.", **_DURATION)
_PORT = _serving("The port to serve on; 0: nothing is served.", min=0, max=65535)
_CONFIG = typer.Option(help="A KubeSchedulerConfiguration; of the flags that say the same it is the file's.")
_KUBECONFIG = typer.Option(help="How to reach the API server; without it, as a pod does, or as kubectl does.")
_MASTER = typer.Option(help="The API server's address, if not the kubeconfig's.")
_QPS = typer.Option(help="Requests a second to the API server; negative: no limit.")
_BURST = typer.Option(help="So many requests may go out at once beyond that.")
_WRITE_CONFIG = typer.Option(help="Write the configuration in force to this file, and end.")
_FLUSH = typer.Option(help="After so long without any event a pod is tried again.", **_DURATION)
_VERBOSITY = typer.Option("-v", "--v", help="How much to log; 4 and more: all.")


def run(
    config: Annotated[Path | None, _CONFIG] = None,
    kubeconfig: Annotated[Path | None, _KUBECONFIG] = None,
    master: Annotated[str, _MASTER] = "",
    leader_elect: Annotated[bool | None, _LEADER_ELECT] = None,
    leader_elect_lease_duration: Annotated[Duration | None, _LEASE_DURATION] = None,
    leader_elect_renew_deadline: Annotated[Duration | None, _RENEW_DEADLINE] = None,
    leader_elect_retry_period: Annotated[Duration | None, _RETRY_PERIOD] = None,
    leader_elect_resource_name: Annotated[str | None, _election("The lease's name.")] = None,
    leader_elect_resource_namespace: Annotated[str | None, _election("The lease's namespace.")] = None,
    bind_address: Annotated[str, _serving("The address to serve probes and metrics on.")] = "127.0.0.1",
    secure_port: Annotated[int, _PORT] = PORT,
    tls_cert_file: Annotated[Path | None, _serving("The certificate; without it, one is made.")] = None,
    tls_private_key_file: Annotated[Path | None, _serving("The certificate's key.")] = None,
    authorization_always_allow_paths: Annotated[
        str, _serving("Paths that everybody may ask for.")
    ] = ",".join(OPEN_PATHS),
    kube_api_qps: Annotated[float | None, _QPS] = None,
    kube_api_burst: Annotated[int | None, _BURST] = None,
    write_config_to: Annotated[Path | None, _WRITE_CONFIG] = None,
    pod_max_in_unschedulable_pods_duration: Annotated[Duration, _FLUSH] = "5m",  # type: ignore[assignment]  # typer parses defaults, too
    verbosity: Annotated[int, _VERBOSITY] = 0,
    logging_format: Annotated[LogFormat, typer.Option(help="How to log.")] = "text",
) -> None:
    """Schedule the pods of a cluster, as kube-scheduler does, or beside it."""
    connection = {
        "kubeconfig": None if kubeconfig is None else str(kubeconfig),
        "qps": kube_api_qps,
        "burst": kube_api_burst,
    }
    election = {
        "leader_elect": leader_elect,
        "lease_duration": leader_elect_lease_duration,
        "renew_deadline": leader_elect_renew_deadline,
        "retry_period": leader_elect_retry_period,
        "resource_name": leader_elect_resource_name,
        "resource_namespace": leader_elect_resource_namespace,
    }

    def read() -> SchedulerConfiguration:
        return _configuration(config, _given(connection), _given(election))

    serving = ServingOptions(bind_address, secure_port, tls_cert_file, tls_private_key_file)
    try:
        wanted = read()
        if write_config_to is not None:
            _write(wanted, write_config_to)
            return
        options = RunOptions(
            wanted,
            read,
            master,
            serving if secure_port else None,
            [path for path in authorization_always_allow_paths.split(",") if path],
            pod_max_in_unschedulable_pods_duration,
        )
        write_logs(verbosity, logging_format)
        collect_rarely()
        uvloop.run(_live(options))
    except (
        InputError,
        RegistryError,
        KubeconfigError,
        ServingError,
        ElectionConfigError,
        OpenPathError,
    ) as error:
        _fail(str(error))


async def _live(options: RunOptions) -> None:
    await LiveScheduler(options, default_registry()).run()


def _given(flags: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in flags.items() if value is not None}


def _configuration(
    path: Path | None, connection: dict[str, Any], election: dict[str, Any]
) -> SchedulerConfiguration:
    """What is in force: of flags, a configuration file leaves only those on leader election their word."""
    config = default_config() if path is None else load_config(path)
    if path is None:
        config = replace(config, client_connection=replace(config.client_connection, **connection))
    config = replace(config, leader_election=replace(config.leader_election, **election))
    if problems := validate(config):
        raise ConfigError(problems)
    return config


def _write(config: SchedulerConfiguration, path: Path) -> None:
    try:
        path.write_text(dump_yaml(to_manifest(config)), encoding="utf-8")
    except OSError as error:
        raise InputError(str(path), f"cannot be written: {error.strerror}") from None
