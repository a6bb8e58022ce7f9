"""Deliberate bugs, each of which a campaign has to find.

    python -m tests.chaos.mutations [--runs 500] [NAME ...]

A mutation replaces one function of the scheduler by one with a bug. For each, runs of all scenarios in turn
are made until one fails.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
import typer

from moorage.api.pod import Pod
from moorage.client import informer as informer_module
from moorage.client.informer import Informer
from moorage.client.watch_events import IdleTimeout
from moorage.cluster.cache import Cache
from moorage.framework.interface.nodes import Nodes
from moorage.framework.runtime.framework import Framework
from moorage.framework.runtime.waiting_pods import WaitingPod
from moorage.http.errors import AnswerLost, ConnectionFailed, RequestError
from moorage.plugins.default_preemption import single_node
from moorage.plugins.default_preemption.budgets import Budgets
from moorage.plugins.default_preemption.plugin import DefaultPreemption
from moorage.plugins.default_preemption.victims import Victims, find_victims
from moorage.plugins.dynamic_resources import binding
from moorage.plugins.dynamic_resources.in_flight_allocations import InFlightAllocations
from moorage.plugins.gang_scheduling import GangScheduling
from moorage.plugins.node_ports import NodePorts
from moorage.queue.in_flight_events import InFlightEvents
from moorage.queue.scheduling_queue import SchedulingQueue
from moorage.scheduler.background_tasks import BackgroundTasks
from moorage.scheduler.binder import Binder
from moorage.scheduler.event_handlers import EventHandlers
from moorage.scheduler.schedule_one import ScheduleOne
from moorage.scheduler.scheduler import Scheduler
from moorage.services.leader_election import LeaderElector
from moorage_cluster.chaos.candidate import Candidate
from moorage_cluster.chaos.run import Outcome, run_script
from moorage_cluster.chaos.scenarios import SCENARIOS, new_script

Mutate = Callable[[pytest.MonkeyPatch], None]


class Found(NamedTuple):
    """The run that found a mutation."""

    runs: int
    scenario: str
    seed: int
    outcome: Outcome


def _replaced(owner: Any, name: str, replacement: Any) -> Mutate:
    return lambda patch: patch.setattr(owner, name, replacement)


def _nothing(*arguments: Any, **options: Any) -> None:
    """Does nothing."""


def _without(owner: Any, name: str) -> Mutate:
    return _replaced(owner, name, _nothing)


async def _acknowledged_early(self: Binder, pod: Pod, node_name: str) -> None:
    """A binding whose answer is lost counts as done."""
    try:
        await self._written(pod, node_name)
    except AnswerLost:
        return


async def _given_up_early(self: Binder, pod: Pod, node_name: str) -> None:
    """A binding whose answer is lost counts as failed."""
    await self._written(pod, node_name)


async def _any_failure_is_done(self: Binder, pod: Pod, node_name: str) -> None:
    """A binding that is refused counts as done."""
    try:
        await self._written(pod, node_name)
    except (RequestError, ConnectionFailed):
        return


async def _begins_as_standby(self: Scheduler, may_begin: Any) -> None:
    """Scheduling begins without the lease."""


async def _begins_with_old_state(self: Scheduler, may_begin: Any) -> None:
    """A standby begins with what it knows."""
    await may_begin.wait()


async def _renews_for_ever(self: LeaderElector) -> None:
    """A lease that cannot be renewed does not end the leader."""
    while not await self._pause(self._config.retry_period):
        await self._attempt()


def _puts_back_nothing(self: SchedulingQueue, queued: Any, *arguments: Any, **options: Any) -> None:
    self.done(queued.uid)


def _moves_nothing_for_nodes(patch: pytest.MonkeyPatch) -> None:
    original = SchedulingQueue.move_all

    def move_all(self: SchedulingQueue, event: Any, *arguments: Any, **options: Any) -> Any:
        return None if event.label.startswith("Node") else original(self, event, *arguments, **options)

    patch.setattr(SchedulingQueue, "move_all", move_all)


def _forgets_assuming(patch: pytest.MonkeyPatch) -> None:
    original = Cache.assume_pod

    def assume_pod(self: Cache, pod: Pod, *arguments: Any, **options: Any) -> Pod:
        assumed = original(self, pod, *arguments, **options)
        self.forget_pod(assumed)
        return assumed

    patch.setattr(Cache, "assume_pod", assume_pod)


def _misses_deletions_in_lists(patch: pytest.MonkeyPatch) -> None:
    original = Informer._replace

    def replace(self: Informer[Any], listing: dict[Any, Any], version: str) -> None:
        original(self, {**dict.fromkeys(self.objects), **listing}, version)

    patch.setattr(Informer, "_replace", replace)


def _undo_without_unreserve(self: ScheduleOne, attempt: Any, failure: Any) -> None:
    self._cache.forget_pod(attempt.pod)
    self.fail(attempt.queued, failure)


def _begins_nothing(self: BackgroundTasks, work: Any, **options: Any) -> None:
    work.close()


def _evicts_in_handlers(patch: pytest.MonkeyPatch) -> None:
    """A deleted pod stays in the cache."""
    patch.setattr(Cache, "remove_pod", _nothing)


def _keeps_deleted_nodes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Cache, "remove_node", _nothing)


def _loses_assigned_pods(patch: pytest.MonkeyPatch) -> None:
    """Pods that others have bound are not counted."""
    original = EventHandlers._on_node

    def on_node(self: EventHandlers, pod: Pod, old: Pod | None) -> None:
        if old is not None or self._cache.is_assumed(pod):
            original(self, pod, old)

    patch.setattr(EventHandlers, "_on_node", on_node)


def _evicts_equals(patch: pytest.MonkeyPatch) -> None:
    def potential_victims(self: DefaultPreemption, pod: Pod, nodes: Nodes, group: Any) -> Any:
        return nodes.snapshot.pods.priority.values <= pod.priority

    patch.setattr(DefaultPreemption, "potential_victims", potential_victims)


def _ignores_budgets(patch: pytest.MonkeyPatch) -> None:
    """No eviction violates a budget."""
    patch.setattr(Budgets, "pdb_violations_on_node", lambda self, pods: [False] * len(pods))
    patch.setattr(Budgets, "pdb_violations", lambda self, snapshot, places, pods: np.zeros(len(pods), bool))


def _spares_unprotected_pods_first(patch: pytest.MonkeyPatch) -> None:
    def unprotected_first(*arguments: Any) -> Victims:
        victims = find_victims(*arguments)
        order = np.lexsort((victims.violates, victims.place))
        return Victims(victims.nodes, victims.place[order], victims.pods[order], victims.violates[order])

    patch.setattr("moorage.plugins.default_preemption.plugin.find_victims", unprotected_first)
    patch.setattr(
        single_node,
        "_reprieve_order",
        lambda breaking: sorted(range(len(breaking)), key=breaking.__getitem__),
    )


def _survives_losing_the_lease(patch: pytest.MonkeyPatch) -> None:
    """The process goes on when the lease is lost."""
    patch.setattr(LeaderElector, "_renew", _renews_for_ever)
    patch.setattr(Candidate, "_restart_later", _nothing)


MUTATIONS: dict[str, Mutate] = {
    "a forgotten forget": _without(Cache, "forget_pod"),
    "no assuming": _forgets_assuming,
    "a binding is acknowledged early": _replaced(Binder, "bind", _acknowledged_early),
    "a refused binding counts as done": _replaced(Binder, "bind", _any_failure_is_done),
    "a lost answer counts as a failed binding": _replaced(Binder, "bind", _given_up_early),
    "scheduling without the lease": _replaced(Scheduler, "_wait_to_begin", _begins_as_standby),
    "a standby begins with what it knows": _replaced(Scheduler, "_wait_to_begin", _begins_with_old_state),
    "a lost lease does not end the leader": _survives_losing_the_lease,
    "a lost unreserve": _replaced(ScheduleOne, "_undo", _undo_without_unreserve),
    "a failed pod is not put back": _replaced(SchedulingQueue, "put_back", _puts_back_nothing),
    "backoff never ends": _without(SchedulingQueue, "flush_backoff"),
    "nodes wake no pods": _moves_nothing_for_nodes,
    "events in flight are not kept": _without(InFlightEvents, "note"),
    "a relist misses deletions": _misses_deletions_in_lists,
    "a half-open watch is trusted": _without(IdleTimeout, "_check"),
    "old events are applied": _replaced(informer_module, "is_newer", lambda *arguments: True),
    "deleted pods stay in the cache": _evicts_in_handlers,
    "deleted nodes stay in the cache": _keeps_deleted_nodes,
    "pods of others are not counted": _loses_assigned_pods,
    "host ports are not looked at": _replaced(NodePorts, "filter", lambda self, *arguments: _all()),
    "equals are evicted": _evicts_equals,
    "budgets are not looked at": _ignores_budgets,
    "budgets are as they were at first": _replaced(Budgets, "hold", lambda self, objects: True),
    "pods without a budget are spared first": _spares_unprotected_pods_first,
    "devices in flight do not count": _without(InFlightAllocations, "start"),
    "an allocation is given up while it is written": _replaced(binding, "_is_refused", lambda write: True),
    "a gang begins with fewer members": _without(GangScheduling, "placement_feasible"),
    "a permit has no time limit": _without(WaitingPod, "_expire"),
    "background work is not begun": _replaced(BackgroundTasks, "start", _begins_nothing),
    "unreserve raises": _replaced(Framework, "unreserve", lambda self, *arguments: 1 / 0),
}
"""The bugs by name."""


def _all() -> Any:
    from moorage.framework.interface.filter_result import ALL

    return ALL


def attempts(runs: int) -> Iterator[tuple[str, int]]:
    """So many scenarios with seeds, in turn."""
    for number in range(runs):
        seed, place = divmod(number, len(SCENARIOS))
        yield list(SCENARIOS)[place], seed


def find(name: str, runs: int) -> Found | None:
    """The first run that shows a mutation; None if none of them does."""
    for number, (scenario, seed) in enumerate(attempts(runs), 1):
        with pytest.MonkeyPatch.context() as patch:
            MUTATIONS[name](patch)
            outcome = run_script(new_script(scenario, seed))
        if not outcome.is_well:
            return Found(number, scenario, seed, outcome)
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--runs", type=int, default=500)
    options = parser.parse_args()
    missed = 0
    for name in options.names or MUTATIONS:
        found = find(name, options.runs)
        missed += found is None
        typer.echo(f"{name}: {_shown(found, options.runs)}")
    sys.exit(missed > 0)


def _shown(found: Found | None, runs: int) -> str:
    if found is None:
        return f"not found in {runs} runs"
    return f"run {found.runs} ({found.scenario} {found.seed}): {found.outcome.violations[0]}"


if __name__ == "__main__":
    main()
