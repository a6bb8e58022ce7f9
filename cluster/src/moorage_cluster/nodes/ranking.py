"""The order of pods for node-pressure eviction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from moorage_cluster.nodes.usage import PIDS

CRITICAL_PRIORITY: Final = 2_000_000_000


class Candidate(NamedTuple):
    """A candidate for eviction, with what its rank depends on."""

    key: str
    priority: int
    usage: int | None
    """Usage of the resource that is short; None if unknown."""
    request: int = 0
    deduction: int | None = None
    """Amount subtracted from the usage to rank pods; the request by default."""

    @property
    def is_critical(self) -> bool:
        """Whether its priority is critical: such pods are never evicted."""
        return self.priority >= CRITICAL_PRIORITY


def eviction_order(resource: str, pods: Iterable[Candidate]) -> list[Candidate]:
    """Pods in the order of eviction, without critical ones.

    First those above their request, then by lowest priority, then by the largest excess. There are no
    requests of processes: only priority and usage count. Pods with unknown usage come before all others.
    """
    ranked = [pod for pod in pods if not pod.is_critical]
    if resource == PIDS:
        return sorted(ranked, key=lambda pod: (pod.priority, -(pod.usage or 0)))
    return sorted(ranked, key=_rank)


def _rank(pod: Candidate) -> tuple[bool, bool, int, int]:
    if pod.usage is None:
        return False, False, pod.priority, 0
    deduction = pod.request if pod.deduction is None else pod.deduction
    return True, pod.usage <= pod.request, pod.priority, deduction - pod.usage
