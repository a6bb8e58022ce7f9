"""One scheduler takes over from another in the middle of many pods; none is lost, none is bound twice."""

from __future__ import annotations

import signal
from datetime import datetime
from typing import Any

from tests.end_to_end.scenarios.stage import LONG_LEASE, Stage, node_of, uids
from tests.end_to_end.scenarios.watching import Watch
from tests.run.running import SHORT_LEASE, RunningScheduler
from tests.up.objects import pod

SLOW = ("--kube-api-qps=10", "--kube-api-burst=20")
"""So slow that there is a middle."""
SLOWER = ("--kube-api-qps=2",)
"""So slow that a busy machine finds it, too; who is asked to end could not tell of all its pods in time."""
PODS = 60
LEASE = ("leases", "--namespace=kube-system", "--field-selector=metadata.name=kube-scheduler")
SHORT_LEASE_SECONDS = 3


def lease(stage: Stage) -> Any:
    return stage.kubectl.json("get", "lease", "kube-scheduler", "--namespace=kube-system")["spec"]


def unrenewed_seconds(leases: Watch, acquired: Any) -> float:
    """How long the lease had not been renewed when its present holder acquired it."""
    holder = acquired["holderIdentity"]
    leases.until(lambda now: any(each["spec"]["holderIdentity"] == holder for each in now.values()))
    specs = [each.object["spec"] for each in leases.changes]
    number = next(number for number, each in enumerate(specs) if each["holderIdentity"] == holder)
    last = instant(specs[number - 1]["renewTime"])
    return (instant(acquired["acquireTime"]) - last).total_seconds()


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def begun(stage: Stage, *options: str) -> tuple[RunningScheduler, RunningScheduler, Watch]:
    """A leader that is in the middle of many pods, another one that waits, and what happens to the pods."""
    stage.add_node("n1")
    leader = stage.elect(*SLOW, *options)
    other = stage.elect(*LONG_LEASE, leads=False)
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
    leases = stage.watch(*LEASE)
    leader, other, pods = begun(stage, *SHORT_LEASE, *SLOWER)
    leader.kill()
    left = sum(not node_of(each) for each in stage.pods().values())
    assert left > 0
    other.says("Successfully acquired lease")
    assert unrenewed_seconds(leases, lease(stage)) >= SHORT_LEASE_SECONDS
    there = pods.until_bound(PODS)
    other.stop()
    assert all(len(nodes) == 1 for nodes in pods.nodes_by_uid.values())
    events = stage.scheduled_events()
    assert events.keys() <= uids(there)
    assert set(events.values()) == {1}
    assert len(events) >= left
