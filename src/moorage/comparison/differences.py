"""How a run differs from the one that it is compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from moorage.comparison.attribution import Attribution, Cause
from moorage.comparison.identities import PodIdentity
from moorage.comparison.results import BoundOnce, Move, Mover, WaitingChange, WaitingChanges
from moorage.simulation.records import PodRecord

Pods = Mapping[PodIdentity, PodRecord]
_DIGITS = 6


def moves_of(former: Pods, pods: Pods, attributions: Mapping[PodIdentity, Attribution]) -> list[Move]:
    """The pods that are on other nodes, in the order in which they were created.

    attributions: what moved them; those that are not among them are members of groups.
    """
    grouped = Attribution(Cause.GROUP, reason="its group was placed as a whole")
    return [
        Move(str(identity), before.node, after.node, after.bound_at, attributions.get(identity, grouped))
        for identity, before, after in _in_both(former, pods)
        if before.node != after.node and after.bound_at is not None
    ]


def movers_of(moves: Sequence[Move]) -> list[Mover]:
    """What moved pods, the most pods first."""
    counts = Counter((each.by.cause, each.by.plugin, each.by.reason) for each in moves)
    return [Mover(*key, count) for key, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]


def unmoved_count(former: Pods, pods: Pods) -> int:
    """The number of pods that are on the same node in both runs."""
    return sum(before.node == after.node for _, before, after in _in_both(former, pods))


def bound_only_in(pods: Pods, other: Pods) -> list[BoundOnce]:
    """The pods that got a node in one run, and none in the other one."""
    found = []
    for identity, pod in pods.items():
        there = other.get(identity)
        if pod.bound_at is not None and (there is None or there.bound_at is None):
            found.append(BoundOnce(str(identity), pod.node, "" if there is None else there.message))
    return found


def waiting_changes(former: Pods, pods: Pods, top: int) -> WaitingChanges | None:
    """How much longer pods waited. top: how many of those with the largest changes are listed."""
    changes = [
        WaitingChange(str(identity), *(round(each, _DIGITS) for each in (before, after, after - before)))
        for identity, one, other in _in_both(former, pods)
        if (before := one.waiting_seconds) is not None and (after := other.waiting_seconds) is not None
    ]
    if not changes:
        return None
    changes.sort(key=lambda each: each.change)
    count = len(changes)
    p50, p90, p99 = (changes[min(int(count * share), count - 1)].change for share in (0.5, 0.9, 0.99))
    longer = [each for each in reversed(changes) if each.change > 0]
    shorter = [each for each in changes if each.change < 0]
    return WaitingChanges(
        count,
        len(longer),
        len(shorter),
        round(sum(each.change for each in changes) / count, _DIGITS),
        p50,
        p90,
        p99,
        longer[:top],
        shorter[:top],
    )


def _in_both(former: Pods, pods: Pods) -> Iterator[tuple[PodIdentity, PodRecord, PodRecord]]:
    """The pods that were bound in both runs."""
    for identity, before in former.items():
        after = pods.get(identity)
        if before.bound_at is not None and after is not None and after.bound_at is not None:
            yield identity, before, after
