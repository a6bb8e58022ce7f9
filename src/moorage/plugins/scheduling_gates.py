"""SchedulingGates: a pod with gates is not tried until the last one is lifted."""

from __future__ import annotations

from moorage.api.pod import Pod
from moorage.client.kinds import Kind
from moorage.framework.interface.events import Action, Interest, Resource, on
from moorage.framework.interface.status import Status, unresolvable
from moorage.plugins.queueing_hints import about_itself


class SchedulingGates:
    """Keeps pods with scheduling gates out of the queue."""

    name = "SchedulingGates"
    watched_kinds: tuple[Kind, ...] = ()

    def events(self) -> tuple[Interest, ...]:
        """The last gate may be lifted."""
        return (
            on(
                Resource.POD,
                Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
                about_itself,
                per_equivalence_class=True,
            ),
        )

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Refuse while there is any gate."""
        gates = [gate.name for gate in pod.spec.scheduling_gates]
        if not gates:
            return None
        return unresolvable(f"waiting for scheduling gates: [{' '.join(gates)}]")
