"""SchedulingGates: a pod with gates is not scheduled until the last one is removed."""

from __future__ import annotations

from moorage.api.pod import Pod
from moorage.client.kinds import Kind
from moorage.framework.interface.events import Action, Interest, Resource, on
from moorage.framework.interface.status import Status, unresolvable
from moorage.plugins.hint_helpers import about_itself


class SchedulingGates:
    """Keeps pods with scheduling gates out of the queue."""

    name = "SchedulingGates"
    watched_kinds: tuple[Kind, ...] = ()

    def events(self) -> tuple[Interest, ...]:
        """The last gate is removed."""
        return (
            on(
                Resource.POD,
                Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
                about_itself,
                per_equivalence_class=True,
            ),
        )

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Reject while there is any gate."""
        gates = pod.spec.scheduling_gates
        if not gates:
            return None
        return unresolvable(f"waiting for scheduling gates: [{' '.join([gate.name for gate in gates])}]")
