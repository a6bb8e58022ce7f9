"""One scheduler takes over from another in the middle of many pods; none is lost, none is bound twice."""

from __future__ import annotations

import signal
from datetime import UTC, datetime
from typing import Any

from tests.end_to_end.scenarios.stage import LONG_LEASE, Stage, node_of, uids
from tests.end_to_end.scenarios.watching import Watch
from tests.run.running import RunningScheduler
from tests.up.objects import pod

SLOW = ("--kube-api-qps=10", "--kube-api-burst=20")
"""So slow that there is a middle."""
PODS = 60
SHORT_LEASE_SECONDS = 2.0
BETWEEN_RENEWALS_SECONDS = 0.5
"""What the end of a lease may be off by: it was last seen renewed a little before its holder was killed."""


def lease(stage: Stage) -> Any:
    return stage.kubectl.json("get", "lease", "kube-scheduler", "--namespace=kube-system")["spec"]


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def begun(stage: Stage, *options: str) -> tuple[RunningScheduler, RunningScheduler, Watch]:
    """A leader that is in the middle of many pods, another one that waits, and what happens to the pods."""
    stage.add_node("n1")
    leader = stage.elect(*SLOW, *options)
    other = stage.elect(*options, leads=False)
    other.says("New leader elected")
    pods = stage.watch()
    stage.user.create(*(pod(f"p{number}", cpu="10m") for number in range(PODS)))
    pods.until_bound(10)
    return leader, other, pods


def test_a_leader_that_is_asked_to_end_hands_over_at_once(stage: Stage) -> None:
    leader, other, pods = begun(stage, *LONG_LEASE)
    before = lease(stage)
    leader.send(signal.SIGTERM)
    leader.says("Shutting down")
    stage.user.create(*(pod(f"late{number}", cpu="10m") for number in range(10)))
    assert leader.ended() == 0
    other.says("Successfully acquired lease")
    after = lease(stage)
    assert after["holderIdentity"] not in (before["holderIdentity"], "")
    assert after["leaseTransitions"] == before["leaseTransitions"] + 1
    assert after["leaseDurationSeconds"] == 60
    there = pods.until_bound(PODS + 10)
    other.stop()
    assert all(len(nodes) == 1 for nodes in pods.nodes_by_uid.values())
    # The first one has told of everything that it has done.
    assert stage.scheduled_events() == dict.fromkeys(uids(there), 1)


def test_a_leader_that_is_killed_is_followed_when_its_lease_ends(stage: Stage) -> None:
    leader, other, pods = begun(stage)
    killed = datetime.now(UTC)
    leader.kill()
    left = sum(not node_of(each) for each in stage.pods().values())
    assert left > 0
    other.says("Successfully acquired lease")
    waited = (instant(lease(stage)["acquireTime"]) - killed).total_seconds()
    assert waited >= SHORT_LEASE_SECONDS - BETWEEN_RENEWALS_SECONDS
    there = pods.until_bound(PODS)
    other.stop()
    assert all(len(nodes) == 1 for nodes in pods.nodes_by_uid.values())
    events = stage.scheduled_events()
    assert events.keys() <= uids(there)
    assert set(events.values()) == {1}
    assert len(events) >= left
