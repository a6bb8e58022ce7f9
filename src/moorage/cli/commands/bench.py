"""`moorage bench`: how fast is it?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from moorage.cli.durations import duration
from moorage.cli.plugin_options import PluginFiles
from moorage.cli.version_options import EmulatedVersion, FeatureGateFlags
from moorage.config.duration import Duration

COMPARED_ROUNDS: Final = 3
"""Default number of rounds where two schedulers are compared."""
_MODE: Final = "Where the workloads run (one of these)"

_FILES = typer.Argument(
    help="Files in scheduler_perf's format; a directory stands for every performance-config.yaml in it.",
    show_default=False,
)
_ENGINE = typer.Option(
    "--engine", help="The scheduler over objects in this process; the default.", rich_help_panel=_MODE
)
_HTTP = typer.Option(
    "--http", help="API server and scheduler as processes of their own.", rich_help_panel=_MODE
)
_KUBECONFIG = typer.Option(
    help="A cluster with its own scheduler; what is made in it is deleted again.", rich_help_panel=_MODE
)
_ONLY = typer.Option(metavar="NAME[/WORKLOAD]", help="Run only this; may be given several times.")
_LABEL = typer.Option(
    metavar="LABELS", help="Only workloads with these labels: performance,-short. Several: one of them."
)
_PROFILE = typer.Option(help="Write a flame graph of what is measured: .html, .json (speedscope) or .txt.")
_COMPARE = typer.Option(help="Compare with a report that --json or --output wrote before.")
_COMPARE_WITH = typer.Option(
    metavar="NAME=BINARY",
    help="Run every workload with a scheduler_perf test binary, too, in turn with this scheduler, and print"
    " ratios: kube-scheduler=./scheduler_perf.test. Needs etcd in PATH.",
)
_CONFIG = typer.Option(
    help="KubeSchedulerConfiguration for workloads that bring none, such as one with a plugin to be measured."
)
_ROUNDS = typer.Option(
    min=1,
    help=f"Run every workload this many times: median and spread. [default: 1; {COMPARED_ROUNDS} with"
    " --compare-with]",
    show_default=False,
)
_OUTPUT = typer.Option(help="Write the report as JSON to this file, again after every workload.")
_TIMEOUT = typer.Option(
    help="Give a workload up whose pods wait this long.", parser=duration, metavar="DURATION"
)


def bench(
    files: Annotated[list[Path], _FILES],
    engine: Annotated[bool, _ENGINE] = False,
    http: Annotated[bool, _HTTP] = False,
    kubeconfig: Annotated[Path | None, _KUBECONFIG] = None,
    emulated_version: EmulatedVersion = None,
    feature_gates: FeatureGateFlags = None,
    only: Annotated[list[str] | None, _ONLY] = None,
    label: Annotated[list[str] | None, _LABEL] = None,
    rounds: Annotated[int | None, _ROUNDS] = None,
    compare_with: Annotated[str, _COMPARE_WITH] = "",
    config: Annotated[Path | None, _CONFIG] = None,
    plugin: PluginFiles = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    output: Annotated[Path | None, _OUTPUT] = None,
    profile: Annotated[Path | None, _PROFILE] = None,
    compare: Annotated[Path | None, _COMPARE] = None,
    timeout: Annotated[Duration, _TIMEOUT] = "10m",  # type: ignore[assignment]  # typer parses defaults, too
) -> None:
    """Measure the scheduler with workloads in the format of Kubernetes' scheduler_perf."""
    from moorage.cli.bench import measure

    measure(
        files,
        engine=engine,
        http=http,
        kubeconfig=kubeconfig,
        emulated_version=emulated_version,
        feature_gates=feature_gates,
        only=only,
        label=label,
        rounds=rounds,
        compare_with=compare_with,
        config=config,
        plugins=plugin or [],
        as_json=as_json,
        output=output,
        profile=profile,
        compare=compare,
        timeout=timeout,
    )
