"""Small comparisons for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moorage.api.base import Object
from moorage.comparison.results import Move, RunDifference
from moorage.comparison.run import ComparedRuns, Variant, compare_runs
from moorage.config.load import parse_profiles
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, KubernetesVersion
from moorage.plugins import default_registry
from moorage.simulation.scenario import Scenario
from moorage.simulation.script import ScriptEvent
from moorage.simulation.settings import Settings
from moorage.simulation.workload import Arrival

SPREADING = ("NodeResourcesBalancedAllocation", "PodTopologySpread", "ImageLocality")
"""Score plugins that configurations here do without, so that one plugin decides."""


def fit(strategy: str) -> dict[str, Any]:
    """A profile whose only score that tells nodes apart is that of NodeResourcesFit, by cpu."""
    resources = [{"name": "cpu", "weight": 1}]
    args = {"scoringStrategy": {"type": strategy, "resources": resources}}
    return without(*SPREADING) | {"pluginConfig": [{"name": "NodeResourcesFit", "args": args}]}


def without(*plugins: str, point: str = "score") -> dict[str, Any]:
    """A profile without some plugins at an extension point."""
    return {"plugins": {point: {"disabled": [{"name": each} for each in plugins]}}}


def settings(profile: dict[str, Any], version: KubernetesVersion = DEFAULT_VERSION, **given: Any) -> Settings:
    config = parse_profiles([{"schedulerName": "default-scheduler", **profile}], "test", version)
    return Settings(config, default_registry(), version, **given)


def compared(
    cluster: Sequence[Object],
    workload: Sequence[Arrival],
    *configurations: Settings,
    script: Sequence[ScriptEvent] = (),
) -> ComparedRuns:
    """A comparison of configurations, which are named a, b and so on."""
    scenario = Scenario(cluster, lambda seed: workload, len(workload), script)
    names = "abcdefgh"
    variants = [Variant(name, each, scenario) for name, each in zip(names, configurations, strict=False)]
    return compare_runs(variants, lambda simulation: None)


def difference(
    cluster: Sequence[Object], workload: Sequence[Arrival], *configurations: Settings, **given: Any
) -> RunDifference:
    """How a second configuration differs from the first."""
    (found,) = compared(cluster, workload, *configurations, **given).comparison.differences
    return found


def moves(found: RunDifference) -> dict[str, Move]:
    return {each.pod.removeprefix("default/"): each for each in found.moves}
