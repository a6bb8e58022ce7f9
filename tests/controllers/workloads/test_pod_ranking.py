"""Which pods go first when a set shrinks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from moorage.api.manifests import Manifest, timestamp
from moorage_cluster.controllers.pod_ranking import DELETION_COST, deletion_cost, pods_to_delete

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def pod(
    name: str,
    *,
    node: str = "one",
    phase: str = "Running",
    ready_seconds: int | None = 100,
    age_seconds: int = 1000,
    restarts: int = 0,
    cost: str | None = None,
    uid: str = "",
) -> Manifest:
    conditions: list[Manifest] = []
    if ready_seconds is not None:
        since = timestamp(NOW - timedelta(seconds=ready_seconds))
        conditions.append({"type": "Ready", "status": "True", "lastTransitionTime": since})
    return {
        "metadata": {
            "name": name,
            "uid": uid or name,
            "creationTimestamp": timestamp(NOW - timedelta(seconds=age_seconds)),
            "annotations": {DELETION_COST: cost} if cost is not None else {},
        },
        "spec": {"nodeName": node, "containers": []},
        "status": {
            "phase": phase,
            "conditions": conditions,
            "containerStatuses": [{"name": "main", "restartCount": restarts}],
        },
    }


RANKINGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "unassigned before assigned": ({"node": ""}, {"phase": "Pending", "ready_seconds": None}),
    "pending before running": ({"phase": "Pending"}, {"ready_seconds": None}),
    "unknown before running": ({"phase": "Unknown"}, {}),
    "not ready before ready": ({"ready_seconds": None, "cost": "100"}, {"cost": "-100"}),
    "cheaper before dearer": ({"cost": "-1", "age_seconds": 5000}, {"age_seconds": 10}),
    "ready for a shorter time first": ({"ready_seconds": 10, "age_seconds": 5000}, {"ready_seconds": 500}),
    "more restarts first": ({"restarts": 3, "age_seconds": 5000}, {"restarts": 2, "age_seconds": 10}),
    "younger first": ({"age_seconds": 200}, {"age_seconds": 5000}),
    "of about the same age, by chance": (
        {"age_seconds": 5000, "uid": "a"},
        {"age_seconds": 4900, "uid": "b"},
    ),
}


@pytest.mark.parametrize("case", RANKINGS.values(), ids=RANKINGS.keys())
def test_order(case: tuple[dict[str, Any], dict[str, Any]]) -> None:
    first, second = pod("first", **case[0]), pod("second", **case[1])
    for pods in ([first, second], [second, first]):
        assert pods_to_delete(pods, 1, [], NOW) == [first]


def test_doubled_up_first() -> None:
    """Pods of the whole workload count, so a deployment's old set thins out the fullest nodes."""
    alone, crowded = pod("alone", node="one", age_seconds=10), pod("crowded", node="two", age_seconds=5000)
    related = [alone, crowded, pod("new", node="two")]
    assert pods_to_delete([alone, crowded], 1, related, NOW) == [crowded]


@pytest.mark.parametrize(
    ("text", "cost"),
    [("5", 5), ("-7", -7), ("0", 0), ("+5", 0), ("05", 0), ("1.5", 0), ("", 0), ("99999999999", 0)],
)
def test_deletion_cost(text: str, cost: int) -> None:
    assert deletion_cost(pod("any", cost=text)) == cost
