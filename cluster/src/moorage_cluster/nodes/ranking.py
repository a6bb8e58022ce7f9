"""Which pod goes first when a node runs short."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from moorage_cluster.nodes.usage import PIDS

CRITICAL_PRIORITY: Final = 2_000_000_000


class Candidate(NamedTuple):
    """A pod that may have to go, as far as that depends on it."""

    key: str
    priority: int
    usage: int | None
    """Of what is short; None if nobody knows."""
    request: int = 0
    deduction: int | None = None
    """What is taken off the usage to see how far it is above; the request, unless it is said."""

    @property
    def is_critical(self) -> bool:
        """Whether the cluster cannot do without it: such pods are never evicted."""
        return self.priority >= CRITICAL_PRIORITY


def eviction_order(resource: str, pods: Iterable[Candidate]) -> list[Candidate]:
    """Pods in the order in which they go, critical ones left out.

    First those above their request, of these the least important, of these the one that is furthest above.
    Processes are not requested: there only priority and number count. A pod of which nothing is known goes
    before all others.
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
