"""`moorage explain`: why is this pod pending, or where it is?"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from moorage.cli.evaluation_options import EvaluatedConfig
from moorage.cli.plugin_options import PluginFiles
from moorage.cli.scheduler_options import (
    DEFAULT_SCHEDULER_ADDRESS,
    SCHEDULER_SECTION,
    CertificateAuthority,
    SkipVerification,
)
from moorage.cli.version_options import FeatureGateFlags, VersionOfServer


class Output(StrEnum):
    """The forms of an explanation."""

    TABLE = "table"
    JSON = "json"


_SERVER = "Cluster"


def explain(
    pod: Annotated[str, typer.Argument(help="The pod: NAME or pod/NAME.", show_default=False)],
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Its namespace.  [default: that of the context]")
    ] = "",
    node: Annotated[str, typer.Option(metavar="NAME", help="Show everything about this node.")] = "",
    everything: Annotated[
        bool,
        typer.Option("--all", help="Show every filter that rejects a node, and all feasible nodes."),
    ] = False,
    output: Annotated[Output, typer.Option("--output", "-o", help="The form of the output.")] = Output.TABLE,
    config: EvaluatedConfig = None,
    plugin: PluginFiles = None,
    emulated_version: VersionOfServer = None,
    feature_gates: FeatureGateFlags = None,
    dump: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Read the cluster from a file, as `kubectl get -o json` writes it; may be repeated.",
            rich_help_panel=_SERVER,
        ),
    ] = None,
    kubeconfig: Annotated[
        Path | None, typer.Option(help="The kubeconfig to use.", rich_help_panel=_SERVER)
    ] = None,
    context: Annotated[str, typer.Option(help="The context of it to use.", rich_help_panel=_SERVER)] = "",
    attempts: Annotated[
        bool,
        typer.Option(
            "--attempts",
            help="Show what a running moorage scheduler remembers of the pod, as `moorage attempts` does.",
            rich_help_panel=SCHEDULER_SECTION,
        ),
    ] = False,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            "-w",
            help="With --attempts: show new ones as they come.",
            rich_help_panel=SCHEDULER_SECTION,
        ),
    ] = False,
    scheduler: Annotated[
        str,
        typer.Option(
            "--scheduler",
            metavar="URL",
            help="The secure port of a running moorage scheduler, to show where in its queue the pod is."
            f"  [default with --attempts: {DEFAULT_SCHEDULER_ADDRESS}]",
            rich_help_panel=SCHEDULER_SECTION,
        ),
    ] = "",
    certificate_authority: CertificateAuthority = None,
    insecure_skip_tls_verify: SkipVerification = False,
) -> None:
    """Explain why a pod is pending, or why it is where it is, and what would help.

    Reads the cluster, evaluates the pod as a scheduler with the given configuration would, and changes
    nothing. It needs read permissions only (`moorage manifests --reader`), and works beside any scheduler.
    """
    from moorage.cli.garbage_collection import collect_in_passing

    collect_in_passing()  # Imports make many objects, too.
    from moorage.cli.explain import ExplainOptions, show_attempts_of, show_explanation
    from moorage.cli.inspection import SchedulerAddress

    if watch and not attempts:
        raise typer.BadParameter("goes with --attempts", param_hint="--watch")
    address = SchedulerAddress(
        scheduler or DEFAULT_SCHEDULER_ADDRESS,
        kubeconfig,
        certificate_authority,
        insecure_skip_tls_verify,
        context,
    )
    options = ExplainOptions(
        pod,
        namespace,
        node,
        config,
        plugin,
        emulated_version,
        feature_gates,
        dump,
        kubeconfig,
        context,
        address if scheduler else None,
    )
    as_json = output is Output.JSON
    if attempts:
        show_attempts_of(options, address, watch=watch, as_json=as_json)
    else:
        show_explanation(options, everything=everything, as_json=as_json)
