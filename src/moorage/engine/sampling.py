"""percentageOfNodesToScore: the search for nodes ends when enough feasible ones are found.

Nodes are searched zone by zone in turn (`Snapshot.search_order`), each pod's search beginning where the one
before it ended. kube-scheduler with one worker (`parallelism: 1`) finds the same nodes; several workers
overtake each other, so that its samples vary a little.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.framework.interface.nodes import Nodes
from moorage.framework.runtime.framework import Framework

MIN_FEASIBLE_NODES: Final = 100
"""Minimum sample size for any percentage, in nodes."""


class Sampling:
    """Takes samples of the feasible nodes, if the percentage (or a profile's own) is from 1 to 99."""

    def __init__(self, percentage: int) -> None:
        self._percentage = percentage
        self._next_start = 0
        self._last: tuple[Framework, bool] | None = None
        """The profile that was asked about last, and whether it uses a sample."""

    def is_wanted(self, framework: Framework) -> bool:
        """Whether a profile uses only a sample of the feasible nodes."""
        if self._last is None or self._last[0] is not framework:
            is_wanted = _finds_one(framework) or 0 < self._percentage_of(framework) < 100
            self._last = framework, is_wanted
        return self._last[1]

    def sample(
        self,
        framework: Framework,
        pod: Pod,
        order: NDArray[np.intp],
        candidates: Nodes,
        feasible: Nodes,
        diagnosis: Diagnosis,
    ) -> Nodes:
        """The first feasible nodes among the candidates; rejections of nodes not reached are discarded.

        order: the rows of all nodes, as they are searched.
        """
        rows = self._rotated(order if candidates.rows is None else order[_mask(candidates)[order]])
        enough = self._enough(framework, len(rows))
        found = np.flatnonzero(_mask(feasible)[rows])
        if len(found) > enough:
            # The search ends with the first feasible node that is not needed any more.
            diagnosis.keep_only(np.append(rows[: found[enough]], _nominated(pod, candidates)))
        sampled = Nodes(candidates.snapshot, rows[found[:enough]])
        searched = len(sampled) + diagnosis.refused_count
        self._next_start = (self._next_start + searched) % len(order)
        return sampled

    def _rotated(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        return np.roll(rows, -(self._next_start % len(rows))) if len(rows) else rows

    def _enough(self, framework: Framework, nodes: int) -> int:
        """Number of feasible nodes that ends the search."""
        if _finds_one(framework):
            return 1
        return max(nodes * self._percentage_of(framework) // 100, MIN_FEASIBLE_NODES)

    def _percentage_of(self, framework: Framework) -> int:
        own = framework.profile.percentage_of_nodes_to_score
        return self._percentage if own is None else own


def _finds_one(framework: Framework) -> bool:
    """Whether any one feasible node is enough, because nothing compares them."""
    extenders = framework.handle.extenders
    return not (framework.at("score") or extenders.filters or extenders.prioritizes)


def _mask(nodes: Nodes) -> NDArray[np.bool_]:
    mask = np.zeros(len(nodes.snapshot), np.bool_)
    mask[nodes.row_numbers()] = True
    return mask


def _nominated(pod: Pod, nodes: Nodes) -> NDArray[np.intp]:
    """The row of the node that was tried before all others."""
    return nodes.named([pod.status.nominated_node_name]).row_numbers()
