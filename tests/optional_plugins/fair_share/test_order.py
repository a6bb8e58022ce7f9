"""The order of FairShare, compared with a plain one that counts everything again for each decision."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage import Pod, QueuedPod
from moorage.queue.backoff_queue import BackoffQueue
from moorage.queue.scheduling_queue import Place
from tests.builders import make_namespace, make_node
from tests.optional_plugins.fair_share.sharing import SharedCluster, a_pod

OWNERS = ("a", "b", "c")
WEIGHTS = {"a": 2.0, "c": 0.5}
HALF_LIFE = 120.0
Key = tuple[int, int, float, float]


@dataclass
class Oracle:
    """Knows what happened, and looks through all of it for each decision."""

    cluster: SharedCluster
    half_life: float
    within_owner: bool
    spans: list[tuple[float, float, dict[str, dict[str, int]]]] = field(default_factory=list)
    """From when to when owners had what."""
    failures: list[str] = field(default_factory=list)
    """The owners of failed attempts since a pod found a node, or room appeared."""

    def passed(self, seconds: float) -> None:
        now = self.cluster.clock.now()
        self.spans.append((now, now + seconds, {owner: self.cluster.used(owner) for owner in OWNERS}))

    def share(self, owner: str) -> float:
        """The dominant share of an owner for its weight, with past use."""
        now, used = self.cluster.clock.now(), self.cluster.used(owner)
        shares = []
        for name, total in self.cluster.totals().items():
            past = sum(
                held[owner][name] * (self.faded(now - end) - self.faded(now - start))
                for start, end, held in self.spans
            )
            shares.append((used[name] + past) / total)
        return max(shares) / WEIGHTS.get(owner, 1.0)

    def faded(self, age: float) -> float:
        return float(0.5 ** (age / self.half_life)) if self.half_life else 0.0

    def key(self, first: QueuedPod) -> Key:
        owner = first.pod.namespace
        last = max((at for at, each in enumerate(self.failures, 1) if each == owner), default=0)
        priority = 0 if self.within_owner else -first.priority
        return (priority, last, self.share(owner), first.timestamp)

    def waiting(self) -> dict[str, list[QueuedPod]]:
        """The pods of each owner that has some in the queue, the first of them first."""
        backoff = self.cluster.queue._backoff
        pods, is_early = list(self.cluster.queue._active), False
        if not pods:
            pods, is_early = list(backoff.after_rejection), True
        found: dict[str, list[QueuedPod]] = {}
        for queued in sorted(pods, key=lambda each: place_inside(each, backoff, is_early)):
            found.setdefault(queued.pod.namespace, []).append(queued)
        return found

    def attempt(self) -> None:
        """Decide about a pod, which must be one that may be the first."""
        waiting = self.waiting()
        keys = {owner: self.key(pods[0]) for owner, pods in waiting.items()}
        times = {queued.uid: queued.timestamp for pods in waiting.values() for queued in pods}
        done = self.cluster.attempt()
        if done is None:
            assert not waiting
            return
        queued, is_bound = done
        owner = queued.pod.namespace
        assert not less(min(keys.values()), keys[owner]), keys
        first = waiting[owner][0]
        assert (queued.priority, times[queued.uid]) == (first.priority, times[first.uid])
        self.failures = [] if is_bound else [*self.failures, owner]


def place_inside(queued: QueuedPod, backoff: BackoffQueue, is_early: bool) -> tuple[float, int, float]:
    """The place of a pod among those of its owner."""
    return (backoff.expiration(queued) if is_early else 0.0, -queued.priority, queued.timestamp)


def less(one: Key, other: Key) -> bool:
    """Whether a key is smaller; shares that differ by rounding are equal."""
    if one[:2] != other[:2]:
        return one[:2] < other[:2]
    return one[2] < other[2] - 1e-9


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("submit"),
            st.sampled_from(OWNERS),
            st.sampled_from(["0", "1", "3", "50"]),
            st.sampled_from(["1Gi", "9Gi"]),
            st.integers(0, 1),
        ),
        st.tuples(st.just("attempt"), st.integers(1, 5)),
        st.tuples(st.just("end"), st.integers(0, 20)),
        st.tuples(st.just("wait"), st.sampled_from([3.0, 60.0, 500.0])),
        st.tuples(st.just("grow"), st.sampled_from(["10", "20"])),
    ),
    max_size=40,
)


@given(STEPS, st.sampled_from([0.0, HALF_LIFE]), st.booleans())
def test_every_decision_is_for_the_owner_that_a_count_of_everything_finds(
    steps: list[tuple[Any, ...]], half_life: float, within_owner: bool
) -> None:
    cluster = SharedCluster(
        weights=WEIGHTS,
        halfLife=f"{half_life:.0f}s",
        priority="WithinOwner" if within_owner else "AcrossOwners",
    )
    oracle = Oracle(cluster, half_life, within_owner)
    # Past use counts from the first decision on.
    cluster.queue.add(a_pod("first", "a", cpu="1m", memory="1Mi"))
    assert cluster.attempt_all() == ["a"]
    for number, (step, *details) in enumerate(steps):
        match step:
            case "submit":
                owner, cpu, memory, priority = details
                cluster.queue.add(a_pod(f"p{number}", owner, cpu, memory, priority=priority))
            case "attempt":
                for _ in range(details[0]):
                    oracle.attempt()
            case "end" if cluster.running:
                cluster.end(list(cluster.running)[details[0] % len(cluster.running)])
                oracle.failures = []
            case "wait":
                oracle.passed(details[0])
                cluster.clock.advance(details[0])
            case "grow":
                size = {"cpu": details[0], "memory": "40Gi", "pods": "1000"}
                if dict(next(cluster.cache.nodes()).status.allocatable) != make_size(size):
                    oracle.failures = []
                cluster.cache.put_node(make_node("n1", allocatable=size))
        cluster.queue.validate()


def make_size(size: dict[str, str]) -> dict[str, Any]:
    return dict(make_node("n", allocatable=size).status.allocatable)


def test_without_priorities_owners_take_turns_by_weight() -> None:
    cluster = SharedCluster(cpu="9", weights={"b": 2})
    for number in range(9):
        for owner in ("a", "b"):
            cluster.queue.add(a_pod(f"{owner}{number}", owner))
    assert "".join(cluster.attempt_all()) == "abbabbabb"


def test_the_dominant_resource_of_each_owner_counts() -> None:
    """As in the paper on dominant resource fairness: 9 CPUs and 18 GB, pods of 1 and 4, and of 3 and 1."""
    cluster = SharedCluster(cpu="9", memory="18Gi")
    for number in range(9):
        cluster.queue.add(a_pod(f"a{number}", "a", cpu="1", memory="4Gi"))
        cluster.queue.add(a_pod(f"b{number}", "b", cpu="3", memory="1Gi"))
    bound = cluster.attempt_all()
    assert (bound.count("a"), bound.count("b")) == (3, 2)
    assert cluster.dominant_share("a") == cluster.dominant_share("b") == pytest.approx(2 / 3)


PRIORITIES = {
    "by default, a higher priority comes first across owners": ({}, ["urgent", "b", "a"]),
    "or only among pods of an owner": ({"priority": "WithinOwner"}, ["b", "urgent", "a"]),
}


@pytest.mark.parametrize(("args", "names"), PRIORITIES.values(), ids=PRIORITIES.keys())
def test_priority(args: dict[str, Any], names: list[str]) -> None:
    cluster = SharedCluster(**args)
    cluster.queue.add(a_pod("running", "a"))
    cluster.attempt_all()
    cluster.queue.add(a_pod("a", "a"))
    cluster.queue.add(a_pod("urgent", "a", priority=10))
    cluster.queue.add(a_pod("b", "b"))
    assert [queued.pod.name for queued in cluster.queue.pods_in(Place.ACTIVE)] == names
    assert popped(cluster) == names


def popped(cluster: SharedCluster) -> list[str]:
    names = []
    while (done := cluster.attempt()) is not None:
        names.append(done[0].pod.name)
    return names


def labelled(name: str, team: str | None) -> Pod:
    return a_pod(name, "default", labels={} if team is None else {"example.com/team": team})


def test_a_label_can_be_the_owner_and_pods_without_it_have_one_in_common() -> None:
    cluster = SharedCluster(ownerLabel="example.com/team", weights={"y": 2})
    for name, team in (("x1", "x"), ("x2", "x"), ("n1", None), ("n2", None), ("y1", "y"), ("y2", "y")):
        cluster.queue.add(labelled(name, team))
    assert popped(cluster) == ["x1", "n1", "y1", "y2", "x2", "n2"]


def test_a_pod_whose_label_changes_moves_to_another_owner() -> None:
    cluster = SharedCluster(ownerLabel="example.com/team")
    pods = [labelled(name, "x") for name in ("x1", "x2", "x3")]
    for pod in pods:
        cluster.queue.add(pod)
    cluster.queue.update(pods[2], labelled("x3", "y"))
    cluster.queue.validate()
    assert popped(cluster) == ["x1", "x3", "x2"]
    running = cluster.running["x3"]
    relabelled = a_pod("x3", "default", labels={"example.com/team": "z"}, on="n1")
    cluster.cache.put_pod(relabelled)
    assert running.uid == relabelled.uid
    assert {name for name, usage in cluster.shares.usage.items() if usage.held} == {"x", "z"}


def test_the_annotation_of_a_namespace_is_its_weight_unless_the_arguments_have_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = SharedCluster(cpu="12", weights={"c": 1})
    for owner, weight in (("a", "2"), ("b", "heavy"), ("c", "5"), ("d", "1")):
        cluster.cache.objects.put(annotated(owner, weight))
    for number in range(12):
        for owner in "abcd":
            cluster.queue.add(a_pod(f"{owner}{number}", owner))
    cluster.has_room = lambda pod: len(cluster.running) < 10
    assert sorted(cluster.attempt_all()) == sorted("aaaabbccdd")
    assert "Namespace b: its annotation moorage.io/fair-share-weight does not count" in caplog.text
    cluster.cache.objects.put(annotated("d", "10"))
    cluster.has_room = lambda pod: len(cluster.running) < 14
    cluster.clock.advance(20)
    cluster.end("a0")
    assert cluster.attempt_all() == ["d"] * 5


def annotated(name: str, weight: str) -> Any:
    namespace = make_namespace(name)
    annotations = {"moorage.io/fair-share-weight": weight}
    metadata = msgspec.structs.replace(namespace.metadata, annotations=annotations)
    return msgspec.structs.replace(namespace, metadata=metadata)


def test_only_the_resources_that_are_configured_count() -> None:
    cluster = SharedCluster(resources=["memory"])
    cluster.queue.add(a_pod("a1", "a", cpu="8", memory="1Gi"))
    cluster.queue.add(a_pod("b1", "b", cpu="1m", memory="2Gi"))
    cluster.attempt_all()
    cluster.queue.add(a_pod("b2", "b", cpu="1m"))
    cluster.queue.add(a_pod("a2", "a", cpu="1m"))
    assert popped(cluster) == ["a2", "b2"]


def test_pods_without_requests_count_by_their_number() -> None:
    cluster = SharedCluster(pods="10")
    for number in range(3):
        for owner in ("a", "b"):
            cluster.queue.add(a_pod(f"{owner}{number}", owner, cpu="0", memory="0"))
    assert "".join(cluster.attempt_all()) == "ababab"


def test_past_use_counts_until_it_has_faded() -> None:
    """After an hour of team a alone, b is first; days later, a is again because its pod waits longer."""
    for rest, names in ((60.0, ["b", "a"]), (86400.0 * 3, ["a", "b"])):
        cluster = SharedCluster(halfLife="1h")
        cluster.queue.add(a_pod("a0", "a", cpu="8"))
        cluster.attempt_all()
        cluster.clock.advance(3600)
        cluster.end("a0")
        cluster.clock.advance(rest)
        cluster.queue.add(a_pod("a", "a"))
        cluster.queue.add(a_pod("b", "b"))
        assert popped(cluster) == names


def test_pods_may_be_queued_long_after_the_last_decision() -> None:
    cluster = SharedCluster(halfLife="1s")
    cluster.queue.add(a_pod("a0", "a"))
    cluster.attempt_all()
    cluster.clock.advance(86400)
    cluster.end("a0")
    cluster.cache.put_pod(a_pod("theirs", "b", cpu="3", on="n1"))
    cluster.queue.add(a_pod("a", "a", cpu="1"))
    cluster.queue.add(a_pod("b", "b", cpu="1"))
    cluster.queue.validate()
    assert popped(cluster) == ["a", "b"]


def test_pods_of_other_schedulers_count() -> None:
    cluster = SharedCluster()
    cluster.cache.put_pod(a_pod("theirs", "a", scheduler_name="other", on="n1"))
    cluster.queue.add(a_pod("a", "a"))
    cluster.queue.add(a_pod("b", "b"))
    assert popped(cluster) == ["b", "a"]
