from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.tables.table_rows import an_object, before, row, shown

TEMPLATE = {
    "metadata": {"labels": {"b": "2", "a": "1"}},
    "spec": {
        "containers": [{"name": "main", "image": "nginx:1"}, {"name": "log", "image": "fluent:2"}],
        "nodeSelector": {"disk": "ssd"},
    },
}
SELECTOR = {
    "matchLabels": {"app": "web"},
    "matchExpressions": [
        {"key": "tier", "operator": "In", "values": ["b", "a"]},
        {"key": "env", "operator": "NotIn", "values": ["dev"]},
        {"key": "aaa", "operator": "Exists"},
        {"key": "zzz", "operator": "DoesNotExist"},
    ],
}
SELECTED = "aaa,app=web,env notin (dev),tier in (a,b),!zzz"
WRONG_SELECTOR = {"matchExpressions": [{"key": "a", "operator": "Around", "values": ["b"]}]}

ROWS: dict[str, tuple[str, str, dict[str, Any], list[Any]]] = {
    "deployment": (
        "apps",
        "Deployment",
        an_object(
            spec={"replicas": 3, "template": TEMPLATE, "selector": SELECTOR},
            status={"replicas": 4, "readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 1},
        ),
        ["x", "2/3", 3, 1, "5m", "main,log", "nginx:1,fluent:2", SELECTED],
    ),
    "deployment, bare": ("apps", "Deployment", an_object(), ["x", "0/0", 0, 0, "5m", "", "", ""]),
    "deployment, wrong selector": (
        "apps",
        "Deployment",
        an_object(spec={"selector": WRONG_SELECTOR}),
        ["x", "0/0", 0, 0, "5m", "", "", "<invalid>"],
    ),
    "replica set": (
        "apps",
        "ReplicaSet",
        an_object(
            spec={"replicas": 3, "template": TEMPLATE, "selector": {"matchLabels": {"app": "web"}}},
            status={"replicas": 2, "readyReplicas": 1},
        ),
        ["x", 3, 2, 1, "5m", "main,log", "nginx:1,fluent:2", "app=web"],
    ),
    "replica set, bare": ("apps", "ReplicaSet", an_object(), ["x", 0, 0, 0, "5m", "", "", "<none>"]),
    "replica set, wrong selector": (
        "apps",
        "ReplicaSet",
        an_object(spec={"selector": WRONG_SELECTOR}),
        ["x", 0, 0, 0, "5m", "", "", "<error>"],
    ),
    "stateful set": (
        "apps",
        "StatefulSet",
        an_object(spec={"replicas": 3, "template": TEMPLATE}, status={"readyReplicas": 1}),
        ["x", "1/3", "5m", "main,log", "nginx:1,fluent:2"],
    ),
    "daemon set": (
        "apps",
        "DaemonSet",
        an_object(
            spec={"template": TEMPLATE, "selector": {"matchLabels": {"app": "web"}}},
            status={
                "desiredNumberScheduled": 5,
                "currentNumberScheduled": 4,
                "numberReady": 3,
                "updatedNumberScheduled": 2,
                "numberAvailable": 1,
            },
        ),
        ["x", 5, 4, 3, 2, 1, "disk=ssd", "5m", "main,log", "nginx:1,fluent:2", "app=web"],
    ),
    "daemon set, bare": (
        "apps",
        "DaemonSet",
        an_object(),
        ["x", 0, 0, 0, 0, 0, "<none>", "5m", "", "", "<none>"],
    ),
    "replication controller": (
        "",
        "ReplicationController",
        an_object(
            spec={"replicas": 2, "selector": {"app": "web"}, "template": TEMPLATE},
            status={"replicas": 2, "readyReplicas": 2},
        ),
        ["x", 2, 2, 2, "5m", "main,log", "nginx:1,fluent:2", "app=web"],
    ),
    "pod template": (
        "",
        "PodTemplate",
        an_object(template=TEMPLATE),
        ["x", "main,log", "nginx:1,fluent:2", "a=1,b=2"],
    ),
    "controller revision": (
        "apps",
        "ControllerRevision",
        an_object(
            _metadata={
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Node", "name": "n"},
                    {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "controller": True},
                ]
            },
            revision=3,
        ),
        ["x", "statefulset.apps/web", 3, "5m"],
    ),
    "controller revision of nobody": (
        "apps",
        "ControllerRevision",
        an_object(revision=1),
        ["x", "<none>", 1, "5m"],
    ),
    "cron job": (
        "batch",
        "CronJob",
        an_object(
            spec={
                "schedule": "*/5 * * * *",
                "timeZone": "Europe/Vienna",
                "suspend": False,
                "jobTemplate": {"spec": {"template": TEMPLATE}},
            },
            status={"active": [{"name": "a"}, {"name": "b"}], "lastScheduleTime": before(seconds=45)},
        ),
        [
            "x",
            "*/5 * * * *",
            "Europe/Vienna",
            "False",
            2,
            "45s",
            "5m",
            "main,log",
            "nginx:1,fluent:2",
            "<none>",
        ],
    ),
    "cron job, bare": (
        "batch",
        "CronJob",
        an_object(spec={"schedule": "@daily"}),
        ["x", "@daily", "<none>", "<unset>", 0, "<none>", "5m", "", "", "<none>"],
    ),
    "disruption budget, number": (
        "policy",
        "PodDisruptionBudget",
        an_object(spec={"minAvailable": 0}, status={"disruptionsAllowed": 2}),
        ["x", "0", "N/A", 2, "5m"],
    ),
    "disruption budget, share": (
        "policy",
        "PodDisruptionBudget",
        an_object(spec={"maxUnavailable": "30%"}),
        ["x", "N/A", "30%", 0, "5m"],
    ),
    "scale": (
        "autoscaling",
        "Scale",
        an_object(spec={"replicas": 3}, status={"replicas": 2}),
        ["x", 3, 2, "5m"],
    ),
}


@pytest.mark.parametrize(("group", "kind", "obj", "expected"), ROWS.values(), ids=ROWS)
def test_row(group: str, kind: str, obj: dict[str, Any], expected: list[Any]) -> None:
    assert row(group, kind, obj) == expected


def true(*kinds: str) -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": "True"} for kind in kinds]}


JOB_STATES = {
    "running": ({}, {}, "Running"),
    "complete": (true("SuccessCriteriaMet", "Complete"), {}, "Complete"),
    "failed": (true("FailureTarget", "Failed"), {}, "Failed"),
    "complete, deleted": (true("Complete"), {"deletionTimestamp": before(seconds=1)}, "Complete"),
    "deleted": (true("Suspended"), {"deletionTimestamp": before(seconds=1)}, "Terminating"),
    "suspended": (true("Suspended"), {}, "Suspended"),
    "about to fail": (true("FailureTarget"), {}, "FailureTarget"),
    "about to succeed": (true("SuccessCriteriaMet"), {}, "SuccessCriteriaMet"),
    "no longer suspended": ({"conditions": [{"type": "Suspended", "status": "False"}]}, {}, "Running"),
}


@pytest.mark.parametrize(("status", "metadata", "expected"), JOB_STATES.values(), ids=JOB_STATES)
def test_status_of_a_job(status: dict[str, Any], metadata: dict[str, Any], expected: str) -> None:
    assert shown("batch", "Job", an_object(_metadata=metadata, status=status))["Status"] == expected


JOB_PROGRESS = {
    "of some": ({"completions": 3}, {"succeeded": 1}, "1/3", ""),
    "of none": ({"completions": 0}, {}, "0/0", ""),
    "any one": ({}, {}, "0/1", ""),
    "any one of one": ({"parallelism": 1}, {"succeeded": 1}, "1/1", ""),
    "any one of many": ({"parallelism": 4}, {"succeeded": 2}, "2/1 of 4", ""),
    "runs": ({"completions": 1}, {"startTime": before(seconds=75)}, "0/1", "75s"),
    "ran": (
        {"completions": 1},
        {"startTime": before(hours=5), "completionTime": before(hours=1, minutes=30), "succeeded": 1},
        "1/1",
        "3h30m",
    ),
}


@pytest.mark.parametrize(
    ("spec", "status", "completions", "duration"), JOB_PROGRESS.values(), ids=JOB_PROGRESS
)
def test_progress_of_a_job(
    spec: dict[str, Any], status: dict[str, Any], completions: str, duration: str
) -> None:
    cells = shown("batch", "Job", an_object(spec=spec, status=status))
    assert (cells["Completions"], cells["Duration"]) == (completions, duration)


def test_pods_of_a_job() -> None:
    cells = shown("batch", "Job", an_object(spec={"template": TEMPLATE, "selector": SELECTOR}))
    assert [cells[name] for name in ("Age", "Containers", "Images", "Selector")] == [
        "5m",
        "main,log",
        "nginx:1,fluent:2",
        SELECTED,
    ]
