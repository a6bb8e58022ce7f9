"""Running the pre-filters of a plan: which nodes are left to filter, and which filters are left out."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from moorage.api.pod import Pod
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import Code, Status, unresolvable
from moorage.framework.runtime.plan import CallDecision, ProfilePlan
from moorage.framework.runtime.plugin_call import PluginCall


def run_pre_filters(
    plan: ProfilePlan, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis
) -> Nodes | None:
    """The nodes left to filter, or None if a pre-filter rejected them all; sets the plan for what follows."""
    skipped: list[str] = []
    left = _run(plan, cycle, pod, nodes, diagnosis, skipped)
    cycle.plan = plan.leaving_out(CallDecision.PRE_FILTER_SKIPPED, skipped)
    return left


def _run(
    plan: ProfilePlan, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis, skipped: list[str]
) -> Nodes | None:
    wanted: AbstractSet[str] | None = None
    narrowed_by: list[str] = []
    refusal: Status | None = None
    for call in plan.pre_filters:
        answer = call(cycle, pod, nodes)
        if answer is None:
            continue
        if isinstance(answer, Status):
            if answer.code is Code.SKIP:
                skipped.append(call.plugin)
            elif answer.code is Code.UNRESOLVABLE:
                diagnosis.refuse_all(call.signed(answer))
                _stop_at(call, plan, cycle)
                return None
            elif answer.code is Code.UNSCHEDULABLE:
                refusal = call.signed(answer)
            elif answer.code is not Code.SUCCESS:
                raise call.errored(answer)
        elif isinstance(answer, AbstractSet):
            narrowed_by.append(call.plugin)
            wanted = frozenset(answer) if wanted is None else wanted & answer
            if not wanted:
                diagnosis.plugins.update(narrowed_by)
                diagnosis.refuse_all(unresolvable(_nothing_left(narrowed_by)))
                _stop_at(call, plan, cycle)
                return None
        else:
            raise call.failed(f"returned {answer!r}; return None, a status or a set of node names")
    diagnosis.plugins.update(narrowed_by)
    if refusal is not None:
        diagnosis.refuse_all(refusal)
        return None
    if wanted is None:
        return nodes
    diagnosis.left_out = unresolvable(f"node(s) didn't satisfy plugin(s) {_go_list(narrowed_by)}")
    return nodes.named(wanted)


def _stop_at(last: PluginCall, plan: ProfilePlan, cycle: CycleState) -> None:
    """End the attempt at a pre-filter: those after it count as not run, even if they are cached."""
    if cycle.results is not None:
        calls: Sequence[PluginCall] = plan.profile.enabled["pre_filter"]
        cycle.results.delete_state(cycle, {call.plugin for call in calls[calls.index(last) + 1 :]})


def _go_list(names: list[str]) -> str:
    return f"[{' '.join(sorted(set(names)))}]"


def _nothing_left(plugins: list[str]) -> str:
    if len(set(plugins)) == 1:
        return f"node(s) didn't satisfy plugin {plugins[0]}"
    return f"node(s) didn't satisfy plugin(s) {_go_list(plugins)} simultaneously"
