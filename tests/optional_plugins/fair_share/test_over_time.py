"""FairShare over many decisions: shares are as the weights, and no owner waits for ever."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from random import Random
from typing import Any

import pytest

from moorage.optional_plugins.fair_share.turns import PATIENCE, Turns
from tests.optional_plugins.fair_share.sharing import Demand, SharedCluster, a_pod

SECONDS = 600.0
PODS = {"a": ("1", "1Gi"), "b": ("1", "4Gi"), "c": ("1", "1Gi")}
"""Of b, memory is the dominant resource."""


@pytest.mark.parametrize(
    ("weights", "half_life"), [({}, "0s"), ({"b": 2, "c": 3}, "2m")], ids=["equal", "one to two to three"]
)
def test_shares_are_as_the_weights(weights: Mapping[str, float], half_life: str) -> None:
    cluster = SharedCluster(cpu="100", memory="250Gi", weights=weights, halfLife=half_life)
    demand = Demand(cluster, PODS, partial(Random(7).expovariate, 1 / 60))
    for owner in PODS:
        demand.submit(owner, 2)
    demand.run(200)
    used = dict.fromkeys(PODS, 0.0)

    def observe(seconds: float) -> None:
        for owner in PODS:
            used[owner] += seconds * demand.share(owner) / weights.get(owner, 1)

    demand.run(SECONDS, observe)
    mean = sum(used.values()) / len(used)
    assert mean > 0.05 * SECONDS
    assert used == {owner: pytest.approx(mean, rel=0.05) for owner in PODS}
    assert sum(demand.bound.values()) > 1000


def test_who_used_nothing_catches_up_with_a_half_life_only() -> None:
    """Team b comes after ten minutes of a alone. With past use it gets more than a for a while."""
    shares = {}
    for half_life in ("0s", "10m"):
        cluster = SharedCluster(cpu="100", memory="250Gi", halfLife=half_life)
        demand = Demand(cluster, dict.fromkeys("ab", ("1", "1Gi")), partial(Random(7).expovariate, 1 / 60))
        demand.submit("a", 2)
        demand.run(600)
        demand.submit("b", 2)
        demand.run(200)
        shares[half_life] = demand.share("a")
    assert shares == {"0s": pytest.approx(0.5, abs=0.02), "10m": pytest.approx(0.25, abs=0.15)}


def test_an_owner_whose_pods_end_at_once_does_not_keep_others_waiting() -> None:
    """Services of a hold half of the cluster; b's pods are done when the next decision is due."""
    cluster = SharedCluster()
    for number in range(5):
        cluster.queue.add(a_pod(f"service-{number}", "a"))
    cluster.attempt_all()
    cluster.queue.add(a_pod("one-more", "a"))
    for decision in range(3 * PATIENCE):
        cluster.queue.add(a_pod(f"b-{decision}", "b"))
        done = cluster.attempt()
        assert done is not None
        if done[0].uid == "one-more":
            break
        cluster.end(done[0].uid)
    assert cluster.decisions - 5 == 2 * PATIENCE + 2
    assert "one-more" in cluster.running


@pytest.mark.parametrize("failing", [1, 3])
def test_owners_whose_pods_do_not_fit_do_not_keep_others_waiting(failing: int) -> None:
    """They have nothing, so that their share is the smallest, and many pods for which there is no room."""
    cluster = SharedCluster(cpu="1000", memory="4000Gi")
    cluster.queue.add(a_pod("first", "a"))
    cluster.attempt_all()
    for number in range(100):
        for owner in range(failing):
            cluster.queue.add(a_pod(f"large-{owner}-{number}", f"large-{owner}", cpu="9000"))
    for number in range(100):
        cluster.queue.add(a_pod(f"a-{number}", "a"))
    outcomes = [cluster.attempt() for _ in range(100 * (failing + 1))]
    assert [done is not None and done[1] for done in outcomes].count(True) == 100
    waits, waited = [], 0
    for done in outcomes:
        waited = 0 if done is not None and done[1] else waited + 1
        waits.append(waited)
    assert max(waits) == failing


def test_nobody_waits_for_ever_whatever_happens() -> None:
    """Owners that hold much or nothing, with pods that fit or not, that end at once or never."""
    random = Random(3)
    cluster = SharedCluster(cpu="60", memory="240Gi", weights={"o1": 20, "o2": 0.05})
    owners = [f"o{number}" for number in range(6)]
    waiting_since: dict[str, int] = {}
    longest = 0
    for number in range(3000):
        for owner in owners:
            if owner not in waiting_since:
                cpu = random.choice(["100m", "1", "100"])
                cluster.queue.add(a_pod(f"{owner}-{number}", owner, cpu, "100Mi"))
                waiting_since[owner] = cluster.decisions
        done = cluster.attempt()
        assert done is not None
        longest = max(
            longest, cluster.decisions - waiting_since.pop(done[0].pod.namespace, cluster.decisions)
        )
        ends = list(cluster.running)
        for uid in ends[: len(ends) // 2] if random.random() < 0.02 else ends[-1:]:
            if random.random() < 0.9:
                cluster.end(uid)
        if number % 100 == 0:
            cluster.clock.advance(1)
    assert 10 < longest <= PATIENCE * len(owners) + len(owners)


def test_an_owner_that_waits_too_long_comes_first() -> None:
    turns, owners = Turns(), {"a", "b"}
    assert turns.rank("a") == turns.rank("b") == 0
    for _ in range(2 * PATIENCE):
        turns.popped("a", failed=False)
        assert turns.rank("a") == 0
        turns.renew(owners)
    assert turns.changed == {"a"}
    turns.popped("a", failed=False)
    turns.renew(owners)
    assert turns.changed == {"a", "b"}
    assert turns.rank("b") < turns.rank("a") == 0
    turns.popped("b", failed=True)
    assert turns.rank("b") > 0
    turns.changed.clear()
    turns.room_appeared()
    assert turns.changed == {"b"}
    assert turns.rank("b") == 0


def test_owners_without_pods_are_forgotten() -> None:
    turns = Turns()
    for number in range(1000):
        owner: Any = f"o{number}"
        turns.rank(owner)
        turns.popped(owner, failed=True)
        turns.rank(owner)
        turns.renew({owner, "other"})
    assert len(turns._failed) + len(turns._waiting) + len(turns._overdue) <= 75
