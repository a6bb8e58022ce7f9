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
    Pod, Node, Namespace, ResourceClaim, Object: objects of the API server, with what scheduling reads.
    Nodes: many nodes at once, in columns. NodeView: one of them. PodInfo: a pod on a node.
    PodColumn: a number for each pod on nodes. PodReader: which pods came to nodes and went since it was last
        asked, to keep sums up to date.
    CycleState, StateKey: what a plugin remembers from one extension point to the next, for one pod.
    RowReader: which nodes of a snapshot have changed, for columns that a plugin keeps by itself.
    Diagnosis: why nodes were refused. QueuedPod: a pod in the queue, for queue_sort.
    Handle: what a plugin's `__init__` may ask for: caches, client, events, waiting pods, nominations, time.
    Struct, Duration, Quantity: to declare arguments (`args`), besides dataclasses; Struct is camelCase in
        files. parse_duration: a duration in an object, such as `1m30s`.
    declare_kind: a kind of objects that plugins read and scheduling does not, such as a custom resource.
    pod_requests: what a pod requests, in billionths. qos_class, QOSClass: how well its resources are kept.
    ResourceList: amounts of resources, in billionths. resource_amounts: the same in the units of columns,
        milli-CPU and whole units. whole_units: one amount in these units. format_amount: such one as text.
    microseconds: a time in microseconds since 1970, as columns have it.
    IdentityCache: values derived from objects.

What plugins answer
    ALL, refuse_where, FilterResult, Reason: a filter's answer for many nodes.
    unschedulable, unresolvable, pending: a refusal. SKIP, SUCCESS. wait: permit's third answer. Status, Code.
    MIN_SCORE, MAX_SCORE, Scores: what scores are. PostFilterResult, Effect: what a post-filter arranges.
    HypotheticalPods: pods taken to be gone from nodes, or added to them, for `handle.run_filters`.
    HypotheticalNodes: nodes taken to exist, with pods on them: would a pod fit on a new node like this one?
    EvictPods, NominateNode: two effects. DefaultPreemption, DefaultPreemptionArgs: to derive preemption from.
    PreFlight, IN_PARALLEL, SKIP_IN_PARALLEL: what pre-bind plugins say before they are called.
    on, Resource, Action, Interest: which events may help pods that a plugin refused (`events`).
    DependsOn, NODE, NODE_AND_PODS, NOT_CONCERNED: what answers rest on, so that they can be remembered
        (`depends_on`).
    Permission: what a plugin writes (`write_permissions`).

Groups of pods
    PodGroupInfo: a group and its members to schedule. Placement: nodes among which all of them are to run.
    PlacementProgress: how many members have nodes there. PlacementAssignments: the nodes that they get.
    GroupDryRun, PodGroupPostFilterResult: to make room for a group, and what is arranged.
    PodGroups: all groups, with their hierarchy and members on nodes (`handle.pod_groups`).

What a handle lends
    Client, kinds: requests to the API server, and the kinds they are about. NotHereError: in a simulation.
    RequestError, ConnectionFailed: how these requests fail.
    WebService, WebServiceError: requests to other servers, with JSON, and how they fail.
    plain: an object as the API server reads it.
    Objects, ObjectTable: the informers' caches. WaitingPods, WaitingPod: who waits for a permit.

Trying things out, without a cluster
    decide: where would this pod go? Manifests of new pods get an API server's defaults and admission.
    SimulatedCluster: the same for several pods, one after another, as an API server has them.
    Shape, Offer, offers_of, check_shapes: nodes that can be had, as in the catalogue of `moorage plan nodes`.
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
    from moorage.api.base import Object, ResourceList, Struct
    from moorage.api.decode import InputError, decode_object
    from moorage.api.devices import ResourceClaim
    from moorage.api.manifests import microseconds
    from moorage.api.node import Namespace, Node
    from moorage.api.pod import Pod
    from moorage.api.qos import QOSClass, qos_class
    from moorage.api.quantity import Quantity
    from moorage.api.remembered import IdentityCache
    from moorage.api.resource_requests import (
        format_amount,
        pod_requests,
        resource_amounts,
        whole_units,
    )
    from moorage.cli.command import scheduler_command
    from moorage.client import kinds
    from moorage.client.client import Client
    from moorage.client.declared_kinds import declare_kind
    from moorage.client.permissions import Permission
    from moorage.cluster.cache import Cache
    from moorage.cluster.object_tables import Objects, ObjectTable
    from moorage.cluster.pod_column import PodColumn
    from moorage.cluster.pod_groups import PodGroups
    from moorage.cluster.pod_reader import PodReader
    from moorage.cluster.pod_table import PodInfo
    from moorage.cluster.row_reader import RowReader
    from moorage.config.args import DefaultPreemptionArgs
    from moorage.config.duration import Duration, parse_duration
    from moorage.config.load import default_config, load_config, parse_config
    from moorage.engine.decision import Decision
    from moorage.engine.engine import Engine
    from moorage.framework.interface.cycle_state import CycleState, StateKey
    from moorage.framework.interface.dependencies import (
        NODE,
        NODE_AND_PODS,
        NOT_CONCERNED,
        DependsOn,
    )
    from moorage.framework.interface.diagnosis import Diagnosis
    from moorage.framework.interface.effects import Effect, EvictPods, NominateNode
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
    from moorage.framework.interface.hypothetical_pods import HypotheticalPods
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
    from moorage.framework.runtime.hypothetical_nodes import HypotheticalNodes
    from moorage.framework.runtime.profiles import Profiles
    from moorage.framework.runtime.waiting_pods import WaitingPod, WaitingPods
    from moorage.http.errors import ConnectionFailed, RequestError
    from moorage.http.web_service import WebService, WebServiceError
    from moorage.planning.catalogue import Offer, Shape, check_shapes, offers_of
    from moorage.plugins import default_registry
    from moorage.plugins.default_preemption.plugin import DefaultPreemption
    from moorage.queue.cluster_events import Action, Interest, Resource, on
    from moorage.queue.queued_pod import QueuedPod
    from moorage.research.cluster import Cluster
    from moorage.research.stepping import PlacementError
    from moorage.scheduler.encoding import plain
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
    "NOT_CONCERNED",
    "SKIP",
    "SKIP_IN_PARALLEL",
    "SUCCESS",
    "Action",
    "Cache",
    "Client",
    "Cluster",
    "Code",
    "ConnectionFailed",
    "CycleState",
    "Decision",
    "DefaultPreemption",
    "DefaultPreemptionArgs",
    "DependsOn",
    "Diagnosis",
    "Duration",
    "Effect",
    "Engine",
    "EvictPods",
    "FilterResult",
    "Generator",
    "GroupDryRun",
    "Handle",
    "HypotheticalNodes",
    "HypotheticalPods",
    "IdentityCache",
    "InputError",
    "Interest",
    "Namespace",
    "Node",
    "NodeView",
    "Nodes",
    "NominateNode",
    "NotHereError",
    "Object",
    "ObjectTable",
    "Objects",
    "Offer",
    "Permission",
    "Placement",
    "PlacementAssignments",
    "PlacementError",
    "PlacementProgress",
    "PluginError",
    "Pod",
    "PodColumn",
    "PodGroupInfo",
    "PodGroupPostFilterResult",
    "PodGroups",
    "PodInfo",
    "PodReader",
    "PostFilterResult",
    "PreFlight",
    "Profiles",
    "QOSClass",
    "Quantity",
    "QueuedPod",
    "Reason",
    "Registry",
    "RegistryError",
    "RequestError",
    "Resource",
    "ResourceClaim",
    "ResourceList",
    "RowReader",
    "Scores",
    "Shape",
    "SimulatedCluster",
    "StateKey",
    "Status",
    "Struct",
    "WaitingPod",
    "WaitingPods",
    "WebService",
    "WebServiceError",
    "__version__",
    "check_shapes",
    "decide",
    "declare_kind",
    "decode_object",
    "default_config",
    "default_registry",
    "format_amount",
    "kinds",
    "load_config",
    "microseconds",
    "offers_of",
    "on",
    "parse_config",
    "parse_duration",
    "pending",
    "plain",
    "pod_requests",
    "qos_class",
    "refuse_where",
    "resource_amounts",
    "scheduler_command",
    "unresolvable",
    "unschedulable",
    "wait",
    "whole_units",
    "with_plugin",
]

_HOMES: Final = {
    "moorage.api.base": ("Object", "ResourceList", "Struct"),
    "moorage.api.decode": ("InputError", "decode_object"),
    "moorage.api.devices": ("ResourceClaim",),
    "moorage.api.manifests": ("microseconds",),
    "moorage.api.node": ("Namespace", "Node"),
    "moorage.api.pod": ("Pod",),
    "moorage.api.qos": ("QOSClass", "qos_class"),
    "moorage.api.quantity": ("Quantity",),
    "moorage.api.remembered": ("IdentityCache",),
    "moorage.api.resource_requests": (
        "format_amount",
        "pod_requests",
        "resource_amounts",
        "whole_units",
    ),
    "moorage.cli.command": ("scheduler_command",),
    "moorage.client": ("kinds",),
    "moorage.client.client": ("Client",),
    "moorage.client.declared_kinds": ("declare_kind",),
    "moorage.client.permissions": ("Permission",),
    "moorage.cluster.cache": ("Cache",),
    "moorage.cluster.object_tables": ("ObjectTable", "Objects"),
    "moorage.cluster.pod_column": ("PodColumn",),
    "moorage.cluster.pod_groups": ("PodGroups",),
    "moorage.cluster.pod_reader": ("PodReader",),
    "moorage.cluster.pod_table": ("PodInfo",),
    "moorage.cluster.row_reader": ("RowReader",),
    "moorage.config.args": ("DefaultPreemptionArgs",),
    "moorage.config.duration": ("Duration", "parse_duration"),
    "moorage.config.load": ("default_config", "load_config", "parse_config"),
    "moorage.engine.decision": ("Decision",),
    "moorage.engine.engine": ("Engine",),
    "moorage.framework.interface.dependencies": ("DependsOn", "NODE", "NODE_AND_PODS", "NOT_CONCERNED"),
    "moorage.framework.interface.cycle_state": ("CycleState", "StateKey"),
    "moorage.framework.interface.diagnosis": ("Diagnosis",),
    "moorage.framework.interface.effects": ("Effect", "EvictPods", "NominateNode"),
    "moorage.framework.interface.handle": ("Handle", "NotHereError"),
    "moorage.framework.interface.hypothetical_pods": ("HypotheticalPods",),
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
    "moorage.framework.runtime.hypothetical_nodes": ("HypotheticalNodes",),
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
    "moorage.http.errors": ("ConnectionFailed", "RequestError"),
    "moorage.http.web_service": ("WebService", "WebServiceError"),
    "moorage.planning.catalogue": ("Offer", "Shape", "check_shapes", "offers_of"),
    "moorage.plugins": ("default_registry",),
    "moorage.plugins.default_preemption.plugin": ("DefaultPreemption",),
    "moorage.queue.queued_pod": ("QueuedPod",),
    "moorage.queue.cluster_events": ("Action", "Interest", "Resource", "on"),
    "moorage.research.cluster": ("Cluster",),
    "moorage.research.stepping": ("PlacementError",),
    "moorage.scheduler.encoding": ("plain",),
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
