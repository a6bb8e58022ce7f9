"""`moorage run` does without the laptop cluster, whether it is installed or not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.packages.base_installation import RUN
from tests.run.running import RunningScheduler

NOT_INSTALLED = ("-c", RUN, "run")
INSTALLED = ("-m", "moorage", "run")


@pytest.mark.parametrize("program", [NOT_INSTALLED, INSTALLED], ids=["not installed", "installed"])
def test_a_scheduler_starts_without_loading_any_of_it(program: tuple[str, ...], kubeconfig: Path) -> None:
    with RunningScheduler(kubeconfig, program=("-X", "importtime", *program)) as scheduler:
        assert scheduler.get("/readyz").status == 200
    loaded = set(re.findall(r"^import time: .*\| +(\S+)$", scheduler.log, re.MULTILINE))
    assert "moorage.scheduler.process" in loaded
    assert "moorage.http.server" in loaded
    assert [name for name in loaded if name.startswith("moorage_cluster")] == []
