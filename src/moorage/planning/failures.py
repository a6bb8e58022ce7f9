"""What the failure of a zone, or of a node, would leave pending."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from moorage.api.base import Object
from moorage.api.decode import InputError
from moorage.api.labels import ZONE
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.planning.evictions import goes_with_its_node
from moorage.planning.results import (
    FORMAT,
    Interrupted,
    MessageCount,
    Move,
    Progress,
    Struct,
    Usage,
    WaitingPod,
    by_priority,
    counted,
    no_progress,
)
from moorage.planning.trial import Trial
from moorage.simulation.settings import Settings

NODE: Final = "node"
"""The domain that is one node; all others are labels of nodes."""


class Failure(Struct, kw_only=True):
    """One domain that fails: its nodes and their pods are gone at once."""

    name: str
    nodes: int
    displaced: int
    """Pods that were on the nodes and are created again."""
    lost: list[str]
    """Pods that nothing creates again."""
    moves: list[Move]
    pending: list[WaitingPod]
    reasons: list[MessageCount]
    """Why pods are pending, counted."""
    usage: list[Usage]
    """What is requested of the nodes that are left."""


class Failures(Struct, kw_only=True):
    """The failure of each domain, one at a time."""

    api_version: str = FORMAT
    kind: str = "FailurePlan"
    complete: bool
    """False if it was interrupted: the domains are those up to then."""
    by: str
    pending_before: int
    domains: list[Failure]


def plan_failures(
    objects: Iterable[Object],
    settings: Settings,
    by: str = ZONE,
    progress: Progress = no_progress,
    *,
    recreates_bare: bool = False,
) -> Failures:
    """What the failure of each domain would leave pending.

    by: `node`, or a label of nodes; InputError if no node has it.
    recreates_bare: whether pods without a controller are created again.
    """
    trial = Trial(objects, settings)
    domains = _domains(trial.nodes(), by)
    plan = Failures(complete=False, by=by, pending_before=trial.settle(), domains=[])
    with suppress(Interrupted):
        for number, (name, nodes) in enumerate(domains.items()):
            gone = [pod for node in nodes for pod in trial.pods_on(node) if not goes_with_its_node(pod)]
            plan.domains.append(_failure(trial, name, nodes, gone, recreates_bare))
            progress(number + 1, len(domains))
        plan.complete = True
    return plan


def _domains(nodes: Iterable[Node], by: str) -> dict[str, list[Node]]:
    """The nodes by domain, by name; a node without the label is in none."""
    domains: dict[str, list[Node]] = {}
    for node in nodes:
        name = node.name if by == NODE else node.labels.get(by)
        if name is not None:
            domains.setdefault(name, []).append(node)
    if not domains:
        raise InputError("", f"no node has the label {by}; give --by node, or another label")
    return dict(sorted(domains.items()))


def _failure(trial: Trial, name: str, nodes: list[Node], pods: list[Pod], recreates_bare: bool) -> Failure:
    mark = trial.mark()
    displaced = [pod for pod in pods if (recreates_bare or pod.controller) and not pod.terminating]
    lost = [] if recreates_bare else [pod.key for pod in pods if pod.controller is None]
    again = {pod.uid: (trial.evict(pod), pod.spec.node_name) for pod in pods}
    for node in nodes:
        trial.remove_node(node)
    moves, pending = list[Move](), list[WaitingPod]()
    for pod in by_priority(displaced):
        new, source = again[pod.uid]
        placement = trial.place(new)
        if placement.node:
            moves.append(placement.move(source))
        else:
            pending.append(placement.waiting(source))
    failure = Failure(
        name=name,
        nodes=len(nodes),
        displaced=len(displaced),
        lost=lost,
        moves=moves,
        pending=pending,
        reasons=counted(each.message for each in pending),
        usage=trial.usage(),
    )
    trial.undo_to(mark)
    return failure
