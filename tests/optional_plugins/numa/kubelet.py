"""The kubelet's topology manager in plain Python: hints of every provider, and every combination of them.

A hint is a set of zones that has room for a request; it is preferred if no smaller set could have room on an
empty node. The manager admits what all providers can serve from one set of zones that all of them prefer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import NamedTuple

Zones = frozenset[int]


class Resource(NamedTuple):
    """Capacity, allocatable and available by zone; zones that are not there do not list the resource."""

    capacity: dict[int, int]
    allocatable: dict[int, int]
    available: dict[int, int]


class Machine(NamedTuple):
    """The zones of a node."""

    policy: str
    scope: str
    zone_count: int
    resources: Mapping[str, Resource]


class Container(NamedTuple):
    """kind: app, init or sidecar. needs: what is pinned to zones, in whole units."""

    kind: str
    needs: Mapping[str, int]


def sets(zones: Sequence[int]) -> Iterator[Zones]:
    for size in range(1, len(zones) + 1):
        yield from map(frozenset, combinations(zones, size))


def hints(machine: Machine, names: Sequence[str], needs: Mapping[str, int]) -> list[tuple[Zones, bool]]:
    """The hints of one provider for resources that it serves together."""
    resources = [(machine.resources[name], needs[name]) for name in names]
    zones = sorted(resources[0][0].available)
    is_memory = all("/" not in name and name != "cpu" for name in names)
    smallest = None
    found = []
    for each in sets(zones):
        totals = [sum((of.allocatable if is_memory else of.capacity)[z] for z in each) for of, _ in resources]
        if all(total >= need for total, (_, need) in zip(totals, resources, strict=True)):
            smallest = len(each) if smallest is None else min(smallest, len(each))
        if all(sum(of.available[z] for z in each) >= need for of, need in resources):
            found.append(each)
    return [(each, len(each) == smallest) for each in found]


def admits(machine: Machine, needs: Mapping[str, int]) -> Zones | None:
    """The zones that are taken; none of them if any may be, None if the pod is rejected."""
    wanted = [name for name in needs if name in machine.resources]
    memory = [name for name in wanted if "/" not in name and name != "cpu"]
    groups = [[name] for name in wanted if name not in memory] + ([memory] if memory else [])
    if not groups:
        return frozenset()
    of_groups = [hints(machine, group, needs) for group in groups]
    if machine.policy == "single-numa-node":
        of_groups = [[hint for hint in each if hint[1] and len(hint[0]) == 1] for each in of_groups]
    preferred = [
        permutation[0][0]
        for permutation in product(*of_groups)
        if all(is_preferred for _, is_preferred in permutation)
        and len({each for each, _ in permutation}) == 1
    ]
    if not preferred:
        return None
    return min(preferred, key=lambda each: (len(each), sum(1 << zone for zone in each)))


def refusal(machine: Machine, containers: Sequence[Container]) -> str | None:
    """Why a pod is rejected; None if it is not."""
    if machine.policy not in ("single-numa-node", "restricted"):
        return None
    if machine.scope == "pod":
        return "cannot align pod" if admits(machine, pod_needs(containers)) is None else None
    left = {name: each._replace(available=dict(each.available)) for name, each in machine.resources.items()}
    machine = machine._replace(resources=left)
    for container in containers:
        taken = admits(machine, container.needs)
        if taken is None:
            kind = "" if container.kind == "app" else f"{container.kind} "
            return f"cannot align {kind}container"
        if container.kind == "init":
            continue
        for name, need in container.needs.items():
            for zone in sorted(taken) if name in left else ():
                part = min(left[name].available[zone], need)
                left[name].available[zone] -= part
                need -= part
    return None


def pod_needs(containers: Sequence[Container]) -> dict[str, int]:
    """What all containers need together at the worst moment."""
    needs: dict[str, int] = {}
    for name in {name for each in containers for name in each.needs}:
        running, worst = 0, 0
        for each in containers:
            worst = max(worst, running + each.needs.get(name, 0))
            running += 0 if each.kind == "init" else each.needs.get(name, 0)
        needs[name] = max(worst, running)
    return needs
