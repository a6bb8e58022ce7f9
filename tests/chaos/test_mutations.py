"""Deliberate bugs are found: a fixed part of what `python -m tests.chaos.mutations` tries."""

from __future__ import annotations

import pytest

from moorage_cluster.chaos.run import run_script
from moorage_cluster.chaos.scenarios import new_script
from tests.chaos.mutations import MUTATIONS

FOUND_BY = {
    "a forgotten forget": ("requests", 0),
    "no assuming": ("requests", 0),
    "a refused binding counts as done": ("preemption", 0),
    "scheduling without the lease": ("leaders", 0),
    "a lost unreserve": ("devices", 0),
    "a failed pod is not put back": ("requests", 0),
    "backoff never ends": ("requests", 0),
}
"""The scenario and the seed that show a mutation."""


@pytest.mark.parametrize("name", FOUND_BY)
def test_the_bug_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script = new_script(*FOUND_BY[name])
    with monkeypatch.context() as patch:
        MUTATIONS[name](patch)
        assert not run_script(script).is_well
    assert run_script(script).is_well
