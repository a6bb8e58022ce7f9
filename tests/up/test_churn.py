"""Workloads of all kinds come and go with their namespaces, and nothing is kept of them for ever."""

from __future__ import annotations

from typing import Any

from moorage.client.kinds import (
    CONFIG_MAP,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    NAMESPACE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_DISRUPTION_BUDGET,
    RESOURCE_QUOTA,
    SERVICE,
    STATEFUL_SET,
    Kind,
)
from moorage_cluster.apiserver.embedded import Settings
from moorage_cluster.local import LocalSettings
from tests.up.census import count_entries
from tests.up.harness import ClusterHarness
from tests.up.objects import apart, budget, claim, claim_template, job, pod, workload

ROUNDS = 2
PROGRESS_DEADLINE_SECONDS = 600
"""The longest that a controller waits before it looks at an object again, be it gone."""
BOUNDED = {
    ".server.store._collections[].log._changes": "20,000 changes of a resource, or 128 MiB of all",
    ".server.api._dispatcher._bodies._known": "256 bodies",
    ".server.resources._by_address[].strategy._validated_specs._known": "1,000 specs",
    "._manager._cluster._recorded_events": "4,096 events",
    "._manager._cluster._event_limits._left": "4,096 objects",
    ".scheduler._schedule_one.engine._equivalence_classes._known": "160 MiB of equivalence classes",
    ".scheduler._schedule_one.engine._equivalence_classes._by_spec": "the same, by spec",
    ".scheduler._profiles._frameworks[]._result_caches._shared._known": "16,384 answers of plugins",
    ".scheduler._profiles._frameworks[]._result_caches._shared_codes._known": "the results of 64 sets",
    ".scheduler._profiles._frameworks[].plugins[]._planner._volumes.changes": "2,048 entries",
    ".scheduler._profiles._frameworks[].plugins[]._incremental_counts._incremental": "4,096 counters",
    ".scheduler._informers.pods._decoder._specs": "4 MiB of encoded specs",
    ".scheduler.cache.objects._tables[].changes._entries": "2,048 changes of a kind",
    ".scheduler.cache._snapshot.objects._tables[].changes._entries": "the same tables",
    ".scheduler.cache._snapshot.pods.class_moves._entries": "8,192 moves",
    ".scheduler.cache._snapshot.pods.terms_moves._entries": "8,192 moves",
    ".scheduler.cache._snapshot.changes._entries": "8,192 rows",
    ".scheduler.cache._snapshot.load_changes._entries": "8,192 rows",
    ".scheduler.cache._snapshot.pods.written._entries": "8,192 rows",
    ".scheduler.cache._snapshot.node_changes._entries": "8,192 rows",
}
"""What fills at first, and what bounds it."""


def objects(number: int) -> list[tuple[Kind, dict[str, Any]]]:
    """What users create in a namespace: pods that run, end, fail, and wait for what never comes."""
    app = f"app-{number}"
    near = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "topology.kubernetes.io/zone"}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "podAffinityTerm": near}]}
    spread = [{"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **near}]
    pods = (
        pod(app, affinity={"podAffinity": preferred}, topologySpreadConstraints=spread),
        pod(f"apart-{number}", affinity=apart(app)),
        pod(f"large-{number}", cpu="1000"),
        pod(f"picky-{number}", nodeSelector={f"key-{number}": "x"}),
        pod(f"volume-{number}", volumes=[volume("claim")]),
        pod(f"lost-{number}", volumes=[volume("missing")]),
    )
    stateful: dict[str, Any] = {"serviceName": "s", "volumeClaimTemplates": [claim_template("data")]}
    return [
        (
            RESOURCE_QUOTA,
            {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "99", "count/configmaps": "9"}}},
        ),
        (CONFIG_MAP, {"metadata": {"name": f"map-{number}"}}),
        (SERVICE, {"metadata": {"name": app}, "spec": {"selector": {"app": app}, "ports": [{"port": 80}]}}),
        (POD_DISRUPTION_BUDGET, budget(app, minAvailable=1)),
        (PERSISTENT_VOLUME_CLAIM, claim("claim")),
        *((POD, each) for each in pods),
        (DEPLOYMENT, workload("Deployment", f"deployment-{number}", replicas=2)),
        (STATEFUL_SET, workload("StatefulSet", f"set-{number}", replicas=1, **stateful)),
        (DAEMON_SET, workload("DaemonSet", f"daemon-{number}")),
        (JOB, job(f"done-{number}", says={"run-seconds": "1"})),
        (JOB, job(f"failing-{number}", says={"run-seconds": "1", "exit-code": "1"})),
    ]


def volume(claim: str) -> dict[str, Any]:
    return {"name": "v", "persistentVolumeClaim": {"claimName": claim}}


def churn(harness: ClusterHarness, number: int) -> None:
    """A namespace comes with workloads of all kinds, and goes with them."""
    namespace = f"namespace-{number}"
    harness.create(NAMESPACE, {"metadata": {"name": namespace}})
    for kind, obj in objects(number):
        harness.create(kind, {**obj, "metadata": {**obj["metadata"], "namespace": namespace}})
    harness.advance(10, step=2)
    harness.delete(NAMESPACE, namespace)
    harness.advance(40, step=5)
    assert harness.names(NAMESPACE) == ["default", "kube-node-lease", "kube-public", "kube-system"]


def test_nothing_that_is_kept_of_workloads_grows_with_how_many_there_were() -> None:
    settings = LocalSettings(nodes=2, server=Settings(event_ttl_seconds=20))
    counts = []
    with ClusterHarness(settings) as harness:
        for first in range(0, 3 * ROUNDS, ROUNDS):
            for number in range(first, first + ROUNDS):
                churn(harness, number)
            harness.advance(PROGRESS_DEADLINE_SECONDS, step=60)
            counts.append(count_entries(harness.local))
    first_count, second, third = counts
    growth = {path: min(second[path] - first_count[path], third[path] - second[path]) for path in third}
    growing = {path for path, more in growth.items() if more >= ROUNDS}
    assert {path for path in growing if not path.startswith(tuple(BOUNDED))} == set()
    unused = [name for name in BOUNDED if not any(path.startswith(name) for path in growing)]
    assert unused == [], "what does not grow needs no bound here"
