"""What the framework lends to plugins beyond the pod and the nodes: live objects, writing, time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

from moorage.api.pod import Pod
from moorage.clock import Clock, LoopClock
from moorage.cluster.objects import Objects
from moorage.framework.cycle import CycleState
from moorage.framework.diagnosis import Diagnosis
from moorage.framework.effects import Effects, NoEffects
from moorage.framework.nodes import Nodes
from moorage.framework.prebinding import PreBinding
from moorage.framework.reports import Reports
from moorage.framework.row_filters import RowFilters
from moorage.framework.waiting import WaitingPods

FilterRunner = Callable[[CycleState, Pod, Nodes, Diagnosis], Nodes]
"""Runs all filters of a profile over nodes: returns those that pass, and takes refusals down."""

RowFiltersOf = Callable[[CycleState], RowFilters | None]
"""The filters of a cycle for one node at a time; None where some of them look at more than that."""


@dataclass(slots=True)
class Handle:
    """What a plugin is given when it is made, if it asks for a `handle`.

    objects: the live tables, for plugins that assume changes (`ObjectTable.assume`) in reserve and take
        them back in unreserve; what a cycle reads comes from `nodes.objects`, which does not move.
    run_filters: the profile's filters, with nominated pods counted in; for plugins that ask what would be
        if (`Nodes.changes`).
    row_filters: the same for one node at a time, where what they say of a node can be remembered.
    """

    objects: Objects = field(default_factory=Objects)
    effects: Effects = field(default_factory=NoEffects)
    clock: Clock = field(default_factory=LoopClock)
    random: Random = field(default_factory=Random)
    waiting: WaitingPods | None = None
    pre_binding: PreBinding = field(default_factory=PreBinding)
    reports: Reports = field(default_factory=Reports)
    run_filters: FilterRunner | None = None
    row_filters: RowFiltersOf = lambda cycle: None

    def for_profile(self, run_filters: FilterRunner, row_filters: RowFiltersOf) -> Handle:
        """The same for one profile of several: all that is shared stays shared."""
        if self.waiting is None:
            self.waiting = WaitingPods(self.clock)
        return replace(self, run_filters=run_filters, row_filters=row_filters)

    async def wait_until(self, condition: Callable[[], bool], timeout_seconds: float) -> bool:
        """Wait for objects to change until `condition` holds; False if the time is over first.

        What `condition` raises ends the wait and is raised here.
        """
        if condition():
            return True
        outcome: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def look() -> None:
            if outcome.done():
                return
            try:
                if condition():
                    outcome.set_result(True)
            except Exception as error:
                outcome.set_exception(error)

        def give_up() -> None:
            if not outcome.done():
                outcome.set_result(False)

        timer = self.clock.call_later(timeout_seconds, give_up)
        unsubscribe = self.objects.subscribe(look)
        try:
            return await outcome
        finally:
            timer.cancel()
            unsubscribe()
