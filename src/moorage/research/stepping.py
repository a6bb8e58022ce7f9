"""Simulations that are controlled step by step: by a notebook, or by a policy of one's own."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Final, Self

from moorage.api.decode import InputError
from moorage.api.pod import Pod
from moorage.explain.evaluation import all_refusals
from moorage.explain.report import report
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.nodes import Nodes
from moorage.research.node_state import NodeState, node_states
from moorage.research.own_thread import LoopThread
from moorage.research.results import PodDecision, SimulatedWorkload, pod_decision, simulated_workload
from moorage.research.scheduler_options import seconds_of
from moorage.research.stepped_scheduler import SteppedScheduler
from moorage.simulation.records import PENDING_PODS
from moorage.simulation.results import result_of
from moorage.simulation.run import SimulationRun
from moorage.simulation.scenario import Scenario
from moorage.simulation.settings import Settings
from moorage.simulation.simulator import Simulation
from moorage.simulation.virtual_loop import VirtualLoop

_OVER: Final = "the simulation is over"


class PlacementError(InputError):
    """A pod was not placed on a node: the reasons of the plugins that reject it there."""


class SteppedSimulation:
    """A simulation in which time passes only in `step` and `run`.

    `step` goes on to the next pod that a node is to be chosen for. Then `place` and `decline` decide about
    that pod, or about any that is pending. If neither is called for the pod at hand, the scheduler decides at
    the next step. The same calls with the same seed have the same results.
    """

    def __init__(self, scenario: Scenario, settings: Settings) -> None:
        self._settings = settings
        self._thread = LoopThread(VirtualLoop)
        self._is_open = True
        self._thread.run(self._begin(scenario))

    async def _begin(self, scenario: Scenario) -> None:
        settings, made = self._settings, list[SteppedScheduler]()

        def new_scheduler(*args: Any, **options: Any) -> SteppedScheduler:
            # Has no reference to this object: its loop would keep it from being forgotten, and closed.
            made.append(SteppedScheduler(*args, **options))
            return made[0]

        self._simulation = Simulation(
            scenario.cluster,
            scenario.workload(settings.seed),
            settings,
            scenario.script,
            new_scheduler=new_scheduler,
        )
        self._clock = asyncio.get_running_loop()
        self._running = asyncio.create_task(self._simulation.run())
        await asyncio.sleep(0)
        if self._running.done():
            self._running.result()
        [self._scheduler] = made

    # -- time

    def step(self) -> Pod | None:
        """Go on until a pod needs a node, and return it; None: the simulation is over.

        A pod that `step` returned before, and that was neither placed nor declined, is decided about first.
        """
        self._go_on(None, pauses=True)
        return self.pod

    def run(self, until: float | str | None = None) -> SimulatedWorkload:
        """Let the scheduler decide up to a time, in seconds or such as `2h`, or to the end."""
        self._go_on(seconds_of(until), pauses=False)
        return self.result()

    def _go_on(self, until_seconds: float | None, *, pauses: bool) -> None:
        if not self._is_open:
            return
        self._scheduler.pauses = pauses
        try:
            self._thread.run(self._going_on(until_seconds))
        except BaseException:
            self.close()
            raise
        if self._running.done():
            self.close()

    async def _going_on(self, until_seconds: float | None) -> None:
        self._scheduler.resume()
        ended: list[asyncio.Future[None]] = [self._running]
        if self._scheduler.pauses:
            ended.append(self._scheduler.paused)
        seconds = None if until_seconds is None else max(until_seconds - self._clock.time(), 0.0)
        await asyncio.wait(ended, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if self._running.done():
            self._running.result()

    @property
    def now(self) -> float:
        """Virtual time since the start, in seconds."""
        return self._clock.time()

    @property
    def is_over(self) -> bool:
        """Whether nothing is going to happen any more, or it was closed."""
        return not self._is_open

    # -- what there is

    @property
    def pod(self) -> Pod | None:
        """The pod at hand: the one that `step` returned, until it is placed or declined."""
        at_hand = self._scheduler.at_hand
        return None if at_hand is None else at_hand.pod

    @property
    def pending(self) -> list[Pod]:
        """All pods without a node that have arrived, those first that are tried first."""
        return self._scheduler.waiting()

    @property
    def nodes(self) -> list[NodeState]:
        """All nodes, with what is on them."""
        return list(node_states(self._scheduler.cache))

    def columns(self) -> Nodes:
        """All nodes as plugins see them, in columns; valid until the next call."""
        return Nodes(self._scheduler.cache.snapshot())

    @property
    def waiting_pod_seconds(self) -> float:
        """How long all pods have waited for nodes until now, added up, in seconds."""
        course = self._simulation.records.course
        course.advance(self.now)
        return course.means()[PENDING_PODS] * course.seconds

    @property
    def attempts(self) -> int:
        """How often the pod at hand was popped from the queue, this time included; 0: none is at hand."""
        at_hand = self._scheduler.at_hand
        return 0 if at_hand is None else at_hand.attempts

    @property
    def waited_seconds(self) -> float:
        """For how long the pod at hand has been in the queue; 0: none is at hand."""
        at_hand = self._scheduler.at_hand
        since = None if at_hand is None else at_hand.first_attempt
        return 0.0 if since is None else self.now - since

    # -- decisions

    def feasible(self, pod: Pod | str | None = None) -> list[str]:
        """The nodes that pass the filters for a pod, by default the one at hand."""
        return self._scheduler.evaluate(self._pending(pod), CycleState()).feasible.names

    def decide(self, pod: Pod | str | None = None) -> PodDecision:
        """What the scheduler would decide about a pod, by default the one at hand; nothing changes."""
        return pod_decision(report(self._scheduler.decide(self._pending(pod))))

    def place(self, node: str, pod: Pod | str | None = None) -> None:
        """Bind a pod, by default the one at hand, to a node; PlacementError if it cannot run there."""
        chosen, cycle = self._open_to_decisions(pod), CycleState()
        evaluated = self._scheduler.evaluate(chosen, cycle)
        where = f"pod {chosen.key}"
        if node not in evaluated.feasible.names:
            raise PlacementError(where, f"does not fit on {node}: {self._reasons(chosen, node)}")
        if not self._thread.run(self._scheduler.place(chosen, evaluated, cycle, node)):
            raise PlacementError(where, f"was rejected on {node} when it was to be bound there")

    def decline(self, pod: Pod | str | None = None) -> None:
        """Place a pod, by default the one at hand, nowhere: it is tried again after its backoff.

        One that fits nowhere is tried again when something has changed that may help it.
        """
        self._thread.run(self._scheduler.decline(self._open_to_decisions(pod)))

    def _open_to_decisions(self, pod: Pod | str | None) -> Pod:
        chosen = self._pending(pod)
        if why := self._scheduler.why_not(chosen):
            raise PlacementError(f"pod {chosen.key}", why)
        return chosen

    def _pending(self, pod: Pod | str | None) -> Pod:
        if not self._is_open:
            raise InputError("", _OVER)
        if pod is None:
            if self.pod is None:
                raise InputError("", "no pod is at hand; step() goes on to the next one")
            return self.pod
        key = pod if isinstance(pod, str) else pod.key
        key = key if "/" in key else f"default/{key}"
        for each in self.pending:
            if each.key == key:
                return each
        raise InputError("", f"no pod {key} waits for a node")

    def _reasons(self, pod: Pod, node: str) -> str:
        """Why a pod cannot run on a node: the reasons of every filter that rejects it."""
        nodes = self.columns()
        row = nodes.snapshot.row_of.get(node)
        if row is None:
            return "there is no such node"
        refusals = all_refusals(self._scheduler.framework_of(pod), pod, nodes)
        texts = [f"{each.plugin}: {each.message}" for each in refusals.cluster_wide]
        texts += [f"{each.plugin}: {', '.join(each.reasons)}" for each in refusals.of(row)]
        return "; ".join(texts)

    # -- the end

    def result(self) -> SimulatedWorkload:
        """The results up to now."""
        records, simulation = self._simulation.records, self._simulation
        records.course.advance(self.now)
        result = result_of(records, self._settings.seed, is_complete=simulation.is_complete)
        return simulated_workload(SimulationRun(result, records.nodes))

    def close(self) -> None:
        """End it: time does not pass any more, results can still be read."""
        self._is_open = False
        self._thread.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "over" if self.is_over else f"{len(self.pending):,} pods pending"
        return f"simulation at {self.now:,.3f} s, {state}"
