"""Capacity over random histories, compared with a plain oracle: pods, groups and quotas come and change."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from moorage import EvictPods, Nodes, Pod
from moorage.optional_plugins.capacity.plugin import Capacity
from tests.optional_plugins.capacity.plain_quotas import RESOURCES, Plain, PlainQuota
from tests.optional_plugins.capacity.quotas import GroupScene, gang, members, node, pod, quota

GPU = "nvidia.com/gpu"
PARENTS = {"lab": "", "red": "lab", "blue": "lab", "green": ""}
ROOM = {"n0": 5, "n1": 4, "n2": 3}
NAMESPACES = [*PARENTS, "free"]

amounts = st.integers(0, 5)


@st.composite
def quotas(draw: st.DrawFn, *, of_gpus: bool) -> PlainQuota:
    name = draw(st.sampled_from(sorted(PARENTS)))
    least, most = {"cpu": draw(amounts)}, {}
    if of_gpus and draw(st.booleans()):
        least[GPU] = draw(st.integers(0, 2))
    if draw(st.booleans()):
        most["cpu"] = least["cpu"] + draw(amounts)
    return PlainQuota(name, PARENTS[name], least, most)


def pods(sizes: st.SearchStrategy[int], of_gpus: bool) -> st.SearchStrategy[tuple[Any, ...]]:
    gpus = st.integers(0, 1) if of_gpus else st.just(0)
    return st.tuples(st.just("pod"), st.sampled_from(NAMESPACES), sizes, gpus, st.integers(0, 2))


def histories(sizes: st.SearchStrategy[int], *, of_gpus: bool) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    size = st.integers(1, 3)
    step = st.one_of(
        pods(sizes, of_gpus),
        pods(sizes, of_gpus),
        st.tuples(st.just("gang"), st.sampled_from(NAMESPACES), size, st.integers(0, 2), st.booleans()),
        st.tuples(st.just("end"), st.integers(0, 20)),
        st.tuples(st.just("quota"), quotas(of_gpus=of_gpus)),
        st.tuples(st.just("no quota"), st.sampled_from(sorted(PARENTS))),
    )
    return st.lists(step, min_size=8, max_size=24)


class History:
    """A cluster, its quotas, and what is known of them without the plugin."""

    def __init__(self, first: list[PlainQuota]) -> None:
        nodes = [node(name, cpu, **{GPU: "2"}) for name, cpu in ROOM.items()]
        self.scene = GroupScene(*nodes)
        self.quotas: dict[str, PlainQuota] = {}
        for each in first:
            self.change(each)
        self.count = 0

    @property
    def plain(self) -> Plain:
        known = self.quotas.values()
        names = self.quotas.keys()
        return Plain(
            PlainQuota(each.name, each.parent if each.parent in names else "", each.least, each.most)
            for each in known
        )

    @property
    def there(self) -> list[Pod]:
        return sorted(self.scene.cache.pods(), key=lambda each: each.name)

    def change(self, wanted: PlainQuota) -> None:
        self.quotas[wanted.name] = wanted
        parent = f"{wanted.parent}/{wanted.parent}" if wanted.parent else None
        self.scene.cache.put(quota(wanted.name, wanted.least, wanted.most, parent=parent))

    def take(self, step: tuple[Any, ...], *, is_complete: bool) -> None:
        kind, *details = step
        self.count += 1
        if kind == "pod":
            self._pod(*details, is_complete=is_complete)
        elif kind == "gang":
            self._gang(*details)
        elif kind == "end" and (there := self.there):
            self.scene.cache.remove_pod(there[details[0] % len(there)])
        elif kind == "quota":
            self.change(details[0])
        elif kind == "no quota" and self.quotas.pop(details[0], None) is not None:
            self.scene.cache.remove(quota(details[0]))
        self.check_sums()

    def _pod(self, namespace: str, cpu: int, gpus: int, priority: int, *, is_complete: bool) -> None:
        requests = {"cpu": cpu, GPU: gpus} if gpus else {"cpu": cpu}
        new = pod(f"p{self.count:03}", namespace, requests=requests, priority=priority)
        there, decision = self.there, self.scene.decide(new)
        if decision.node is None:
            result = decision.post_filter
            victims = [] if result is None else self._victims(result.effects)
            if not victims:
                if is_complete:
                    assert not self.plain.makes_room(new, there, ROOM, 3)
                return
            assert self.plain.may_be_evicted(victims, [new], priority, there)
            self._remove(victims)
            decision = self.scene.decide(new)
        assert decision.node is not None, "there is room now"
        self._bind(new, decision.node)
        assert self.plain.admits([new], there := [each for each in self.there if each.name != new.name])

    def _gang(self, namespace: str, size: int, priority: int, is_whole: bool) -> None:
        spec: dict[str, Any] = {"disruptionMode": {"all": {}}} if is_whole else {}
        group = gang(f"g{self.count:03}", namespace, size, priority=priority, **spec)
        new = members(group, size)
        there, decision = self.there, self.scene.decide_group(group, new)
        victims = decision.victims
        if victims:
            assert self.plain.may_be_evicted(victims, new, priority, there)
            self._remove(victims)
            decision = self.scene.decide_group(group, new)
            assert len(decision.result.assignments) == size
        if not decision.result.status.is_success:
            return
        there = self.there
        for each in decision.result.assignments:
            self._bind(each.pod, each.node_name)
        assert self.plain.admits(new, there)

    def _victims(self, effects: tuple[Any, ...]) -> list[Pod]:
        return [each for some in effects if isinstance(some, EvictPods) for each in some.victims]

    def _remove(self, victims: list[Pod]) -> None:
        for each in victims:
            self.scene.cache.remove_pod(each)

    def _bind(self, new: Pod, name: str) -> None:
        self.scene.cache.assume_pod(new, name)

    def check_sums(self) -> None:
        """What the plugin has counted as pods came and went is what there is."""
        plugin = self.scene.framework.plugins["Capacity"]
        assert isinstance(plugin, Capacity)
        plugin.usage.follow(Nodes(self.scene.cache.snapshot()))
        usage = plugin.usage.by_key()
        plain, there = self.plain, self.there
        for name in plain.quotas:
            for resource in RESOURCES:
                unit = 1000 if resource == "cpu" else 1
                counted = usage[f"{name}/{name}"].get(resource, 0)
                assert counted == unit * plain.used(name, resource, there)
        self.scene.cache.validate()


@given(st.lists(quotas(of_gpus=True), max_size=4), histories(st.integers(0, 3), of_gpus=True))
def test_no_limit_is_exceeded_and_no_guarantee_is_taken(
    first: list[PlainQuota], steps: list[tuple[Any, ...]]
) -> None:
    history = History(first)
    for step in steps:
        history.take(step, is_complete=False)


@given(st.lists(quotas(of_gpus=False), min_size=2, max_size=4), histories(st.just(1), of_gpus=False))
def test_what_is_guaranteed_is_given_back(first: list[PlainQuota], steps: list[tuple[Any, ...]]) -> None:
    """Pods of one size: there are victims where the oracle finds some, after trying all sets of three."""
    history = History(first)
    for step in steps:
        if step[0] == "gang":
            step = ("gang", *step[1:-1], False)
        history.take(step, is_complete=True)
