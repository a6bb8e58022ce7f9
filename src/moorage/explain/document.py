"""An explanation as plain data: the format of `moorage explain -o json`, described in docs/how-to/explain.md.

Fields are only ever added. Those that do not apply are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from moorage.explain.bound import BoundPod
from moorage.explain.evaluation import RefusedNodes
from moorage.explain.explanation import Explanation
from moorage.explain.groups import GroupState

Document = dict[str, Any]


def as_document(explanation: Explanation, node: str = "") -> Document:
    """The explanation as plain data; node: only this node is listed among rejected and feasible ones."""
    decision = explanation.decision
    document: Document = {
        "pod": explanation.pod.key,
        "verdict": explanation.verdict,
        "boundTo": explanation.pod.spec.node_name,
        "notes": explanation.notes,
    }
    if explanation.queue is not None:
        document["queue"] = msgspec.to_builtins(explanation.queue)
    if explanation.group is not None:
        document["group"] = _group(explanation.group)
    if explanation.bound is not None:
        document["today"] = _today(explanation.bound)
    if decision is not None:
        document |= {
            "node": decision.node,
            "message": decision.message,
            "nominatedNode": explanation.nominated,
            "victims": [victim.key for victim in explanation.victims],
            "nodes": {"total": explanation.node_count, "feasible": len(decision.feasible)},
            "rejected": _groups(explanation, explanation.refused, node),
            "allRejections": [
                {"plugin": status.plugin, "reasons": list(status.reasons), "allNodes": True}
                for status in explanation.all_refused.cluster_wide
            ]
            + _groups(explanation, explanation.all_refused.by_filter, node),
            "feasible": _feasible(explanation, node),
            "lead": _lead(explanation),
            "help": [each.as_dict() for each in explanation.help],
            "leftOut": [
                {"point": each.point, "why": each.why, "plugins": list(each.plugins)}
                for each in explanation.left_out
            ],
        }
    return {key: value for key, value in document.items() if value not in ("", [], None) or key == "node"}


def _groups(explanation: Explanation, groups: Iterable[RefusedNodes], node: str) -> list[Document]:
    assert explanation.decision is not None
    names = explanation.decision.feasible.snapshot.names
    rows = []
    for each in groups:
        which = sorted(names[row] for row in each.rows.tolist())
        which = [name for name in which if name == node] if node else which
        if which:
            count = len(each.rows)
            rows.append(
                {"plugin": each.plugin, "reasons": list(each.reasons), "count": count, "nodes": which}
            )
    return rows


def _feasible(explanation: Explanation, node: str) -> list[Document]:
    decision = explanation.decision
    assert decision is not None
    scores = decision.scores
    rows: list[Document] = []
    for place, name in enumerate(decision.feasible.names):
        if node and name != node:
            continue
        row: Document = {"node": name, "chosen": name == decision.node}
        if scores is not None:
            row["total"] = int(scores.totals[place])
            row["scores"] = {
                each.plugin: {
                    "raw": int(each.raw[place]),
                    "normalised": int(each.normalised[place]),
                    "weight": each.weight,
                    "weighted": int(each.weighted[place]),
                }
                for each in explanation.scores
            }
        rows.append(row)
    return sorted(rows, key=lambda row: (-row.get("total", 0), not row["chosen"], row["node"]))


def _lead(explanation: Explanation) -> Document | None:
    lead = explanation.lead()
    if lead is None:
        return None
    return {"second": lead.second, "total": lead.total, "byPlugin": lead.by_plugin}


def _group(group: GroupState) -> Document:
    return {
        "name": group.name,
        "needed": group.needed,
        "known": group.known,
        "onNodes": group.placed,
        "scheduled": group.is_scheduled,
        "message": group.message,
        "members": [{"pod": each.pod, "node": each.node, "message": each.message} for each in group.members],
    }


def _today(bound: BoundPod) -> Document:
    return {
        "same": bound.is_same,
        "boundAt": None if bound.since is None else bound.since.isoformat(),
        "rejectedBy": [{"plugin": each.plugin, "reasons": list(each.reasons)} for each in bound.rejected],
        "behindByPlugin": bound.behind,
        "newNodes": list(bound.new_nodes),
        "newPodsOnNode": list(bound.new_pods),
    }
