"""`moorage up`: a cluster on a laptop, in one command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from moorage.cli.logs import LogFormat, LoggingOptions
from moorage.cli.plugin_options import PluginFiles
from moorage.cli.version_options import EmulatedVersion, FeatureGateFlags
from moorage_cluster.addons import AddonName
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
)
from moorage_cluster.cli.server_options import (
    DEFAULT_EVENT_TTL,
    DEFAULT_KUBECONFIG,
    DEFAULT_PORT,
    AuthorizationMode,
    DataDirectory,
    EventTtl,
    KubeconfigFile,
)


def _verbosity(text: str) -> int:
    """A number, which may be written after `-v`, `-v=` or `--v=`, as for all of Kubernetes' commands."""
    number = text.removeprefix("=")
    if not number.isdecimal():
        raise typer.BadParameter(f"{number!r} is not a number")
    return int(number)


_NumberOfNodes = Annotated[int, typer.Option(help="How many nodes there are.", min=0)]
_NodeCpu = Annotated[str, typer.Option(help="The cores of each node.")]
_NodeMemory = Annotated[str, typer.Option(help="The memory of each node.")]
_Zones = Annotated[int, typer.Option(help="The zones that nodes are spread over.", min=1)]
_Port = Annotated[int, typer.Option(help="The API server's port; 0: any free one.", min=0, max=65535)]
_SchedulerConfigFile = Annotated[
    Path | None, typer.Option(help="A KubeSchedulerConfiguration; without it, the default one.")
]
_DumpFile = Annotated[
    Path | None,
    typer.Option("--from", help="Begin with the objects of a dump: what `kubectl get -o yaml` printed."),
]
_ManifestFiles = Annotated[
    list[Path] | None,
    typer.Option(
        help="Create the objects of this file when all is up, as `kubectl create -f` does; repeatable."
    ),
]
_Addons = Annotated[
    list[AddonName] | None,
    typer.Option(
        "--with",
        metavar="NAME",
        help="Add what Kubernetes itself does not have; repeatable. pod-groups: the PodGroups of "
        "scheduler-plugins (scheduling.x-k8s.io), their controller, and the plugin Coscheduling.",
    ),
]
_WatchPlugins = Annotated[
    bool,
    typer.Option(
        "--watch",
        help="Go on with the new plugins whenever a file of --plugin, or a module beside it that it "
        "imports, is saved.",
    ),
]
_RunScheduler = Annotated[
    bool, typer.Option("--scheduler/--no-scheduler", help="Leave the scheduling to another process.")
]
_RunContainers = Annotated[
    bool,
    typer.Option(
        "--run-containers",
        help="Run containers whose command is `moorage`, and those of pods with the annotation "
        "`moorage.io/run: true`, as processes of this machine: as you, without isolation. Everyone who "
        "may create pods can then run commands here.",
    ),
]
_ShowPage = Annotated[bool, typer.Option("--ui/--no-ui", help="Show the cluster in a page, too.")]
_PagePort = Annotated[
    int,
    typer.Option(help="The page's port; another one if it is taken; 0: any free one.", min=0, max=65535),
]
_OpenPage = Annotated[bool, typer.Option("--open", help="Open the page in a browser.")]
_Verbosity = Annotated[
    int | None,
    typer.Option(
        "--v",
        "-v",
        parser=_verbosity,
        metavar="N",
        help="Log to stderr what the scheduler does: 2 bindings, 3 attempts, 5 the queue, 10 scores.",
    ),
]
_LoggingFormat = Annotated[LogFormat, typer.Option(help="How to log, with -v: text or json.")]


def up(
    nodes: _NumberOfNodes = 10,
    node_cpu: _NodeCpu = "8",
    node_memory: _NodeMemory = "32Gi",
    zones: _Zones = 3,
    port: _Port = DEFAULT_PORT,
    data_dir: DataDirectory = None,
    config: _SchedulerConfigFile = None,
    from_: _DumpFile = None,
    apply: _ManifestFiles = None,
    with_: _Addons = None,
    plugin: PluginFiles = None,
    watch: _WatchPlugins = False,
    scheduler: _RunScheduler = True,
    run_containers: _RunContainers = False,
    emulated_version: EmulatedVersion = None,
    feature_gates: FeatureGateFlags = None,
    authorization: AuthorizationMode = "AlwaysAllow",
    event_ttl: EventTtl = DEFAULT_EVENT_TTL,
    v: _Verbosity = None,
    logging_format: _LoggingFormat = "text",
    kubeconfig: KubeconfigFile = DEFAULT_KUBECONFIG,
    ui: _ShowPage = True,
    ui_port: _PagePort = 6480,
    open_: _OpenPage = False,
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
    from moorage.cli.page_process import PageProcess
    from moorage_cluster.cli.up import UpOptions, run_cluster

    run_cluster(
        UpOptions(
            nodes=nodes,
            node_cpu=node_cpu,
            node_memory=node_memory,
            zones=zones,
            port=port,
            data_dir=data_dir,
            config=config,
            dumps=[from_] if from_ else [],
            files=apply or [],
            addons=with_ or [],
            plugins=plugin or [],
            watches_plugins=watch,
            schedules=scheduler,
            runs_containers=run_containers,
            emulated_version=emulated_version,
            feature_gates=feature_gates or [],
            authorization=authorization,
            event_ttl=event_ttl,
            logs=None if v is None else LoggingOptions(v, logging_format),
            kubeconfig=kubeconfig,
            page=PageProcess(
                kubeconfig,
                ui_port,
                open_,
                config=config,
                plugins=plugin or (),
                emulated_version=emulated_version or "",
                feature_gates=feature_gates or (),
            )
            if ui
            else None,
            kubelet_config=kubelet_config,
            kubelet_flags={
                "evictionHard": eviction_hard,
                "evictionSoft": eviction_soft,
                "evictionSoftGracePeriod": eviction_soft_grace_period,
                "evictionMinimumReclaim": eviction_minimum_reclaim,
                "evictionPressureTransitionPeriod": eviction_pressure_transition_period,
                "evictionMaxPodGracePeriod": eviction_max_pod_grace_period,
                "kubeReserved": kube_reserved,
                "systemReserved": system_reserved,
                "maxPods": max_pods,
            },
        )
    )
