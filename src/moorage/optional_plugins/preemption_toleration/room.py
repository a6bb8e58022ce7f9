"""Nodes that have room for a pod without some pods that are there: one dry run of all filters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moorage import Code, CycleState, Diagnosis, Handle, HypotheticalPods, Nodes, Pod

Mask = NDArray[np.bool_]


def with_room(
    handle: Handle, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis, gone: Mask, some: Mask
) -> Mask:
    """Which nodes a pod would fit on if pods were gone, of those that have some of certain pods.

    gone, some: by row of the pod table. diagnosis: why no node has room now. The answer is by row.
    """
    snapshot = nodes.snapshot
    node_rows = snapshot.pods.node_rows
    has_some = np.zeros(len(snapshot), bool)
    has_some[node_rows[some]] = True
    rows = np.flatnonzero(has_some & _may_be_helped(diagnosis))
    place_of = np.full(len(snapshot), -1, np.intp)
    place_of[rows] = np.arange(len(rows))
    leaving = np.flatnonzero(gone & (place_of[node_rows] >= 0))
    changes = HypotheticalPods(snapshot, len(rows), place_of[node_rows[leaving]], leaving)
    passed = handle.run_filters(cycle, pod, Nodes(snapshot, rows, changes), Diagnosis(len(snapshot)))
    answer = np.zeros(len(snapshot), bool)
    answer[passed.row_numbers()] = True
    return answer


def _may_be_helped(diagnosis: Diagnosis) -> Mask:
    """Which nodes were rejected for a reason that may go away with pods."""
    is_helped = [refusal.reason.code is Code.UNSCHEDULABLE for refusal in diagnosis.refusals]
    everywhere = diagnosis.pre_filter is not None and diagnosis.pre_filter.code is Code.UNSCHEDULABLE
    # The code of no refusal is -1, the last entry.
    mask: Mask = np.array([*is_helped, everywhere]).take(diagnosis.codes, mode="wrap")
    return mask
