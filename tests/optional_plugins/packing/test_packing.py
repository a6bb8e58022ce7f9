"""The profiles of examples/packing do on its workloads what the page says."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

from moorage.config.load import load_config
from moorage.framework.interface.handle import Handle
from moorage.framework.runtime.profiles import Profiles
from moorage.plugins import default_registry
from moorage.simulation.records import PodRecord
from moorage.simulation.run import run_simulation
from moorage.simulation.scenario import ScenarioSource, read_scenario
from moorage.simulation.settings import load_settings
from tests.optional_plugins.shown_examples import ROOT, check_examples

FOLDER = ROOT / "examples/packing"
PROFILES = ("dense", "gpu", "consolidation")
GPU_CLUSTER = runpy.run_path(str(FOLDER / "gpu_cluster.py"))


def placed(source: ScenarioSource, profile: str) -> list[PodRecord]:
    """The pods of a simulation with a profile; `default` is the default one."""
    settings = load_settings(None if profile == "default" else FOLDER / f"{profile}.yaml")
    return [*run_simulation(read_scenario(source), settings).result.placements]


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_can_be_loaded(profile: str) -> None:
    profiles = Profiles(load_config(FOLDER / f"{profile}.yaml"), default_registry(), Handle())
    assert len(profiles) == 1


@pytest.mark.parametrize("seed", [1, 2])
def test_more_gpus_are_used_with_the_gpu_profile_than_with_dense_packing_or_the_default_one(
    seed: int, tmp_path: Path
) -> None:
    nodes, pods = tmp_path / "nodes.json", tmp_path / "pods.jsonl"
    arriving = [{**pod, "name": f"p{number}"} for number, pod in enumerate(GPU_CLUSTER["pods"](1, 1.0, seed))]
    nodes.write_text(json.dumps(GPU_CLUSTER["nodes"](1)))
    pods.write_text("".join(f"{json.dumps(pod)}\n" for pod in arriving))
    gpus = {pod["name"]: pod.get("nvidia.com/gpu", 0) for pod in arriving}
    source = ScenarioSource([nodes], workload=[pods])
    used = {
        profile: sum(gpus[pod.name] for pod in placed(source, profile) if pod.node)
        for profile in ("default", "dense", "gpu")
    }
    total = 300
    assert used["default"] < 0.8 * total < 0.9 * total < used["dense"] < 0.96 * total < used["gpu"]


def test_the_page_shows_what_is_printed(tmp_path: Path) -> None:
    assert check_examples("docs/optional-plugins/packing.md", tmp_path) == 2
