"""Elastic quotas once more, in plain Python: everything is counted again for every question."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from moorage import Pod, pod_requests

RESOURCES = ("cpu", "nvidia.com/gpu")
NO_LIMIT = 1 << 40


def requested(pod: Pod, resource: str) -> int:
    """Whole CPUs or GPUs."""
    return pod_requests(pod).get(resource, 0) // 1_000_000_000


@dataclass(frozen=True)
class PlainQuota:
    """A quota of the namespace of its name. parent: empty for none."""

    name: str
    parent: str
    least: dict[str, int]
    most: dict[str, int]


class Plain:
    """All quotas. The root is the quota with the empty name."""

    def __init__(self, quotas: Iterable[PlainQuota]) -> None:
        self.quotas = {each.name: each for each in quotas}

    def path(self, name: str) -> list[str]:
        """A quota, its parent, and so on to the root; nothing for a namespace without one."""
        if name not in self.quotas:
            return []
        path = [name]
        while path[-1]:
            path.append(self.quotas[path[-1]].parent)
        return path

    def used(self, name: str, resource: str, pods: Iterable[Pod]) -> int:
        """What pods use of a quota."""
        return sum(requested(pod, resource) for pod in pods if name in self.path(pod.namespace))

    def guaranteed(self, name: str, resource: str) -> int:
        """What is guaranteed to a quota."""
        parts = [each.name for each in self.quotas.values() if each.parent == name]
        own = self.quotas[name].least.get(resource, 0) if name else 0
        return max(own, sum(self.guaranteed(part, resource) for part in parts))

    def limit(self, name: str, resource: str) -> int:
        """What a quota may use at most."""
        if name:
            return self.quotas[name].most.get(resource, NO_LIMIT)
        named = any(resource in each.least for each in self.quotas.values())
        return self.guaranteed("", resource) if named else NO_LIMIT

    def admits(self, new: Sequence[Pod], pods: Collection[Pod]) -> bool:
        """Whether pods of one namespace may come."""
        return all(
            self.used(name, resource, [*pods, *new]) <= self.limit(name, resource)
            for name in self.path(new[0].namespace)
            for resource in RESOURCES
            if any(requested(each, resource) for each in new)
        )

    def may_be_evicted(
        self, victims: Sequence[Pod], new: Sequence[Pod], priority: int, pods: Collection[Pod]
    ) -> bool:
        """Whether pods, all together, may be evicted for new ones of one namespace."""
        own = self.path(new[0].namespace)
        if not own:
            return all(not self.path(each.namespace) and each.priority < priority for each in victims)
        stay = [each for each in pods if each not in victims]
        for victim in victims:
            if victim.namespace == own[0]:
                if victim.priority >= priority:
                    return False
                continue
            path = self.path(victim.namespace)
            if not path or not self._may_claim(own, path, new, pods):
                return False
            for name in path[: path.index(next(each for each in path if each in own))]:
                for resource in RESOURCES:
                    lost = requested(victim, resource) and resource in self._counted()
                    if lost and self.used(name, resource, stay) < self.guaranteed(name, resource):
                        return False
        return True

    def _counted(self) -> set[str]:
        return {resource for each in self.quotas.values() for resource in each.least}

    def _may_claim(self, own: list[str], path: list[str], new: Sequence[Pod], pods: Iterable[Pod]) -> bool:
        meeting = next(name for name in own if name in path)
        below = own.index(meeting) - 1
        return below >= 0 and all(
            self.used(own[below], resource, [*pods, *new]) <= self.guaranteed(own[below], resource)
            for resource in self._counted()
            if any(requested(each, resource) for each in new)
        )

    def makes_room(self, new: Pod, pods: Sequence[Pod], room: dict[str, int], most: int) -> bool:
        """Whether there are victims, at most so many, without which a pod of CPUs alone has room."""
        for count in range(1, most + 1):
            for victims in combinations(pods, count):
                stay = [each for each in pods if each not in victims]
                if (
                    self._has_node(new, stay, room)
                    and self.admits([new], stay)
                    and self.may_be_evicted(victims, [new], new.priority, pods)
                ):
                    return True
        return False

    def _has_node(self, new: Pod, pods: Iterable[Pod], room: dict[str, int]) -> bool:
        free = dict(room)
        for each in pods:
            free[each.spec.node_name] -= requested(each, "cpu")
        return any(left >= requested(new, "cpu") for left in free.values())
