"""Request less of a resource."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from msgspec.structs import replace as replaced
from numpy.typing import NDArray

from moorage.api.base import ResourceList
from moorage.api.names import is_scalar_resource
from moorage.api.pod import Container, PodSpec, ResourceRequirements
from moorage.api.quantity import NANO, Quantity, format_quantity
from moorage.api.resource_requests import CPU, whole_units
from moorage.explain.help.change import Situation
from moorage.explain.help.problem import Offer, Problem

PLUGIN: Final = "NodeResourcesFit"
_MAX_OFFERS: Final = 6


@dataclass(frozen=True, slots=True)
class RequestLess:
    """Request less of a resource; amounts are in milli-CPU, bytes or pieces."""

    resource: str
    requested: int
    less: int

    kind: str = "request"

    def __str__(self) -> str:
        now, then = self._text(self.requested), self._text(self.requested - self.less)
        return f"request {self._text(self.less)} less {self.resource} ({now} now, {then} then)"

    def _text(self, units: int) -> str:
        return format_quantity(units * _unit(self.resource))

    def apply(self, situation: Situation) -> Situation:
        """With smaller requests of the largest containers."""
        target = (self.requested - self.less) * _unit(self.resource)
        return situation.with_spec(lambda spec: lowered(spec, self.resource, target))

    @property
    def size(self) -> int:
        """By how many units the request is smaller."""
        return self.less

    def resized(self, size: int) -> RequestLess:
        """With another amount."""
        return replace(self, less=size)

    def details(self) -> dict[str, Any]:
        """The resource and the amounts."""
        return {
            "resource": self.resource,
            "requested": self._text(self.requested),
            "less": self._text(self.less),
        }


def offers(problem: Problem) -> Iterator[Offer]:
    """The least reductions, for each group of nodes that other filters treat alike."""
    needs = problem.requests
    fixed = {name: whole_units(name, amount) for name, amount in problem.pod.spec.overhead.items()}
    if not needs:
        return
    less = {name: _shortage(problem, name, amount, fixed.get(name, 0)) for name, amount in needs.items()}
    is_possible = problem.nodes.pod_count < problem.nodes.allowed_pods
    for name, amount in needs.items():
        is_possible &= less[name] <= amount - fixed.get(name, 0)
    for _, rows in zip(range(_MAX_OFFERS), problem.groups(PLUGIN, is_possible), strict=False):
        nearest = rows[0]
        wanted = {name: int(short[nearest]) for name, short in less.items() if short[nearest] > 0}
        enough = is_possible.copy()
        for name, short in less.items():
            enough &= short <= wanted.get(name, 0)
        changes = tuple(RequestLess(name, needs[name], amount) for name, amount in wanted.items())
        cleared = np.where(enough, problem.bit(PLUGIN), 0)
        yield Offer(changes, cleared, float(problem.shortage[nearest]))


def _shortage(problem: Problem, name: str, amount: int, fixed: int) -> NDArray[np.int64]:
    """How much less of a resource must be requested on each node; all of it where nothing is free."""
    nodes = problem.nodes
    free = nodes.allocatable(name) - nodes.requested(name)
    least = amount if not fixed else amount + 1
    shortage = np.where(free < amount, np.where(free > 0, amount - free, least), 0)
    return np.where(free < fixed, amount + 1, shortage) if fixed else shortage


def _unit(resource: str) -> int:
    """A unit that scheduling counts in, in billionths."""
    return NANO // 1000 if resource == CPU else NANO


def lowered(spec: PodSpec, resource: str, total: int) -> PodSpec:
    """A spec whose requests of a resource are at most `total` billionths: the largest containers get less."""
    room = total - spec.overhead.get(resource, 0)
    sidecars = [each for each in spec.init_containers if each.restartable]
    targets = _lowered_sum(
        {each.name: _asked(each, resource) for each in (*spec.containers, *sidecars)}, room
    )
    inits, running = [], 0
    for each in spec.init_containers:
        if each.restartable:
            running += targets[each.name]
            inits.append(_asking(each, resource, targets[each.name]))
        else:
            inits.append(_asking(each, resource, min(_asked(each, resource), max(room - running, 0))))
    level = spec.resources
    return replaced(
        spec,
        containers=tuple(_asking(each, resource, targets[each.name]) for each in spec.containers),
        init_containers=tuple(inits),
        resources=level if level is None else _with_amount(level, resource, room),
    )


def _asked(container: Container, resource: str) -> int:
    return container.resources.requests.get(resource, Quantity(0))


def _lowered_sum(amounts: Mapping[str, int], total: int) -> dict[str, int]:
    """Amounts with a sum of at most `total`, taken from the largest first."""
    excess, targets = sum(amounts.values()) - total, dict(amounts)
    for name in sorted(amounts, key=lambda each: -amounts[each]):
        taken = min(max(excess, 0), targets[name])
        targets[name] -= taken
        excess -= taken
    return targets


def _asking(container: Container, resource: str, amount: int) -> Container:
    if amount == _asked(container, resource):
        return container
    return replaced(container, resources=_with_amount(container.resources, resource, amount))


def _with_amount(resources: ResourceRequirements, resource: str, amount: int) -> ResourceRequirements:
    """Requirements with another request; limits of extended resources must equal it."""

    def changed(amounts: ResourceList) -> ResourceList:
        return {**amounts, resource: Quantity(amount)} if resource in amounts else amounts

    limits = changed(resources.limits) if is_scalar_resource(resource) else resources.limits
    return replaced(resources, requests=changed(resources.requests), limits=limits)
