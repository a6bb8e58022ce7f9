"""Judges evictions: which node loses pods for another, and which pods, with regard to disruption budgets.

kube-scheduler may violate a budget, but only where it must: of all nodes that evictions would make room on,
it takes one with the fewest violations, and on each node it spares pods that a budget protects before others.
This is that rule once more, for the pods of campaigns, from what the API server has. It says something only
about decisions that were made with just that: what is on its way to a scheduler, or has not been written by
it yet, may have been the reason for another choice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, groupby, islice, permutations, product
from typing import TYPE_CHECKING, Any, Final

from moorage.api.base import Object
from moorage.api.manifests import Manifest
from moorage.api.workloads import PodDisruptionBudget
from moorage.engine.decision import Decision
from moorage.framework.interface.effects import EvictPods
from moorage.queue.queued_pod import QueuedPod
from moorage.scheduler.observers import Observer
from moorage_cluster.chaos.room import priority_of, would_fit

if TYPE_CHECKING:
    from moorage_cluster.chaos.candidate import Candidate
    from moorage_cluster.chaos.world import World

JUDGED: Final = "eviction judged"
_MAX_ORDERS: Final = 24
"""Number of orders of equally important pods of a node beyond which nothing is said about it."""
_NOT_STARTED: Final = "9999"
"""After all times."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What room on a node costs: the pods that go, by uid, and how many of them violate a budget."""

    victims: frozenset[str]
    violations: int


class EvictionJudge(Observer):
    """Compares each decision of a process to evict pods with the rule."""

    def __init__(self, world: World, candidate: Candidate) -> None:
        super().__init__()
        self._world = world
        self._candidate = candidate

    def decided(self, queued: QueuedPod, decision: Decision) -> None:
        """A decision was made, about what the scheduler knows at this moment."""
        effects = () if decision.post_filter is None else decision.post_filter.effects
        for effect in effects:
            if isinstance(effect, EvictPods) and (view := self._view()) is not None:
                self._judge(effect, view)

    def _view(self) -> ClusterView | None:
        """What the API server has; None if the scheduler knows anything else."""
        assert self._candidate.scheduler is not None
        view, cache = ClusterView.of(self._world), self._candidate.scheduler.cache
        budgets = cache.objects.of(PodDisruptionBudget)
        known = Counter(map(_version_of, chain(cache.pods(), cache.nodes(), budgets)))
        stored = Counter(map(_version, chain(view.placed, view.nodes, view.budgets)))
        nominated = {info.pod.uid: node for node, infos in cache.nominations.items() for info in infos}
        return view if known == stored and nominated == view.nominated and not cache.assumed_count else None

    def _judge(self, eviction: EvictPods, view: ClusterView) -> None:
        pod = view.waiting.get(eviction.preemptor.uid)
        if pod is None:
            return
        costs = {each["metadata"]["name"]: view.costs(pod, each) for each in view.nodes}
        if any(each is None for each in costs.values()):
            return
        self._world.injected[JUDGED] += 1
        for problem in problems(pod, eviction, {name: each or [] for name, each in costs.items()}, view):
            self._world.monitor.failed(problem)


def problems(
    pod: Manifest, eviction: EvictPods, costs: dict[str, list[Cost]], view: ClusterView
) -> Iterator[str]:
    """What is wrong with an eviction; costs: what room costs on each node, in any order of equal pods."""
    name, node = pod["metadata"]["name"], eviction.node_name
    here = costs[node]
    going = {each.uid for each in eviction.victims}
    if not any(each.victims - view.terminating == going for each in here):
        yield f"other pods are evicted from node {node} for pod {name} than those that have to go"
        return
    fewest = min(each.violations for each in here)
    for other, there in costs.items():
        if there and max(each.violations for each in there) < fewest:
            yield (
                f"pods are evicted from node {node} for pod {name} with {fewest} violations of budgets, "
                f"and node {other} costs fewer"
            )
            return


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Nodes, pods and budgets at one moment."""

    nodes: list[Manifest]
    placed: list[Manifest]
    """Pods with a node."""
    waiting: dict[str, Manifest]
    """Pods without one, by uid."""
    budgets: list[Manifest]

    @classmethod
    def of(cls, world: World) -> ClusterView:
        """What an API server has."""
        pods = world.objects("Pod")
        return cls(
            world.objects("Node"),
            [each for each in pods if each["spec"].get("nodeName")],
            {_uid(each): each for each in pods if not each["spec"].get("nodeName")},
            world.objects("PodDisruptionBudget"),
        )

    @property
    def nominated(self) -> dict[str, str]:
        """The nodes to which pods are nominated, by uid."""
        nodes = {uid: _status(pod).get("nominatedNodeName") for uid, pod in self.waiting.items()}
        return {uid: node for uid, node in nodes.items() if node}

    @property
    def terminating(self) -> frozenset[str]:
        """The pods that are going already, by uid."""
        return frozenset(_uid(each) for each in self.placed if each["metadata"].get("deletionTimestamp"))

    def costs(self, pod: Manifest, node: Manifest) -> list[Cost] | None:
        """What room for a pod on a node costs, once for each order of equally important pods.

        None: there are too many of these orders. Empty: evictions make no room there, or none has to go.
        """
        name, priority = node["metadata"]["name"], priority_of(pod)
        here = [each for each in self.placed if each["spec"]["nodeName"] == name]
        lower = [each for each in here if priority_of(each) < priority]
        staying = [each for each in here if priority_of(each) >= priority]
        for uid, nominee in self.waiting.items():
            if self.nominated.get(uid) == name and uid != _uid(pod) and priority_of(nominee) >= priority:
                staying.append({**nominee, "spec": {**nominee["spec"], "nodeName": name}})
        if not lower or not would_fit(pod, node, staying):
            return []
        orders = list(islice(_orders(lower), _MAX_ORDERS + 1))
        if len(orders) > _MAX_ORDERS:
            return None
        return [each for order in orders if (each := self._cost(pod, node, staying, order)).victims]

    def _cost(self, pod: Manifest, node: Manifest, staying: list[Manifest], lower: list[Manifest]) -> Cost:
        """The pods that cannot be spared, of some in the order of their importance."""
        violating = self._violating(lower)
        kept, victims = list(staying), []
        for each in sorted(lower, key=lambda each: _uid(each) not in violating):
            if would_fit(pod, node, [*kept, each]):
                kept.append(each)
            else:
                victims.append(_uid(each))
        return Cost(frozenset(victims), len(violating.intersection(victims)))

    def _violating(self, pods: Iterable[Manifest]) -> set[str]:
        """Of pods that are evicted in this order, those whose eviction violates a budget."""
        left = [(each.get("status") or {}).get("disruptionsAllowed") or 0 for each in self.budgets]
        violating = set()
        for pod in pods:
            for number, budget in enumerate(self.budgets):
                if _covers(budget, pod):
                    left[number] -= 1
                    if left[number] < 0:
                        violating.add(_uid(pod))
        return violating


def _orders(pods: Iterable[Manifest]) -> Iterator[list[Manifest]]:
    """Pods, the most important first, in all orders of those that are equally important."""
    ordered = sorted(pods, key=_importance)
    groups = [list(permutations(group)) for _, group in groupby(ordered, key=_importance)]
    return (list(chain.from_iterable(each)) for each in product(*groups))


def _importance(pod: Manifest) -> tuple[int, str]:
    return -priority_of(pod), _status(pod).get("startTime") or _NOT_STARTED


def _covers(budget: Manifest, pod: Manifest) -> bool:
    labels = pod["metadata"].get("labels") or {}
    wanted = budget["spec"]["selector"]["matchLabels"]
    return all(labels.get(key) == value for key, value in wanted.items())


def _status(pod: Manifest) -> Any:
    return pod.get("status") or {}


def _uid(obj: Manifest) -> str:
    return str(obj["metadata"]["uid"])


def _version(obj: Manifest) -> tuple[str, str]:
    return _uid(obj), str(obj["metadata"]["resourceVersion"])


def _version_of(obj: Object) -> tuple[str, str]:
    return obj.metadata.uid, obj.metadata.resource_version
