"""PodReader: sums that follow its moves are those of all pods on nodes."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from moorage import Cache, PodInfo, PodReader
from tests.builders import make_node, make_pod

steps = st.lists(st.tuples(st.sampled_from(("put", "remove", "read")), st.integers(0, 7), st.integers(1, 3)))


class Sums:
    """The CPU that pods request, by namespace."""

    def __init__(self) -> None:
        self.reader = PodReader()
        self.sums: Counter[str] = Counter()

    def follow(self, cache: Cache) -> None:
        for info, sign in self.reader.moves(cache.snapshot().pods):
            self.sums[info.pod.namespace] += sign * info.load.amounts["cpu"]

    def nonzero(self) -> dict[str, int]:
        return {name: amount for name, amount in self.sums.items() if amount}


def counted(cache: Cache) -> dict[str, int]:
    sums: Counter[str] = Counter()
    for pod in cache.pods():
        sums[pod.namespace] += PodInfo(pod).load.amounts["cpu"]
    return dict(sums)


@given(steps)
def test_sums_are_those_of_a_recount(history: list[tuple[str, int, int]]) -> None:
    cache, sums = Cache([make_node("a"), make_node("b")]), Sums()
    for what, number, cpu in history:
        name, namespace = f"p{number}", f"ns{number % 3}"
        pod = make_pod(name, uid=name, namespace=namespace, on="ab"[cpu % 2], requests={"cpu": str(cpu)})
        if what == "put":
            cache.put_pod(pod)
        elif what == "remove":
            cache.remove_pod(pod)
        else:
            sums.follow(cache)
            assert sums.nonzero() == counted(cache)
    sums.follow(cache)
    assert sums.nonzero() == counted(cache)


def test_another_table_replaces_the_pods_of_the_one_before() -> None:
    first, second = Cache([make_node("a")]), Cache([make_node("a")])
    first.put_pod(make_pod("p", uid="p", namespace="one", on="a", requests={"cpu": "1"}))
    second.put_pod(make_pod("p", uid="p", namespace="two", on="a", requests={"cpu": "2"}))
    sums = Sums()
    for cache, expected in ((first, {"one": 1000}), (second, {"two": 2000})):
        sums.follow(cache)
        assert sums.nonzero() == expected


def test_thousands_of_moves_between_two_readings() -> None:
    """More than the log of written rows keeps."""
    cache, sums = Cache([make_node("a")]), Sums()
    pods = [make_pod(f"p{n}", uid=f"p{n}", on="a", requests={"cpu": "1"}) for n in range(9000)]
    for pod in pods:
        cache.put_pod(pod)
    sums.follow(cache)
    for pod in pods[:8990]:
        cache.remove_pod(pod)
    cache.snapshot()
    for pod in pods[:3]:
        cache.put_pod(pod)
    sums.follow(cache)
    assert sums.nonzero() == counted(cache) == {"default": 13_000}
