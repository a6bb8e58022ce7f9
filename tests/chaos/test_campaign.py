"""Campaigns: every scenario holds, failures are found, shortened and written."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from moorage.api.decode import InputError
from moorage_cluster.chaos.campaign import Tally, do, run_campaign, tasks
from moorage_cluster.chaos.run import run_script
from moorage_cluster.chaos.scenarios import SCENARIOS, new_script
from moorage_cluster.chaos.script import Script, read_script, write_script
from moorage_cluster.chaos.shrinking import shrunk
from tests.chaos.mutations import MUTATIONS

RUNS = 6
"""Number of runs of each scenario."""


@pytest.fixture
def forgets_assuming(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler that does not count a pod on its node before the API server has confirmed it."""
    MUTATIONS["no assuming"](monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_everything_holds(scenario: str) -> None:
    tally = Tally(scenario)
    for part in run_campaign([scenario], 0, RUNS, 1):
        tally.merge(part)
    assert [(each.seed, each.violations) for each in tally.failures] == []
    assert tally.runs == RUNS
    assert tally.bound > RUNS
    assert tally.injected, "nothing went wrong, so nothing was tested"


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_seed_is_one_script(scenario: str) -> None:
    script = new_script(scenario, 7)
    assert script == new_script(scenario, 7)
    assert script != new_script(scenario, 8)


def test_a_run_can_be_repeated() -> None:
    script = new_script("everything", 3)
    assert run_script(script) == run_script(script)


def test_scripts_are_read_as_they_were_written(tmp_path: Path) -> None:
    for scenario in SCENARIOS:
        script = new_script(scenario, 1)
        write_script(script, tmp_path / "script.json")
        assert read_script(tmp_path / "script.json") == script


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "not a chaos script: Input data was truncated"),
        (b'{"scenario": "x", "seed": 1}', "not a chaos script: Object missing required field `calm_at`"),
        (
            b'{"scenario": "x", "seed": 1, "calm_at": 1.0, "format": 9}',
            "format 9: this version reads format 1",
        ),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "script.json"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_script(path)
    assert str(caught.value) == f"{path}: {message}"


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file or directory"):
        read_script(tmp_path / "none.json")


def test_scenarios_take_turns() -> None:
    found = [(each.scenario, each.seed) for each in tasks(["a", "b"], 5, 2, shrinks=False)]
    assert found == [("a", 5), ("b", 5), ("a", 6), ("b", 6)]


@pytest.mark.slow
@pytest.mark.usefixtures("forgets_assuming")
def test_a_bug_is_found_and_its_script_is_short() -> None:
    (task,) = tasks(["requests"], 0, 1, shrinks=True)
    (failure,) = do(task).failures
    original = new_script("requests", failure.seed)
    assert failure.script.size < original.size / 4
    assert run_script(failure.script).violations == failure.violations


def test_shrinking_leaves_what_matters() -> None:
    script = new_script("requests", 1)
    needed = {script.faults[3], script.faults[-1]}
    operation = script.operations[5]

    def fails(each: Script) -> bool:
        return needed <= set(each.faults) and operation in each.operations

    short = shrunk(script, fails)
    assert set(short.faults) == needed
    assert short.operations == (operation,)
    assert short.objects == ()


def test_shrinking_ends() -> None:
    script = new_script("requests", 1)
    runs = 0

    def fails(each: Script) -> bool:
        nonlocal runs
        runs += 1
        return True

    assert shrunk(script, fails, runs=4).size < script.size
    assert runs == 4


def test_an_outcome_is_compared_without_names_and_numbers() -> None:
    outcome = run_script(replace(new_script("requests", 1), operations=(), faults=()))
    one, other = (
        msgspec.structs.replace(outcome, violations=[f"{time} s: pod pod-{number} was bound 2 times"])
        for time, number in ((1.5, 3), (20.0, 11))
    )
    assert one.kinds == other.kinds
    assert not outcome.kinds
