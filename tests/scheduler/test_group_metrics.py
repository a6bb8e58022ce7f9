"""The metrics of groups of pods in a running scheduler."""

from __future__ import annotations

from typing import Any

from moorage.client.kinds import POD_DISRUPTION_BUDGET
from moorage.emulation.kubernetes_version import V1_37
from moorage.scheduler.observers import MetricsObserver, read_gauges
from moorage.services.metrics import Metrics
from tests.scheduler.running import SchedulerHarness, in_harness
from tests.scheduler.test_groups import Groups


def values(metric: Any) -> dict[tuple[str, ...], float]:
    """The counts of a metric by its labels: of observations, where it is a histogram."""
    cells = metric.cells.items()
    found = {labels: sum(cell.counts) if hasattr(cell, "counts") else cell.value for labels, cell in cells}
    return {labels: value for labels, value in found.items() if value}


class MeasuredGroups(Groups):
    """A scheduler whose metrics are read."""

    def __init__(self, harness: SchedulerHarness, **gates: bool) -> None:
        version = V1_37.with_gates({"GenericWorkload": True, **gates})
        self.metrics = Metrics(version=version)
        super().__init__(harness, version=version, observer=MetricsObserver(self.metrics))

    def incoming(self) -> tuple[dict[tuple[str, ...], float], dict[tuple[str, ...], float]]:
        """Pods and entities that came into queues."""
        read_gauges(self.metrics, self.scheduler)
        return values(self.metrics.queue_incoming_pods), values(self.metrics._incoming_entities)


def test_the_metrics_of_a_group_that_preempts() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        groups = MeasuredGroups(harness)
        metrics = groups.metrics
        await harness.add_priority("high", 1000)
        await harness.add_node("n1", cpu="4")
        budget = {
            "metadata": {"name": "b"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "low-0"}}},
        }
        budget |= {"apiVersion": POD_DISRUPTION_BUDGET.api_version, "kind": "PodDisruptionBudget"}
        await harness.client.create(POD_DISRUPTION_BUDGET, "default", budget)
        await groups.add_group("low", min_count=2)
        await groups.add_pods("low", 2, terminationGracePeriodSeconds=0)
        for number in range(2):
            await harness.add_pod(f"small-{number}", terminationGracePeriodSeconds=0)
        await harness.passes(2)
        algorithms = sum(metrics.scheduling_algorithm_duration.counts)
        await groups.add_group("job", min_count=4, priorityClassName="high")
        await groups.add_pods("job", 4, priorityClassName="high")
        await harness.passes(20)
        assert len(await groups.bound("job")) == 4
        assert values(metrics.workload_preemption_attempts) == {("Success",): 1}
        assert metrics.workload_preemption_victims.sum == 4
        assert metrics.preemption_victims.sum == 0
        assert metrics.preemption_workload_disruptions.labels("podgroup").sum == 2
        assert values(metrics.preemption_pdb_violations) == {("podgroup",): 1}
        assert values(metrics.preemption_evaluation_duration) == {("podgroup", "Success"): 1}
        assert values(metrics.preemption_execution_duration) == {("podgroup", "success"): 1}
        attempts = values(metrics.podgroup_schedule_attempts)
        profile = "default-scheduler"
        assert attempts == {("scheduled", profile): 2, ("waiting_on_preemption", profile): 1}
        assert values(metrics.podgroup_attempt_duration) == attempts
        assert sum(metrics.podgroup_algorithm_duration.counts) == 3
        assert sum(metrics.scheduling_algorithm_duration.counts) - algorithms > 4
        assert not values(metrics.generated_placements)
        points = {point for point, *_ in values(metrics.framework_extension_point_duration)}
        assert {"PlacementFeasible", "PodGroupPostFilter"} <= points

    in_harness(scenario)


def test_the_metrics_of_placements() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        groups = MeasuredGroups(harness, TopologyAwareWorkloadScheduling=True)
        metrics = groups.metrics
        await harness.add_node("n1", cpu="2")
        for name, count in (("fits", 2), ("waits", 1)):
            await groups.add_group(name, min_count=count)
            await groups.add_pods(name, count)
            await harness.passes(0.5)
        profile = "default-scheduler"
        assert values(metrics.generated_placements) == {(profile,): 2}
        evaluations = values(metrics.placement_evaluations)
        assert evaluations == {("feasible", profile): 1, ("infeasible", profile): 1}
        assert values(metrics.placement_evaluation_duration) == evaluations
        assert values(metrics.workload_preemption_attempts) == {("UnschedulableAndUnresolvable",): 1}
        sampled = {labels[:2] for labels in values(metrics.plugin_execution_duration)}
        assert ("TopologyPlacementGenerator", "PlacementGenerate") in sampled
        assert ("DefaultPreemption", "PodGroupPostFilter") in sampled

    in_harness(scenario)


def test_a_group_that_stays_in_its_queue_is_not_counted_again_but_its_pods_are() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        groups = MeasuredGroups(harness)
        await harness.add_node("n1", cpu="4")
        await groups.add_group("job", min_count=1)
        await groups.add_pods("job", 2, schedulingGates=[{"name": "later"}])
        await harness.passes(1)
        place = ("unschedulable", "UnscheduledPodAdd")
        pods, entities = groups.incoming()
        assert entities[*place, "podgroup"] < pods[place]
        assert (*place, "pod") not in entities
        await harness.add_pod("huge", cpu="100")
        await harness.passes(1)
        pods, entities = groups.incoming()
        failed = ("unschedulable", "ScheduleAttemptFailure")
        assert pods[failed] == 1
        assert (*failed, "pod") not in entities  # Its strategy is to wait there.
        assert entities["active", "UnscheduledPodAdd", "pod"] == 1

    in_harness(scenario)
