"""A scheduler whose loop is stuck for ever in a plugin: it gives up leadership and still answers requests."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.apiserver.running import Kubectl
from tests.run.running import SHORT_LEASE, Answer, RunningScheduler
from tests.up.objects import pod

Start = Callable[..., RunningScheduler]

PLUGIN = """
class Endless:
    name = "Endless"

    def filter_node(self, cycle, pod, node):
        while True:
            pass
"""


@pytest.fixture
def plugin(kubectl: Kubectl, tmp_path: Path) -> Iterator[str]:
    """The flag of a plugin that never returns, in a cluster with a pod that it is asked about."""
    path = tmp_path / "endless.py"
    path.write_text(PLUGIN)
    kubectl.create(pod("stuck", cpu="10m"))
    yield f"--plugin={path}"
    kubectl("delete", "pod", "stuck", "--grace-period=0", "--force")


def silent_seconds(text: str) -> float:
    """The seconds for which a message says that the loop has not turned."""
    found = re.search(r"\bthe scheduling loop has not turned for ([0-9]+\.[0-9]) s\b", text)
    assert found is not None, text
    return float(found[1])


def test_a_leader_whose_loop_is_stuck_ends_so_that_another_can_lead(start: Start, plugin: str) -> None:
    leader = start(plugin, *SHORT_LEASE)
    line = leader.says("Scheduling loop is stuck, giving up leadership")
    assert silent_seconds(line) >= 2.5
    assert "endless.py:6 filter_node" in line or "endless.py:7 filter_node" in line
    assert leader.ended() == 1


def test_without_election_probes_fail_and_a_second_sigterm_ends_the_process(
    start: Start, plugin: str, admin_token: str
) -> None:
    scheduler = start("--leader-elect=false", *SHORT_LEASE, plugin, leads=False)
    scheduler.says("Scheduling loop is stuck")
    assert scheduler.get("/livez") == Answer(
        500, "[+]ping ok\n[-]scheduling-loop failed: reason withheld\nlivez check failed\n"
    )
    # Authentication does not need the loop; what needs it is refused.
    metrics = scheduler.get("/metrics", admin_token)
    assert metrics.status == 503
    assert metrics.text.startswith("the scheduling loop has not turned for ")
    assert silent_seconds(metrics.text) >= 2.5
    scheduler.send(signal.SIGTERM)
    scheduler.send(signal.SIGINT)
    assert scheduler.ended() == 1
    assert "Requested to terminate again" in scheduler.log
