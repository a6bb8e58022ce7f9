"""`moorage decide`: where would this pod go, and why?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from moorage.cli.plugin_options import PluginFiles
from moorage.cli.version_options import EmulatedVersion, FeatureGateFlags


def decide(
    cluster: Annotated[
        list[Path],
        typer.Argument(help="The cluster: files as `kubectl get -o yaml` gives them.", show_default=False),
    ],
    pod: Annotated[Path, typer.Option(help="A file with the pod (or pods) to place.")],
    config: Annotated[
        Path | None, typer.Option(help="A KubeSchedulerConfiguration; the default one without.")
    ] = None,
    plugin: PluginFiles = None,
    emulated_version: EmulatedVersion = None,
    feature_gates: FeatureGateFlags = None,
    seed: Annotated[int, typer.Option(help="Chooses among equally good nodes.")] = 0,
    top: Annotated[int, typer.Option(min=1, help="How many of the feasible nodes to show.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print the decisions as JSON.")] = False,
) -> None:
    """Show where the scheduler would place pods in a cluster, with every score and every refusal.

    Several pods are placed one after another, each counting for the next; with --feature-gates
    GenericWorkload=true, the pods of a PodGroup together. Other objects in the pods' file are part of the
    cluster. A pod without a uid has not been through an API server yet: it gets the defaults and the
    admission that the cluster's LimitRanges, PriorityClasses and RuntimeClasses would give it, or is refused
    as they would.
    """
    from moorage.cli.decide import show_decisions

    show_decisions(
        cluster,
        pod,
        config,
        plugin,
        emulated_version=emulated_version,
        feature_gates=feature_gates,
        seed=seed,
        top=top,
        as_json=as_json,
    )
