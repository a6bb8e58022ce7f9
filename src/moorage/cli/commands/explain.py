"""`moorage explain`: why is this pod pending, or where it is?"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from moorage.cli.plugin_options import PluginFiles
from moorage.cli.version_options import GATES_FLAG, GATES_HELP, POSSIBLE_VERSIONS, VERSION_FLAG


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
    config: Annotated[
        Path | None,
        typer.Option(
            help="The KubeSchedulerConfiguration to evaluate with; without it, kube-scheduler's defaults."
        ),
    ] = None,
    plugin: PluginFiles = None,
    emulated_version: Annotated[
        str | None,
        typer.Option(
            VERSION_FLAG,
            metavar="VERSION",
            help=f"Behave like Kubernetes {POSSIBLE_VERSIONS}.  [default: the server's version]",
        ),
    ] = None,
    feature_gates: Annotated[
        list[str] | None, typer.Option(GATES_FLAG, metavar="GATES", help=GATES_HELP)
    ] = None,
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
) -> None:
    """Explain why a pod is pending, or why it is where it is, and what would help.

    Reads the cluster, evaluates the pod as a scheduler with the given configuration would, and changes
    nothing. It needs read permissions only (`moorage manifests --reader`), and works beside any scheduler.
    """
    from moorage.cli.explain import ExplainOptions, show_explanation

    show_explanation(
        ExplainOptions(
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
        ),
        everything=everything,
        as_json=output is Output.JSON,
    )
