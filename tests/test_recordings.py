"""The ground truth: decisions of the real kube-scheduler, made again and compared in full."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.emulation.kubernetes_version import V1_36
from moorage.plugins import default_registry
from moorage.sim.recording import load_recording
from moorage.sim.replay import ReplayResult

FOLDER = Path(__file__).parent / "recordings"
RECORDINGS = sorted(FOLDER.glob("*.json.gz"))
NEWER_RECORDINGS = sorted((FOLDER / "1.37").glob("*.json.gz"))
"""Of v1.37: what it decides otherwise."""


def named(path: Path) -> str:
    return path.relative_to(FOLDER).as_posix().removesuffix(".json.gz")


@pytest.mark.parametrize("file", [*RECORDINGS, *NEWER_RECORDINGS], ids=named)
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
    assert len(NEWER_RECORDINGS) == 8


@pytest.mark.parametrize("file", NEWER_RECORDINGS, ids=named)
def test_the_other_version_decides_otherwise(file: Path) -> None:
    result = ReplayResult()
    result.add(load_recording(file, V1_36), default_registry())
    assert result.differences
