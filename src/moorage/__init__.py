"""moorage: a Kubernetes scheduler in Python. What a plugin author touches is importable from here.

A plugin is any class with a `name` and one or more of the methods in
`moorage.framework.interface.extension_points`:

    from moorage import Pod, NodeView

    class Quiet:
        name = "Quiet"

        def filter_node(self, cycle, pod: Pod, node: NodeView):
            return "node is noisy" if node.labels.get("noisy") == "true" else None

`moorage decide`, `moorage up` (with `--watch`) and `moorage run` try it with `--plugin FILE.py`; packages
announce theirs as entry points of the group `moorage.plugins`; configurations name any class as
`module:Class`.

What plugins are given
    Pod, Node, Namespace, Object: objects as the API server has them; only what scheduling reads.
    Nodes: many nodes at once, in columns. NodeView: one of them. PodInfo: a pod on a node.
    CycleState, StateKey: what a plugin remembers from one extension point to the next, for one pod.
    Diagnosis: why nodes were refused. QueuedPod: a pod in the queue, for queue_sort.
    Handle: what a plugin's `__init__` may ask for: caches, client, events, waiting pods, nominations, time.
    Struct, Duration: to declare arguments (`args`), besides dataclasses; Struct is camelCase in files.

What plugins answer
    ALL, refuse_where, FilterResult, Reason: a filter's answer for many nodes.
    unschedulable, unresolvable, pending: a refusal. SKIP, SUCCESS. wait: permit's third answer. Status, Code.
    MIN_SCORE, MAX_SCORE, Scores: what scores are. PostFilterResult, Effect: what a post-filter arranges.
    PreFlight, IN_PARALLEL, SKIP_IN_PARALLEL: what pre-bind plugins say before they are called.
    on, Resource, Action, Interest: which events may help pods that a plugin refused (`events`).
    DependsOn, NODE, NODE_AND_PODS: what answers rest on, so that they can be remembered (`depends_on`).
    Permission: what a plugin writes (`write_permissions`).

Groups of pods
    PodGroupInfo: a group and its members to schedule. Placement: nodes among which all of them are to run.
    PlacementProgress: how many members have nodes there. PlacementAssignments: the nodes that they get.
    GroupDryRun, PodGroupPostFilterResult: to make room for a group, and what is arranged.

What a handle lends
    Client, kinds: requests to the API server, and the kinds they are about. NotHereError: in a simulation.
    Objects, ObjectTable: the informers' caches. WaitingPods, WaitingPod: who waits for a permit.

Trying things out, without a cluster
    decide: where would this pod go? Manifests of new pods get an API server's defaults and admission.
    SimulatedCluster: the same for several pods, one after another, as an API server has them.
    Cache, Engine, Profiles, Decision: the parts these are made of. PluginError: how a plugin failed.
    decode_object, InputError: objects from files. default_config, load_config, parse_config.

In notebooks, and for research
    Cluster: one in memory, of manifests, a dump, a live cluster or shapes; to ask, simulate, step through.
    Generator: random workloads for simulations. PlacementError: why a pod cannot be placed on a node.
    moorage.research.gym_env: an environment of Gymnasium.

Shipping a scheduler of one's own
    scheduler_command, with_plugin: `moorage run` as a program with plugins built in.
    Registry, RegistryError, default_registry: plugins by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from moorage.version import __version__

if TYPE_CHECKING:
    from moorage.api.base import Object, Struct
    from moorage.api.decode import InputError, decode_object
    from moorage.api.node import Namespace, Node
    from moorage.api.pod import Pod
    from moorage.cli.command import scheduler_command
    from moorage.client import kinds
    from moorage.client.client import Client
    from moorage.client.permissions import Permission
    from moorage.cluster.cache import Cache
    from moorage.cluster.object_tables import Objects, ObjectTable
    from moorage.cluster.pod_table import PodInfo
    from moorage.config.duration import Duration
    from moorage.config.load import default_config, load_config, parse_config
    from moorage.engine.decision import Decision
    from moorage.engine.engine import Engine
    from moorage.framework.interface.cycle_state import CycleState, StateKey
    from moorage.framework.interface.dependencies import NODE, NODE_AND_PODS, DependsOn
    from moorage.framework.interface.diagnosis import Diagnosis
    from moorage.framework.interface.effects import Effect
    from moorage.framework.interface.extension_points import (
        IN_PARALLEL,
        MAX_SCORE,
        MIN_SCORE,
        SKIP_IN_PARALLEL,
        PostFilterResult,
        PreFlight,
        Scores,
    )
    from moorage.framework.interface.filter_result import ALL, FilterResult, Reason, refuse_where
    from moorage.framework.interface.handle import Handle, NotHereError
    from moorage.framework.interface.nodes import Nodes, NodeView
    from moorage.framework.interface.pod_groups import (
        GroupDryRun,
        Placement,
        PlacementAssignments,
        PlacementProgress,
        PodGroupInfo,
        PodGroupPostFilterResult,
    )
    from moorage.framework.interface.status import (
        SKIP,
        SUCCESS,
        Code,
        PluginError,
        Status,
        pending,
        unresolvable,
        unschedulable,
        wait,
    )
    from moorage.framework.loading.registry import Registry, RegistryError, with_plugin
    from moorage.framework.runtime.profiles import Profiles
    from moorage.framework.runtime.waiting_pods import WaitingPod, WaitingPods
    from moorage.plugins import default_registry
    from moorage.queue.cluster_events import Action, Interest, Resource, on
    from moorage.queue.queued_pod import QueuedPod
    from moorage.research.cluster import Cluster
    from moorage.research.stepping import PlacementError
    from moorage.sim.cluster import SimulatedCluster
    from moorage.sim.deciding import decide
    from moorage.simulation.generator import Generator

__all__ = [
    "ALL",
    "IN_PARALLEL",
    "MAX_SCORE",
    "MIN_SCORE",
    "NODE",
    "NODE_AND_PODS",
    "SKIP",
    "SKIP_IN_PARALLEL",
    "SUCCESS",
    "Action",
    "Cache",
    "Client",
    "Cluster",
    "Code",
    "CycleState",
    "Decision",
    "DependsOn",
    "Diagnosis",
    "Duration",
    "Effect",
    "Engine",
    "FilterResult",
    "Generator",
    "GroupDryRun",
    "Handle",
    "InputError",
    "Interest",
    "Namespace",
    "Node",
    "NodeView",
    "Nodes",
    "NotHereError",
    "Object",
    "ObjectTable",
    "Objects",
    "Permission",
    "Placement",
    "PlacementAssignments",
    "PlacementError",
    "PlacementProgress",
    "PluginError",
    "Pod",
    "PodGroupInfo",
    "PodGroupPostFilterResult",
    "PodInfo",
    "PostFilterResult",
    "PreFlight",
    "Profiles",
    "QueuedPod",
    "Reason",
    "Registry",
    "RegistryError",
    "Resource",
    "Scores",
    "SimulatedCluster",
    "StateKey",
    "Status",
    "Struct",
    "WaitingPod",
    "WaitingPods",
    "__version__",
    "decide",
    "decode_object",
    "default_config",
    "default_registry",
    "kinds",
    "load_config",
    "on",
    "parse_config",
    "pending",
    "refuse_where",
    "scheduler_command",
    "unresolvable",
    "unschedulable",
    "wait",
    "with_plugin",
]

_HOMES: Final = {
    "moorage.api.base": ("Object", "Struct"),
    "moorage.api.decode": ("InputError", "decode_object"),
    "moorage.api.node": ("Namespace", "Node"),
    "moorage.api.pod": ("Pod",),
    "moorage.cli.command": ("scheduler_command",),
    "moorage.client": ("kinds",),
    "moorage.client.client": ("Client",),
    "moorage.client.permissions": ("Permission",),
    "moorage.cluster.cache": ("Cache",),
    "moorage.cluster.object_tables": ("ObjectTable", "Objects"),
    "moorage.cluster.pod_table": ("PodInfo",),
    "moorage.config.duration": ("Duration",),
    "moorage.config.load": ("default_config", "load_config", "parse_config"),
    "moorage.engine.decision": ("Decision",),
    "moorage.engine.engine": ("Engine",),
    "moorage.framework.interface.dependencies": ("DependsOn", "NODE", "NODE_AND_PODS"),
    "moorage.framework.interface.cycle_state": ("CycleState", "StateKey"),
    "moorage.framework.interface.diagnosis": ("Diagnosis",),
    "moorage.framework.interface.effects": ("Effect",),
    "moorage.framework.interface.handle": ("Handle", "NotHereError"),
    "moorage.framework.interface.nodes": ("NodeView", "Nodes"),
    "moorage.framework.interface.extension_points": (
        "IN_PARALLEL",
        "MAX_SCORE",
        "MIN_SCORE",
        "PostFilterResult",
        "PreFlight",
        "SKIP_IN_PARALLEL",
        "Scores",
    ),
    "moorage.framework.interface.pod_groups": (
        "GroupDryRun",
        "Placement",
        "PlacementAssignments",
        "PlacementProgress",
        "PodGroupInfo",
        "PodGroupPostFilterResult",
    ),
    "moorage.framework.runtime.profiles": ("Profiles",),
    "moorage.framework.loading.registry": ("Registry", "RegistryError", "with_plugin"),
    "moorage.framework.interface.status": (
        "Code",
        "PluginError",
        "SKIP",
        "SUCCESS",
        "Status",
        "pending",
        "unresolvable",
        "unschedulable",
        "wait",
    ),
    "moorage.framework.interface.filter_result": ("ALL", "Reason", "FilterResult", "refuse_where"),
    "moorage.framework.runtime.waiting_pods": ("WaitingPod", "WaitingPods"),
    "moorage.plugins": ("default_registry",),
    "moorage.queue.queued_pod": ("QueuedPod",),
    "moorage.queue.cluster_events": ("Action", "Interest", "Resource", "on"),
    "moorage.research.cluster": ("Cluster",),
    "moorage.research.stepping": ("PlacementError",),
    "moorage.sim.cluster": ("SimulatedCluster",),
    "moorage.sim.deciding": ("decide",),
    "moorage.simulation.generator": ("Generator",),
}
"""The modules that the public names are imported from, which is done when a name is first used."""

_HOME_OF: Final = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: a command, or a plugin, loads only what it needs."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(__import__(_HOME_OF[name], fromlist=(name,)), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
