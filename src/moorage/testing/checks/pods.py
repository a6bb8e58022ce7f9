"""Hypothetical pods: added to nodes or removed from them, as for nominations and preemption."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.cluster.pod_table import PodInfo
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.filter_result import Reason
from moorage.framework.interface.nodes import NodeView
from moorage.testing.objects import pod as make_pod
from moorage.testing.plugin_answers import StartedCycle, begin, refusals, shown
from moorage.testing.stage import Stage
from moorage.testing.trial import Check, Trial

_NODES_LOOKED_AT: Final = 3
"""Number of nodes checked in each cluster; every node requires two more clusters."""


def _begun(trial: Trial) -> StartedCycle | None:
    """A cycle in which the filter is called; None if it is not."""
    begun = begin(trial.stage, trial.pod)
    return None if begun.skips else begun


def _added_pod(view: NodeView, trial: Trial) -> PodInfo:
    """A pod on a node, similar to the trial's pod and so likely to affect it."""
    metadata = replace(trial.pod.metadata, name="guest", uid="uid-of-guest")
    spec = replace(trial.pod.spec, node_name=view.name)
    return PodInfo(replace(trial.pod, metadata=metadata, spec=spec))


def _refusals(stage: Stage, cycle: CycleState, trial: Trial) -> dict[str, Reason]:
    return refusals(stage, cycle.clone(), trial.pod, stage.nodes)


def _not_undone(trial: Trial) -> Iterator[str]:
    stage, pod, begun = trial.stage, trial.pod, _begun(trial)
    if begun is None:
        return
    before = _refusals(stage, begun.cycle, trial)
    for view in stage.nodes:
        state = begun.cycle.clone()
        added = _added_pod(view, trial)
        stage.call("add_pod", state, pod, added, view)
        stage.call("remove_pod", state, pod, added, view)
        if _refusals(stage, state, trial) != before:
            yield f"after add_pod and remove_pod of one pod on {view.name}, filter answers otherwise"
        for info in view.pods[:1]:
            state = begun.cycle.clone()
            stage.call("remove_pod", state, pod, info, view)
            stage.call("add_pod", state, pod, info, view)
            if _refusals(stage, state, trial) != before:
                yield f"after remove_pod and add_pod of one pod on {view.name}, filter answers otherwise"


def _not_cloned(trial: Trial) -> Iterator[str]:
    stage, pod, begun = trial.stage, trial.pod, _begun(trial)
    if begun is None:
        return
    before = refusals(stage, begun.cycle, pod, stage.nodes)
    for view in stage.nodes:
        stage.call("add_pod", begun.cycle.clone(), pod, _added_pod(view, trial), view)
        if refusals(stage, begun.cycle, pod, stage.nodes) != before:
            yield (
                f"add_pod on a copy of the state changed the original ({view.name}); "
                "give what you write into the cycle a method clone()"
            )
            return


def _hypothetical_differences(trial: Trial) -> Iterator[str]:
    begun = _begun(trial)
    if begun is None:
        return
    for view in list(trial.stage.nodes)[:_NODES_LOOKED_AT]:
        for info in view.pods[:1]:
            real = tuple(each for each in trial.cluster.objects if not _is(each, info.pod))
            there = trial.twin(f"without {info.pod.key}", real)
            yield from _compared(trial, begun, view.without([info]), there, "remove_pod", info)
        added = PodInfo(make_pod("guest", on=view.name, labels={"app": "a"}, requests={"cpu": "1"}))
        there = trial.twin(f"guest on {view.name}", (*trial.cluster.objects, added.pod))
        supposed = NodeView(view.snapshot, view.row, (added,))
        yield from _compared(trial, begun, supposed, there, "add_pod", added)


def _is(each: Object, pod: Pod) -> bool:
    return isinstance(each, Pod) and each.uid == pod.uid


def _compared(
    trial: Trial, begun: StartedCycle, supposed: NodeView, there: Stage, method: str, moved: PodInfo
) -> Iterator[str]:
    """Whether a hypothetical node gets the same result as in `there`, with the pod actually added or gone."""
    stage, pod, name = trial.stage, trial.pod, supposed.name
    state = begun.cycle.clone()
    if stage.has(method):
        stage.call(method, state, pod, moved, NodeView(supposed.snapshot, supposed.row))
    reason = refusals(stage, state, pod, supposed.as_nodes()).get(name)
    really = begin(there, pod)
    if really.skips or name not in really.candidates.names:
        return
    truth = really.refused.get(name)
    if (reason is None) != (truth is None):
        what = "with one pod more" if method == "add_pod" else "without one of its pods"
        yield f"of {name} as it would be {what}, filter says: {shown(reason)}; where it is so: {shown(truth)}"


CHECKS = (
    Check(
        "pods-come-and-go",
        "add_pod and remove_pod of the same pod undo each other.",
        _not_undone,
        ("add_pod", "remove_pod"),
    ),
    Check(
        "state-is-cloned",
        "What add_pod does to a copy of the cycle's state leaves the original alone.",
        _not_cloned,
        ("add_pod",),
    ),
    Check(
        "what-would-be",
        "A node with pods taken away or added is judged as if that were so: preemption asks in this way.",
        _hypothetical_differences,
        ("filter", "filter_node"),
    ),
)
