"""What is said while a simulation runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from moorage.cli.simulation_progress import SimulationProgress
from moorage.simulation.simulator import Simulation


def test_with_a_number_of_pods_there_is_an_estimate() -> None:
    progress = SimulationProgress("test", 2_000)
    assert progress.share(500, 60.0) == 0.25
    assert progress.text(500, 60.0, 30.0) == "500 of 2,000 pods, simulated 1m0s, about 1m30s left"
    assert progress.text(1, 1.0, 30.0) == "1 of 2,000 pods, simulated 1s"


def test_when_all_pods_have_arrived_the_rest_is_not_known() -> None:
    text = SimulationProgress("test", 2).text(2, 60.0, 30.0)
    assert text == "2 of 2 pods, simulated 1m0s, all have arrived, and some still run"


def test_with_an_end_the_estimate_is_of_time() -> None:
    progress = SimulationProgress("test", 0, 3600.0)
    assert progress.share(500, 900.0) == 0.25
    assert progress.text(500, 900.0, 30.0) == "500 pods, simulated 15m0s, about 1m30s left"


def test_without_either_it_says_what_is_known() -> None:
    progress = SimulationProgress("test", 0)
    assert progress.share(500, 900.0) is None
    assert progress.text(500, 900.0, 30.0) == "500 pods, simulated 15m0s, how many are to come is not known"


def test_several_runs_count_together() -> None:
    progress = SimulationProgress("test", 400, 3600.0, runs=2)
    first, second = (cast(Simulation, SimpleNamespace(arrived=200, seconds=3600.0)) for _ in range(2))
    progress.update(first)
    progress.update(second)
    assert progress.share(400, 1800.0) == 0.75
