"""Every example workload, recorded while a scheduler places it: a replay of the recording is equal."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from moorage.cli.main import app
from moorage.config.load import parse_profiles
from moorage.framework.loading.plugin_discovery import DiscoveredPlugins
from moorage.plugins import default_registry
from moorage.scheduler.observers import Observer, Observers
from moorage.scheduler.recorder import Recorder
from moorage.scheduler.recording_file import RecordingFile
from moorage.scheduler.scheduler import Scheduler
from moorage.scheduler.shadow.report import ShadowReport
from moorage.scheduler.shadow.scheduler import ShadowScheduler
from moorage.services.metrics import Metrics
from moorage.sim.recording import load_recording
from moorage.sim.replay import ReplayResult
from tests.example_workloads import EXAMPLES, FOLDER, TOPOLOGY, Example, ExampleCluster

UNRECORDED = {
    *("backlog.yaml", "catalogue.yaml", "fleet.yaml", "spread.yaml"),
    *("compare/most-allocated.yaml", "simulating/nodes.yaml", "simulating/shop.yaml", "study.yaml"),
}
"""What plans, comparisons, simulations and sweeps are shown with: their pages execute it."""


def recorder(example: Example, found: DiscoveredPlugins, path: Path) -> Recorder:
    reference = f"moorage, as kube-scheduler v{example.version.number}"
    return Recorder(RecordingFile(path, found.config, example.version, reference))


def recorded(example: Example, folder: Path) -> tuple[Path, DiscoveredPlugins]:
    path, found = folder / "recording.json", example.found(folder)
    recording = recorder(example, found, path)
    with ExampleCluster(example) as cluster:
        cluster.starts(partial(Scheduler, observer=Observers(Observer(), recording)), found)
        cluster.applies_workload()
    recording.close()
    return path, found


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_a_replay_of_the_recording_is_equal(example: Example, tmp_path: Path) -> None:
    path, found = recorded(example, tmp_path)
    result = ReplayResult()
    result.add(load_recording(path), found.registry)
    assert [str(each) for each in result.differences] == []
    assert result.equal == result.pods > 0
    steps = json.loads(path.read_text())["steps"]
    assert any("group" in step for step in steps) is example.has_groups


def test_the_command_replays_with_the_plugins_of_a_file(tmp_path: Path) -> None:
    example = next(each for each in EXAMPLES if each.workload == "groups/pair.yaml")
    path, _ = recorded(example, tmp_path)
    replayed = CliRunner().invoke(app, ["replay", str(path), "--plugin", str(FOLDER / example.plugin)])
    assert (replayed.exit_code, replayed.stdout.splitlines()[-1]) == (0, "1 of 1 pods equal")
    missing = CliRunner().invoke(app, ["replay", str(path)])
    assert missing.exit_code == 2
    assert "Neighbours" in missing.stderr
    assert len(missing.stderr.splitlines()) == 1


def test_every_file_is_in_a_recorded_example() -> None:
    used = {file for each in EXAMPLES for file in (each.workload, each.cluster, each.config) if file}
    there = {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.yaml")}
    assert used == {file for file in there - UNRECORDED if not is_of_optional_plugin(file)}


def is_of_optional_plugin(file: str) -> bool:
    """Whether a file belongs to the page about an optional plugin, which executes it."""
    return (FOLDER.parent / "docs/optional-plugins" / f"{Path(file).parts[0]}.md").exists()


def shadowed(
    example: Example, folder: Path, *, seed: int, other: DiscoveredPlugins, other_seed: int = 1
) -> list[Any]:
    """What shadow mode reports of an example that another scheduler places; the folder has its recording."""
    found, report = example.found(folder), ShadowReport(Metrics(), folder / "report")
    recording = recorder(example, found, folder / "shadow.json")
    with ExampleCluster(example) as cluster:
        cluster.starts(partial(ShadowScheduler, report=report, recorder=recording), found, seed)
        cluster.starts(Scheduler, other, other_seed)
        cluster.applies_workload()
    report.close()
    recording.close()
    return [json.loads(line) for line in (folder / "report").read_text().splitlines()]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_shadow_mode_agrees_and_its_recording_can_be_replayed(
    example: Example, seed: int, tmp_path: Path
) -> None:
    found = example.found(tmp_path)
    lines = shadowed(example, tmp_path, seed=seed, other=found)
    assert {line["result"] for line in lines} <= {"same", "tie"}
    if seed == 1:  # Pods that wait for their volumes are bound, and compared, in another order than decided.
        assert {line["result"] for line in lines if example.workload != "demo.yaml"} <= {"same"}
    assert not any(line.get("reordered") for line in lines)
    result = ReplayResult()
    result.add(load_recording(tmp_path / "shadow.json"), found.registry)
    assert [str(each) for each in result.differences] == []
    assert result.pods == len(lines)


def test_a_preferred_placement_explains_a_difference(tmp_path: Path) -> None:
    """Without the plugin that prefers fuller racks, the other scheduler takes any of them."""
    example = Example("groups/topology.yaml", "groups/racks.yaml", TOPOLOGY)
    plugins = {"placementScore": {"disabled": [{"name": "NodeResourcesFit"}]}}
    config = parse_profiles(
        [{"schedulerName": "default-scheduler", "plugins": plugins}], version=example.version
    )
    other = DiscoveredPlugins(config, default_registry())
    [line] = shadowed(example, tmp_path, seed=1, other=other, other_seed=4)
    assert (line["result"], line["plugin"]) == ("different", "NodeResourcesFit")
    assert line["reason"] == "prefers placement east to west: 37 to 30 of 137 to 130 points"
    assert "member" not in line
    assert set(line["nodes"].values()) <= {"bergen-3", "bergen-4"}
    assert set(line["ours"].values()) <= {"bergen-1", "bergen-2"}
