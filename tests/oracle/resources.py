"""The oracles for NodeResourcesFit and NodeResourcesBalancedAllocation."""

from __future__ import annotations

import math
from dataclasses import dataclass

from moorage.api.node import Node
from moorage.config.args import ResourceSpec, UtilizationShapePoint
from tests.oracle.amounts import (
    DEFAULTS,
    allocatable,
    counts,
    is_extended,
    is_scalar,
    requests,
    units,
    used,
    used_for_scoring,
)
from tests.oracle.cluster import OraclePlugin, Refusal, refusal


@dataclass(frozen=True)
class Use:
    """One resource on one node: what there is, what is taken, what the pod adds, how much it matters."""

    capacity: int
    before: int
    after: int
    weight: int


class NodeResourcesFit(OraclePlugin):
    """A node needs room for one more pod and for all that it requests; by how full it would be, it scores."""

    name = "NodeResourcesFit"
    filters = scores = True

    def filter(self, node: Node) -> Refusal | None:
        """All shortages are told. One that even the empty node would have cannot be resolved."""
        texts, resolvable = [], True
        slots = units("pods", node.status.allocatable.get("pods", 0))
        if len(self.cluster.pods_on(node)) + 1 > slots:
            texts.append("Too many pods")
        for name, amount in requests(self.pod).items():
            wanted = units(name, amount)
            if wanted == 0 or not counts(name) or self.is_ignored(name):
                continue
            if wanted > allocatable(node, name) - used(self.cluster, node, name):
                texts.append(f"Insufficient {name}")
                resolvable = resolvable and wanted <= allocatable(node, name)
        return refusal(*texts, resolvable=resolvable) if texts else None

    def is_ignored(self, resource: str) -> bool:
        """Whether the profile says not to look: only vendors' resources can be ignored."""
        group = resource.split("/")[0]
        listed = resource in self.args.ignored_resources or group in self.args.ignored_resource_groups
        return is_extended(resource) and listed

    def score(self, node: Node, feasible: list[Node]) -> int:
        """By the strategy. Requests for the pod as a whole play no part in what this pod would add."""
        strategy = self.args.scoring_strategy
        wanted = requests(self.pod, whole_pod=False, defaults=DEFAULTS)
        uses = []
        for spec in strategy.resources:
            taken = used_for_scoring(self.cluster, node, spec.name)
            uses += use_of(node, spec, taken, units(spec.name, wanted.get(spec.name, 0)))
        if strategy.type == "LeastAllocated":
            return weighted_mean([(free_percent(use), use.weight) for use in uses])
        if strategy.type == "MostAllocated":
            return weighted_mean([(full_percent(use), use.weight) for use in uses])
        shape = strategy.requested_to_capacity_ratio.shape
        scores = [(on_shape(shape, full_percent(use)), use.weight) for use in uses]
        return rounded_mean([(score, weight) for score, weight in scores if score > 0])


def use_of(node: Node, spec: ResourceSpec, taken: int, wanted: int) -> list[Use]:
    """A resource's use; none if the node has nothing of it, or if it is special and the pod wants none."""
    capacity = allocatable(node, spec.name)
    if capacity == 0 or (wanted == 0 and is_scalar(spec.name)):
        return []
    return [Use(capacity, taken, taken + wanted, spec.weight)]


def free_percent(use: Use) -> int:
    """How much would be free, rounded down; 0 if too much is taken."""
    return max(0, use.capacity - use.after) * 100 // use.capacity


def full_percent(use: Use) -> int:
    """How much would be taken, rounded down; at most 100."""
    return min(use.after, use.capacity) * 100 // use.capacity


def weighted_mean(scores: list[tuple[int, int]]) -> int:
    """The mean of scores with weights, rounded down; 0 of nothing."""
    total = sum(weight for _, weight in scores)
    return sum(score * weight for score, weight in scores) // total if total else 0


def rounded_mean(scores: list[tuple[int, int]]) -> int:
    """The mean of scores with weights, rounded to the nearest, halves up; 0 of nothing."""
    total = sum(weight for _, weight in scores)
    return (2 * sum(score * weight for score, weight in scores) + total) // (2 * total) if total else 0


def on_shape(shape: tuple[UtilizationShapePoint, ...], percent: int) -> int:
    """The score at a utilization: straight lines between the points, flat outside; points score 0 to 10."""
    left = None
    for right in shape:
        if percent <= right.utilization:
            if left is None:
                return 10 * right.score
            rise = 10 * (right.score - left.score)
            return 10 * left.score + int(
                rise * (percent - left.utilization) / (right.utilization - left.utilization)
            )
        left = right
    return 10 * shape[-1].score


class NodeResourcesBalancedAllocation(OraclePlugin):
    """Better the nodes whose resources the pod makes more evenly used than they are without it."""

    name = "NodeResourcesBalancedAllocation"
    scores = True

    def wanted(self, resource: str) -> int:
        """What the pod requests of a resource; nothing is taken for granted here."""
        return units(resource, requests(self.pod).get(resource, 0))

    def skips_score(self, feasible: list[Node]) -> bool:
        """A pod that requests none of the resources in question changes no balance."""
        return not any(self.wanted(spec.name) for spec in self.args.resources)

    def score(self, node: Node, feasible: list[Node]) -> int:
        """Half of the balance gained or lost, around 75."""
        if self.skips_score(feasible):
            return 0
        uses = []
        for spec in self.args.resources:
            uses += use_of(node, spec, used(self.cluster, node, spec.name), self.wanted(spec.name))
        gained = balance([use.after / use.capacity for use in uses])
        had = balance([use.before / use.capacity for use in uses])
        return 50 + (50 + gained - had) // 2


def balance(shares: list[float]) -> int:
    """100 where all resources are used to the same share, less by their standard deviation; rounded down."""
    shares = [min(share, 1.0) for share in shares]
    if len(shares) < 2:
        return 100
    if len(shares) == 2:
        deviation = abs(shares[0] - shares[1]) / 2
    else:
        # Summed from left to right, as every digit counts where the result is cut off.
        mean = total(shares) / len(shares)
        deviation = math.sqrt(total([(share - mean) * (share - mean) for share in shares]) / len(shares))
    return int((1 - deviation) * 100)


def total(numbers: list[float]) -> float:
    """A sum from left to right (Python's own `sum` is more exact from 3.12 on)."""
    result = 0.0
    for number in numbers:
        result += number
    return result
