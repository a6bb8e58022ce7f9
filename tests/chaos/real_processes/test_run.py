"""Two short runs with real processes: a leader is stopped beyond its lease, or much happens at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage_cluster.chaos.real_processes.run import run_plan
from moorage_cluster.chaos.real_processes.scenarios import LEASE_SECONDS, Fault, Plan

PLANS = {
    "a leader is stopped": (Fault(0.0, "stop", "leader", LEASE_SECONDS + 2.0),),
    "all at once": (
        Fault(0.0, "full-disk", "server", 0.5),
        Fault(0.0, "connections", "server", 1.0, 150),
        Fault(0.5, "kill", "leader", 0.0),
        Fault(1.0, "kill", "server", 0.0),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANS)
def test_everything_holds(name: str, tmp_path: Path) -> None:
    faults = PLANS[name]
    outcome = run_plan(Plan(name, 1, 1.0, faults, max_files=128), tmp_path)
    assert outcome.violations == []
    assert outcome.takeovers >= 2
    assert {f"{each.what} {each.whom}" for each in faults} <= outcome.injected.keys()
    assert outcome.bound > 0
