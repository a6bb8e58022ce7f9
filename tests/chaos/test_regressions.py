"""Scripts of runs that failed once: each shows a bug that was found by a campaign."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage_cluster.chaos.run import run_script
from moorage_cluster.chaos.script import read_script

SCRIPTS = sorted((Path(__file__).parent / "regressions").glob("*.json"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_everything_holds(path: Path) -> None:
    outcome = run_script(read_script(path))
    assert outcome.violations == []
    assert outcome.injected, "nothing went wrong, so nothing was tested"


def test_there_are_scripts() -> None:
    assert SCRIPTS
