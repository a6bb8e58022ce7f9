"""Shadow mode and groups: members are bound one by one, and were decided in one cycle."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.base import Condition, ObjectMeta
from moorage.api.pod import Pod, PodSchedulingGate
from moorage.api.pod_groups import PodGroup
from moorage.client.kinds import POD
from moorage.scheduler.shadow.bindings import ShadowHandlers
from moorage.scheduler.shadow.report import ShadowReport
from moorage.scheduler.shadow.scheduler import ShadowScheduler
from moorage.services.metrics import Metrics
from moorage.sim.group_recording import GroupStep
from tests.scheduler.recorded_runs import Stage, recorded_groups, staged
from tests.scheduler.test_shadow import Reordered, shadow

REFUSED = (Condition(type="PodScheduled", status="False", reason="Unschedulable", message="0/6 nodes"),)


class Watched:
    """Shadow mode beside a scheduler that is the test itself: it binds what the test says."""

    def __init__(self, stage: Stage, scheduler: ShadowScheduler, report: ShadowReport, path: Path) -> None:
        self.stage = stage
        self.scheduler = scheduler
        self.report = report
        self._path = path
        step = next(step for step in stage.recording.steps if isinstance(step, GroupStep) and step.pods)
        self.group = next(obj for obj in step.put if isinstance(obj, PodGroup))
        self.pods = list(step.pods)
        stage.put(step.put)

    async def adds(self, *pods: Pod) -> None:
        self.stage.put(pods)
        await self.stage.settles()

    async def changes(self, pod: Pod, **status: Any) -> None:
        known = self.stage.store.table(POD)[pod.namespace, pod.name]
        self.stage.store.update(POD, replace(known, status=replace(known.status, **status)))
        await self.stage.settles()

    async def binds(self, pod: Pod, node: str) -> None:
        known = self.stage.store.table(POD)[pod.namespace, pod.name]
        self.stage.store.update(POD, replace(known, spec=replace(known.spec, node_name=node)))
        await self.stage.settles()

    async def passes(self, seconds: float) -> None:
        self.stage.clock.advance(seconds)
        await self.stage.settles()

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self._path.read_text().splitlines()]


def watched(scenario: Callable[[Watched], Awaitable[None]], path: Path) -> None:
    report = ShadowReport(Metrics(), path)

    async def run() -> None:
        async with staged(recorded_groups("plain-gang-1")) as stage:
            scheduler = shadow(stage, report, seed=1)
            await stage.settles()
            await scenario(Watched(stage, scheduler, report, path))
        report.close()

    asyncio.run(run())


def test_a_group_is_compared_when_its_last_member_is_bound(tmp_path: Path) -> None:
    async def scenario(watch: Watched) -> None:
        await watch.adds(*watch.pods)
        for pod in watch.pods[:-1]:
            await watch.binds(pod, "node-04")
        assert watch.lines == []
        await watch.binds(watch.pods[-1], "node-04")
        [line] = watch.lines
        assert line["nodes"] == {pod.key: "node-04" for pod in watch.pods}
        assert (line["group"], line["result"]) == (watch.group.key, "different")
        assert line["member"] in line["nodes"]
        assert watch.report.status.profiles == {}
        [groups] = watch.report.status.groups.values()
        assert (groups.same, groups.tie, groups.different) == (0, 0, 1)

    watched(scenario, tmp_path / "report")


def test_members_that_are_found_unschedulable_are_not_waited_for(tmp_path: Path) -> None:
    async def scenario(watch: Watched) -> None:
        await watch.adds(*watch.pods)
        *bound, refused = watch.pods
        for pod in bound:
            await watch.binds(pod, "node-04")
        await watch.changes(refused, conditions=REFUSED)
        [line] = watch.lines
        assert line["nodes"].keys() == {pod.key for pod in bound}

    watched(scenario, tmp_path / "report")


def test_a_member_that_came_too_late_does_not_count(tmp_path: Path) -> None:
    async def scenario(watch: Watched) -> None:
        *early, late = watch.pods
        await watch.adds(*early)
        await watch.binds(early[0], "node-04")
        await watch.adds(late)
        for pod in early[1:]:
            await watch.binds(pod, "node-04")
        [line] = watch.lines
        assert late.key not in line["ours"]
        await watch.binds(late, "node-04")
        assert [line["nodes"].keys() for line in watch.lines[1:]] == [{late.key}]

    watched(scenario, tmp_path / "report")


def test_what_is_not_known_after_some_seconds_is_not_waited_for(tmp_path: Path) -> None:
    async def scenario(watch: Watched) -> None:
        await watch.adds(*watch.pods)
        await watch.binds(watch.pods[0], "node-04")
        await watch.passes(4)
        assert watch.lines == []
        await watch.passes(1)
        [line] = watch.lines
        assert line["nodes"].keys() == {watch.pods[0].key}

    watched(scenario, tmp_path / "report")


def test_a_member_that_is_deleted_at_once_was_bound_with_the_others(tmp_path: Path) -> None:
    async def scenario(watch: Watched) -> None:
        await watch.adds(*watch.pods)
        for pod in watch.pods[:2]:
            await watch.binds(pod, "node-04")
        watch.stage.remove([watch.pods[0]])
        await watch.stage.settles()
        assert watch.lines == []
        for pod in watch.pods[2:]:
            await watch.binds(pod, "node-04")
        [line] = watch.lines
        assert line["nodes"].keys() == {pod.key for pod in watch.pods}
        counted = {pod.name for pod in watch.scheduler.cache.pods()}
        assert {pod.name for pod in watch.pods} - counted == {watch.pods[0].name}

    watched(scenario, tmp_path / "report")


def test_pods_do_not_wait_for_a_group_that_is_not_complete(tmp_path: Path) -> None:
    async def scenario(watch: Watched) -> None:
        assert watch.group.quorum > 1
        await watch.adds(watch.pods[0])
        single = next(step.pod for step in watch.stage.recording.pods())
        await watch.adds(single)
        await watch.binds(single, "node-04")
        assert [line["pod"] for line in watch.lines] == [single.key]

    watched(scenario, tmp_path / "report")


@pytest.mark.parametrize("seed", range(3))
def test_bindings_of_groups_and_pods_that_arrive_in_any_order(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report, path = ShadowReport(Metrics(), tmp_path / "report"), tmp_path / "report"

    async def run() -> None:
        async with staged(recorded_groups("gang-2")) as stage:
            shadow(stage, report, seed=1)
            await stage.settles()
            stage.scheduler()
            await stage.settles()
            reordered = Reordered(stage.store.bind, Random(seed))
            monkeypatch.setattr(stage.store, "bind", reordered)
            steps = [step for step in stage.recording.steps if isinstance(step, GroupStep)]
            for step in steps:
                stage.put(step.put)
                stage.put(step.pods)
            stage.put(step.pod for step in stage.recording.pods())
            for _ in range(40):
                await stage.settles()
                stage.clock.advance(0.25)
                reordered.flush()
            await stage.settles()
        report.close()

    asyncio.run(run())
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert sum("group" in line for line in lines) > 1
    assert sum("pod" in line for line in lines) > 1
    assert [line for line in lines if line["result"] == "different"] == []


@pytest.mark.parametrize("follows_nominations", [True, False])
def test_nominations_that_come_between_bindings_do_not_count_in_their_decision(
    follows_nominations: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without following nominations, the decision would differ: the nodes are promised to another pod."""
    if not follows_nominations:
        monkeypatch.setattr(ShadowHandlers, "nominated_since", lambda handlers, time: [])
    report, path = ShadowReport(Metrics(), tmp_path / "report"), tmp_path / "report"

    async def run() -> None:
        async with staged(recorded_groups("plain-gang-1")) as stage:
            scheduler = shadow(stage, report, seed=1)
            await stage.settles()
            stage.scheduler()
            await stage.settles()
            held = Reordered(stage.store.bind, Random(3))
            monkeypatch.setattr(stage.store, "bind", held)
            watch = Watched(stage, scheduler, report, path)
            await watch.adds(*watch.pods)
            first = watch.pods[0]
            gate = (PodSchedulingGate(name="held"),)
            spec = replace(first.spec, scheduling_group=None, priority=10**6, scheduling_gates=gate)
            for name in ("node-02", "node-04"):
                pods = [
                    replace(
                        first, metadata=ObjectMeta(name=f"{name}-{number}", namespace="default"), spec=spec
                    )
                    for number in range(20)
                ]
                await watch.adds(*pods)
                for pod in pods:
                    await watch.changes(pod, conditions=REFUSED, nominated_node_name=name)
            held.flush()
            await watch.passes(5)
        report.close()

    asyncio.run(run())
    line = json.loads(path.read_text().splitlines()[0])
    assert (line["result"] != "different") is follows_nominations
    assert line.get("reordered", False) is follows_nominations
