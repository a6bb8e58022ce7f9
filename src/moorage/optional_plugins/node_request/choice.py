"""Which shape of several: the one that costs least for each pod, or whose nodes are left least unused.

The next node is looked at, as full as the pods that are left can make it: so full nodes may be of one shape,
and the node for the rest of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from moorage import Offer, Pod, pod_requests

_COMPARED: Final = ("cpu", "memory")
"""The resources whose unused part is compared."""
_DIGITS: Final = 9
"""Number of decimals from which on costs and shares are equal."""


class Option(NamedTuple):
    """An offer on whose nodes pods that are alike fit; capacity: how many on one node, at least 1."""

    offer: Offer
    capacity: int

    def cost(self) -> float:
        """What a node costs by hour, for each of the pods."""
        return self.offer.shape.price_per_hour / self.capacity

    def waste(self, pod: Pod) -> float:
        """The share of a node that stays unused: the sum of that of CPU and memory."""
        requests, resources = pod_requests(pod), self.offer.shape.resources
        used = (requests.get(name, 0) * self.capacity / resources[name] for name in _COMPARED)
        return sum(1.0 - share for share in used)


def chosen(rule: str, pod: Pod, options: Sequence[Option]) -> Option:
    """The best option for pods like one: of equal ones that with room for more pods, then the first."""

    def rank(option: Option) -> tuple[float, float, int]:
        cost, waste = round(option.cost(), _DIGITS), round(option.waste(pod), _DIGITS)
        return (waste, cost, -option.capacity) if rule == "LeastWaste" else (cost, waste, -option.capacity)

    return min(options, key=rank)
