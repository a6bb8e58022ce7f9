"""The ground truth: decisions of the real kube-scheduler, made again and compared in full."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.plugins import default_registry
from moorage.sim.recording import load_recording
from moorage.sim.replay import ReplayResult

RECORDINGS = sorted((Path(__file__).parent / "recordings").glob("*.json.gz"))


@pytest.mark.parametrize("file", RECORDINGS, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_every_decision_is_equal(file: Path) -> None:
    result = ReplayResult()
    result.add(load_recording(file), default_registry())
    assert result.pods > 0
    assert [str(difference) for difference in result.differences] == []
    assert result.equal == result.pods


def test_all_recordings_are_here() -> None:
    families = {file.name.rsplit("-", 1)[0] for file in RECORDINGS}
    assert len(families) == 29
    assert len(RECORDINGS) == 59
