"""Shadow mode: decisions compared with those of a scheduler that binds."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from moorage.config.load import parse_profiles
from moorage.config.types import SchedulerConfiguration
from moorage.emulation.kubernetes_version import V1_36, KubernetesVersion
from moorage.plugins import default_registry
from moorage.scheduler.recorder import Recorder
from moorage.scheduler.recording_file import RecordingFile
from moorage.scheduler.shadow.bindings import ShadowHandlers
from moorage.scheduler.shadow.report import Agreement, ShadowReport
from moorage.scheduler.shadow.scheduler import ShadowScheduler
from moorage.services.metrics import Metrics
from moorage.sim.recording import Recording, load_recording
from moorage.sim.replay import ReplayResult
from moorage.sim.store_client import StoreInformer
from tests.scheduler.recorded_runs import FAMILIES, GROUP_FAMILIES, Stage, recorded, recorded_groups, staged

MOST_PODS = 24


def shadow(
    stage: Stage, report: ShadowReport, seed: int, recorder: Recorder | None = None
) -> ShadowScheduler:
    recording = stage.recording
    scheduler = ShadowScheduler(
        stage.client,
        recording.config,
        default_registry(),
        stage.clock,
        Random(seed),
        "host",
        plugin_threads=0,
        new_informer=StoreInformer,
        version=recording.version,
        report=report,
        recorder=recorder,
    )
    stage.runs(scheduler.run())
    return scheduler


def compared(
    recording: Recording,
    path: Path,
    *,
    seed: int = 1,
    pods: int = MOST_PODS,
    config: SchedulerConfiguration | None = None,
    record: Path | None = None,
    report: ShadowReport | None = None,
) -> list[Any]:
    """What is reported of pods that a scheduler of our own binds."""
    report = report or ShadowReport(Metrics(), path)

    async def run() -> None:
        recorder = None
        if record is not None:
            reference = f"kube-scheduler v{recording.version.number}"
            recorder = Recorder(RecordingFile(record, recording.config, recording.version, reference))
        async with staged(recording) as stage:
            shadow(stage, report, seed, recorder)
            await stage.settles()
            stage.scheduler(config=config or recording.config)
            await stage.plays(pods)
        report.close()
        if recorder is not None:
            recorder.close()

    asyncio.run(run())
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("family", FAMILIES)
def test_equal_seeds_agree_on_every_pod(family: str, tmp_path: Path) -> None:
    lines = compared(recorded(family), tmp_path / "report")
    assert [line for line in lines if line["result"] != "same"] == []
    assert lines
    assert not any(line.get("reordered") for line in lines)


@pytest.mark.parametrize("family", ["mixed", "topology-spread", "preemption-hard", "dra"])
def test_other_seeds_agree_up_to_ties(family: str, tmp_path: Path) -> None:
    lines = compared(recorded(family), tmp_path / "report", seed=2)
    assert {line["result"] for line in lines} <= {"same", "tie"}
    assert lines


@pytest.mark.parametrize("name", GROUP_FAMILIES)
@pytest.mark.parametrize("seed", [1, 2])
def test_groups_agree_up_to_ties_and_can_be_replayed(name: str, seed: int, tmp_path: Path) -> None:
    path = tmp_path / "recording.json"
    lines = compared(recorded_groups(name), tmp_path / "report", seed=seed, record=path)
    assert [line for line in lines if line["result"] == "different" or line.get("reordered")] == []
    assert any("group" in line for line in lines)
    result = ReplayResult()
    result.add(load_recording(path), default_registry())
    assert [str(each) for each in result.differences] == []
    assert result.pods == len(lines)


@pytest.mark.parametrize(
    ("name", "plugin"),
    [
        ("gang-2", "NodeResourcesBalancedAllocation"),
        ("gang-late-7", "NodeResourcesFit"),
        ("gang-spread-3", "NodeResourcesBalancedAllocation"),
        ("plain-gang-1", "NodeResourcesFit"),
    ],
)
def test_the_plugin_with_another_weight_explains_each_difference_of_groups(
    name: str, plugin: str, tmp_path: Path
) -> None:
    recording, report = recorded_groups(name), ShadowReport(Metrics(), tmp_path / "report")
    score = {"enabled": [{"name": plugin, "weight": 40}]}
    other = configured(recording.version, score=score)
    lines = compared(recording, tmp_path / "report", report=report, config=other)
    different = [line for line in lines if line["result"] == "different"]
    assert sum("group" in line for line in different) > 1
    assert report.status.plugins == {plugin: len(different)}
    for line in different:
        assert line["totals"][0] < line["totals"][1]
        if "group" in line:
            assert line["member"] in line["nodes"]
            assert line["ours"]
    [groups] = report.status.groups.values()
    assert groups.different == sum("group" in line for line in different)


def test_a_member_on_a_node_that_we_reject_names_the_plugin_that_does(tmp_path: Path) -> None:
    recording = recorded_groups("gang-spread-3")
    other = configured(recording.version, filter={"disabled": [{"name": "InterPodAffinity"}]})
    lines = compared(recording, tmp_path / "report", config=other)
    different = [line for line in lines if line["result"] == "different" and "group" in line]
    assert "InterPodAffinity" in {line["plugin"] for line in different}
    line = next(line for line in different if line["plugin"] == "InterPodAffinity")
    assert line["reason"].startswith(f"rejects {line['nodes'][line['member']]}: ")


def configured(version: KubernetesVersion = V1_36, /, **plugins: Any) -> SchedulerConfiguration:
    """The default configuration with changes at some extension points."""
    return parse_profiles([{"schedulerName": "default-scheduler", "plugins": plugins}], version=version)


@pytest.mark.parametrize(
    "plugin", ["NodeResourcesFit", "NodeResourcesBalancedAllocation", "InterPodAffinity"]
)
def test_the_plugin_with_another_weight_explains_each_difference(plugin: str, tmp_path: Path) -> None:
    other = configured(score={"enabled": [{"name": plugin, "weight": 40}]})
    report = ShadowReport(Metrics(), tmp_path / "report")
    lines = compared(recorded("mixed"), tmp_path / "report", pods=2 * MOST_PODS, report=report, config=other)
    different = [line for line in lines if line["result"] == "different"]
    assert len(different) > 1
    assert report.status.plugins == {plugin: len(different)}
    assert report.status.unexplained == 0
    assert all(line["totals"][0] < line["totals"][1] and plugin in line["scores"] for line in different)
    consistent = report.evidence("default-scheduler").consistent(plugin)
    weight = 2 if plugin == "InterPodAffinity" else 1
    assert consistent.lowest <= 40 / weight <= consistent.highest


def test_a_node_that_we_reject_names_the_plugin_that_does(tmp_path: Path) -> None:
    recording = recorded("taints")
    other = configured(filter={"disabled": [{"name": "TaintToleration"}]})
    lines = compared(recording, tmp_path / "report", config=other)
    different = [line for line in lines if line["result"] == "different"]
    assert different
    assert {line["plugin"] for line in different} == {"TaintToleration"}
    assert different[0]["reason"].startswith(f"rejects {different[0]['node']}: node(s) had untolerated taint")


def test_what_shadow_mode_records_can_be_replayed(tmp_path: Path) -> None:
    path = tmp_path / "recording.json"
    lines = compared(recorded("preemption"), tmp_path / "report", record=path)
    recording = load_recording(path)
    result = ReplayResult()
    result.add(recording, default_registry())
    assert [str(each) for each in result.differences] == []
    assert result.pods == len(lines) > 0


def burst(path: Path, monkeypatch: pytest.MonkeyPatch, *, reorders: bool) -> tuple[list[Any], Agreement]:
    """Many pods at once; their bindings may arrive in another order than they were decided in."""
    report = ShadowReport(Metrics(), path)

    async def run() -> None:
        async with staged(recorded("resources")) as stage:
            shadow(stage, report, seed=1)
            await stage.settles()
            stage.scheduler()
            await stage.settles()
            if reorders:
                reordered = Reordered(stage.store.bind, Random(3))
                monkeypatch.setattr(stage.store, "bind", reordered)
            pods = [step.pod for step in stage.recording.pods()]
            stage.put(pods[:30])
            for _ in range(12):
                await stage.settles()
                stage.clock.advance(0.25)
                if reorders:
                    reordered.flush()
        report.close()

    asyncio.run(run())
    [agreement] = report.status.profiles.values()
    return [json.loads(line) for line in path.read_text().splitlines()], agreement


class Reordered:
    """Bindings are carried out in another order than they were requested in."""

    def __init__(self, bind: Any, random: Random) -> None:
        self._bind = bind
        self._random = random
        self._waiting: list[tuple[Any, ...]] = []

    def __call__(self, *binding: Any) -> None:
        self._waiting.append(binding)

    def flush(self) -> None:
        self._random.shuffle(self._waiting)
        while self._waiting:
            self._bind(*self._waiting.pop())


@pytest.mark.parametrize("reorders", [False, True])
def test_bindings_of_one_moment_are_decided_in_the_order_of_the_queue(
    reorders: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, agreement = burst(tmp_path / "report", monkeypatch, reorders=reorders)
    assert agreement.same == len(lines) > 15
    names = [line["pod"] for line in lines]
    assert names == sorted(names)


@pytest.mark.parametrize("follows_deletions", [True, False])
def test_pods_that_are_deleted_before_a_binding_arrives_count_in_its_decision(
    follows_deletions: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without following deletions, the decision would differ: the nodes are free again."""
    if not follows_deletions:
        monkeypatch.setattr(ShadowHandlers, "deleted_since", lambda handlers, time: [])
    report = ShadowReport(Metrics(), tmp_path / "report")

    async def run() -> None:
        async with staged(recorded("resources")) as stage:
            shadow(stage, report, seed=1)
            await stage.settles()
            stage.scheduler()
            *first, last = [step.pod for step in stage.recording.pods()][:20]
            stage.put(first)
            await stage.settles()
            held = Reordered(stage.store.bind, Random(3))
            monkeypatch.setattr(stage.store, "bind", held)
            stage.put([last])
            await stage.settles()
            stage.remove(first[:8])
            held.flush()
            await stage.settles()
        report.close()

    asyncio.run(run())
    line = json.loads((tmp_path / "report").read_text().splitlines()[-1])
    assert (line["result"] != "different") is follows_deletions
    assert line.get("reordered", False) is follows_deletions


def test_only_the_pods_decided_last_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moorage.scheduler.shadow.scheduler._MAX_RECENT", 4)
    recording = recorded("mixed")
    report = ShadowReport(Metrics(), tmp_path / "report")

    async def run() -> int:
        async with staged(recording) as stage:
            scheduler = shadow(stage, report, seed=1)
            await stage.settles()
            stage.scheduler(config=recording.config)
            await stage.plays(MOST_PODS)
            return len(scheduler._recent)

    assert asyncio.run(run()) == 4
    report.close()
    assert len((tmp_path / "report").read_text().splitlines()) > 4
