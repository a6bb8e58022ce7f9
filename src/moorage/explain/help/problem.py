"""Which filters reject a pod on which nodes: what changes are searched for.

A filter is one bit, and the filters that reject a node are a number, so that which nodes would pass with some
changes is arithmetic on arrays of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.api.resource_requests import resource_amounts, spec_requests
from moorage.cluster.snapshot import Snapshot
from moorage.explain.evaluation import AllRefusals, Rows
from moorage.explain.help.change import Change, Situation
from moorage.explain.help.trials import Trials
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.framework.interface.hypothetical_pods import HypotheticalPods
from moorage.framework.interface.nodes import Nodes
from moorage.framework.runtime.filtering import run_filters
from moorage.framework.runtime.framework import Framework
from moorage.framework.runtime.plan import CallDecision
from moorage.framework.runtime.pre_filtering import run_pre_filters

Mask = NDArray[np.bool_]
Bits = NDArray[np.int64]

_FULL_NODE: Final = 100.0
"""The shortage of a node that takes no more pods."""


@dataclass(frozen=True, slots=True, eq=False)
class Offer:
    """Changes of one kind that make filters accept nodes.

    cleared: for each row the bits of the filters that accept the node after the changes.
    cost: how large the changes are, among those of their kind.
    rank: the place of the kind among all kinds.
    """

    changes: tuple[Change, ...]
    cleared: Bits
    cost: float
    rank: int = 0


class Problem:
    """A pod that fits nowhere, and the filters that reject it."""

    def __init__(
        self, framework: Framework, pod: Pod, snapshot: Snapshot, refusals: AllRefusals, trials: Trials
    ) -> None:
        self.framework = framework
        self.trials = trials
        self.pod = pod
        self.snapshot = snapshot
        self.nodes = Nodes(snapshot)
        amounts = resource_amounts(spec_requests(pod))
        self.requests = {name: amount for name, amount in amounts.items() if amount > 0}
        """What the pod requests, in milli-CPU, bytes and pieces."""
        self._plugins = [call.plugin for call in framework.at("filter")]
        self._plugins += [
            call.plugin for call in framework.at("pre_filter") if call.plugin not in self._plugins
        ]
        self.cluster_wide = refusals.cluster_wide_plugins
        """The plugins that reject the pod for all nodes, in pre-filter."""
        self.refused_bits = np.zeros(len(snapshot), np.int64)
        for plugin in self.cluster_wide:
            self.refused_bits |= self.bit(plugin)
        for group in refusals.by_filter:
            self.refused_bits[group.rows] |= self.bit(group.plugin)

    def bit(self, *plugins: str) -> int:
        """The bits of filters."""
        return sum(1 << self._plugins.index(plugin) for plugin in plugins if plugin in self._plugins)

    def refused_by(self, *plugins: str) -> Mask:
        """The nodes that any of some filters rejects."""
        refused: Mask = (self.refused_bits & self.bit(*plugins)) != 0
        return refused

    def groups(self, plugin: str, among: Mask | None = None) -> Iterator[Rows]:
        """The nodes that a filter rejects, in groups that all other filters treat alike; nearest first.

        In a group the nodes with the most room for the pod are first, so that all kinds of changes that
        concern a single node offer them for the same one.
        """
        is_refused = self.refused_by(plugin) if among is None else self.refused_by(plugin) & among
        rows = np.flatnonzero(is_refused)
        rows = rows[np.argsort(self.shortage[rows], kind="stable")]
        others = self.refused_bits[rows] & ~self.bit(plugin)
        for signature in sorted(set(others.tolist()), key=lambda bits: (bits.bit_count(), bits)):
            yield rows[others == signature]

    @cached_property
    def shortage(self) -> NDArray[np.float64]:
        """How much each node lacks for the pod: shares of its requests, and 1 for each that is short."""
        nodes, total = self.nodes, np.zeros(len(self.snapshot))
        for name, amount in self.requests.items():
            missing = np.maximum(amount - (nodes.allocatable(name) - nodes.requested(name)), 0)
            total += missing / amount + (missing > 0)
        return total + _FULL_NODE * (nodes.pod_count >= nodes.allowed_pods)

    @cached_property
    def situation(self) -> Situation:
        """The pod and the cluster as they are."""
        return Situation(self.pod)

    def pod_after(self, changes: Iterable[Change]) -> Pod:
        """The pod after some changes."""
        situation = self.situation
        for change in changes:
            situation = change.apply(situation)
        return situation.pod

    def offer(self, changes: tuple[Change, ...], cost: float, *plugins: str) -> Offer:
        """The offer of changes of the pod that concern some filters, asked about all nodes."""
        return Offer(changes, self.accepted(self.pod_after(changes), *plugins), cost)

    def on_row(self, row: int, plugin: str, *changes: Change) -> Offer:
        """The offer of changes that make one filter accept one node; the fewer they are, the better."""
        cleared = np.zeros(len(self.snapshot), np.int64)
        cleared[row] = self.bit(plugin)
        return Offer(changes, cleared, len(changes))

    def accepted(self, pod: Pod, *plugins: str) -> Bits:
        """For each row the bits of those of some filters that accept the node for a pod."""
        bits = np.zeros(len(self.snapshot), np.int64)
        for plugin in plugins:
            bits[self.passes(pod, plugin)] |= self.bit(plugin)
        return bits

    def passes(self, pod: Pod, plugin: str) -> Mask:
        """The nodes that one filter accepts for a pod."""
        passing = np.zeros(len(self.snapshot), bool)
        prepared = self._prepared(pod, [plugin])
        if prepared is not None:
            passing[prepared.passing(self.nodes).row_numbers()] = True
        return passing

    def accepted_without(self, pods: NDArray[np.intp], *plugins: str) -> Bits:
        """For each row the bits of those of some filters that accept the node if pods have left it.

        pods: rows of the table of pods; each node is judged without its own pods alone.
        """
        bits = np.zeros(len(self.snapshot), np.int64)
        rows = self.snapshot.pods.node_rows[pods].astype(np.intp)
        changes = HypotheticalPods(self.snapshot, len(self.snapshot), rows, pods)
        nodes = Nodes(self.snapshot, np.arange(len(self.snapshot)), changes)
        for plugin in plugins:
            prepared = self._prepared(self.pod, [plugin])
            if prepared is not None:
                bits[prepared.passing(nodes).row_numbers()] |= self.bit(plugin)
        return bits

    def accepts(self, bits: int) -> Callable[[Nodes], bool]:
        """A function that says whether some filters accept any of some nodes."""
        prepared = self._prepared(self.pod, [name for name in self._plugins if self.bit(name) & bits])
        return lambda nodes: prepared is not None and len(prepared.passing(nodes)) > 0

    def _prepared(self, pod: Pod, plugins: Collection[str]) -> _PreparedFilters | None:
        """Some filters after their pre-filters; None if one of these rejects the pod."""
        everything = self.framework.plan(CycleState())
        others = [name for name in self._plugins if name not in plugins]
        plan = everything.leaving_out(CallDecision.SKIPS_POD, others)
        cycle = CycleState()
        left = run_pre_filters(plan, cycle, pod, self.nodes, Diagnosis(len(self.snapshot)))
        return None if left is None else _PreparedFilters(self.framework, pod, cycle, left)


@dataclass(frozen=True, slots=True, eq=False)
class _PreparedFilters:
    """Filters of a cycle whose pre-filters have run, and the nodes that those left."""

    framework: Framework
    pod: Pod
    cycle: CycleState
    left: Nodes

    def passing(self, nodes: Nodes) -> Nodes:
        """The nodes that the filters accept."""
        calls = self.framework.plan(self.cycle).filters.active
        some, diagnosis = nodes.within(self.left), Diagnosis(len(nodes.snapshot))
        return run_filters(calls, self.framework.plugins, self.cycle, self.pod, some, diagnosis)
