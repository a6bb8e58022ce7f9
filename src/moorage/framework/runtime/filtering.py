"""Running the filters of a profile: in order, over the nodes still feasible, and for nominated pods twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.cluster.pod_table import PodInfo
from moorage.cluster.snapshot import Snapshot
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.framework.interface.extension_points import FiltersByNodePlugin, Plugin, PodChangePlugin
from moorage.framework.interface.filter_result import ALL, FilterResult, Reason
from moorage.framework.interface.hypothetical_pods import HypotheticalPods
from moorage.framework.interface.nodes import Nodes, NodeView
from moorage.framework.runtime.plan import ProfilePlan
from moorage.framework.runtime.plugin_call import PluginCall


def run_filters(
    calls: Sequence[PluginCall],
    plugins: Mapping[str, Plugin],
    cycle: CycleState,
    pod: Pod,
    nodes: Nodes,
    diagnosis: Diagnosis,
) -> Nodes:
    """The nodes that every filter lets pass, as they are and with the pods nominated to them.

    Pods of equal or higher priority that are nominated to a node are assumed to be there already. They may
    never be bound there, so such a node is filtered twice and must pass both times.
    """

    def run(some: Nodes) -> Nodes:
        return _run_once(calls, plugins, cycle, pod, some, diagnosis)

    nominated = _nominated(pod, nodes)
    if not nominated:
        return run(nodes)
    rows = nodes.row_numbers()
    changes = nodes.hypothetical_pods or HypotheticalPods(nodes.snapshot, len(nodes))
    passed = run(Nodes(nodes.snapshot, rows, changes.adding(nominated)))
    places = np.flatnonzero(np.isin(rows, passed.row_numbers()))
    again = np.isin(places, [index for index, _ in nominated])
    alone = run(nodes.at(places[again]))
    return nodes.at(places[~again | np.isin(rows[places], alone.row_numbers())])


def filter_by_node(
    plan: ProfilePlan,
    plugins: Mapping[str, Plugin],
    cycle: CycleState,
    pod: Pod,
    nodes: Nodes,
    moving: Sequence[PodInfo],
) -> bool:
    """Whether all filters answer about a node by the pods on it, as far as some pods come and go.

    What plugins reserve is not known here: with any, it is false.
    """

    def is_by_node(name: str) -> bool:
        plugin = plugins[name]
        if not isinstance(plugin, FiltersByNodePlugin):
            return False
        return bool(PluginCall(name, "filters_by_node", plugin.filters_by_node)(cycle, pod, nodes, moving))

    if plan.reserves or plan.unreserves:
        return False
    return all(map(is_by_node, plan.undeclared_filters))


def state_without(
    plugins: Mapping[str, Plugin], cycle: CycleState, pod: Pod, snapshot: Snapshot, infos: Iterable[PodInfo]
) -> CycleState:
    """A copy of a cycle state in which plugins with `remove_pod` do not count some pods."""
    state = cycle.clone()
    for info in infos:
        node = NodeView(snapshot, snapshot.row_of[info.pod.spec.node_name])
        for name, plugin in plugins.items():
            if isinstance(plugin, PodChangePlugin):
                PluginCall(name, "remove_pod", plugin.remove_pod)(state, pod, info, node)
    return state


def _nominated(pod: Pod, nodes: Nodes) -> list[tuple[int, PodInfo]]:
    """Pods nominated to nodes of a view that count before this one: (index, pod)."""
    nominated = nodes.snapshot.nominated
    if not nominated:
        return []
    rows = {
        nodes.snapshot.row_of[name]: infos
        for name, infos in nominated.items()
        if name in nodes.snapshot.row_of
    }
    places = np.flatnonzero(np.isin(nodes.row_numbers(), list(rows)))
    return [
        (index, info)
        for index in places.tolist()
        for info in rows[int(nodes.row_numbers()[index])]
        if info.pod.priority >= pod.priority and info.pod.uid != pod.uid
    ]


def _run_once(
    calls: Sequence[PluginCall],
    plugins: Mapping[str, Plugin],
    cycle: CycleState,
    pod: Pod,
    nodes: Nodes,
    diagnosis: Diagnosis,
) -> Nodes:
    """The nodes that pass every filter; each is called with the nodes that passed those before it."""
    for call in calls:
        if not len(nodes):
            break
        plugin = plugins[call.plugin]
        if nodes.hypothetical_pods is not None and isinstance(plugin, PodChangePlugin):
            result = _one_by_one(call, plugin, cycle, pod, nodes)
        else:
            result = call.filter(cycle, pod, nodes)
        if result.codes is not None and result.codes.any():
            diagnosis.refuse(call.plugin, nodes, result)
            nodes = nodes.where(result.codes == 0)
    return nodes


def _one_by_one(
    call: PluginCall, plugin: PodChangePlugin, cycle: CycleState, pod: Pod, nodes: Nodes
) -> FilterResult:
    """The result of a plugin with `add_pod` and `remove_pod`: it is called for each changed node alone."""
    codes = np.zeros(len(nodes), np.int32)
    reasons: dict[Reason, int] = {}
    for indices, state in _parts(call, plugin, cycle, pod, nodes):
        result = call.filter(state, pod, nodes.at(indices)) if len(indices) else ALL
        if result.codes is not None:
            table = [0, *(reasons.setdefault(each, len(reasons) + 1) for each in result.reasons)]
            codes[indices] = np.array(table)[result.codes]
    return FilterResult(codes, tuple(reasons)) if reasons else ALL


def _parts(
    call: PluginCall, plugin: PodChangePlugin, cycle: CycleState, pod: Pod, nodes: Nodes
) -> Iterator[tuple[NDArray[np.intp], CycleState]]:
    """The unchanged nodes together, then each changed one with a state that includes its changes."""
    assert nodes.hypothetical_pods is not None
    changed = nodes.hypothetical_pods.indices()
    yield np.setdiff1d(np.arange(len(nodes)), changed), cycle
    for index in changed:
        state = cycle.clone()
        node = NodeView(nodes.snapshot, int(nodes.row_numbers()[index]))
        for info in nodes.hypothetical_pods.removed_on(index):
            PluginCall(call.plugin, "remove_pod", plugin.remove_pod)(state, pod, info, node)
        for info in nodes.hypothetical_pods.added_on(index):
            PluginCall(call.plugin, "add_pod", plugin.add_pod)(state, pod, info, node)
        yield np.array([index]), state
