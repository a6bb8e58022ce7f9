"""All workload controllers at once: restarts, accidents, a namespace that goes."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from moorage.api.conditions import is_ready
from moorage.api.manifests import Manifest
from moorage.client.kinds import (
    CONTROLLER_REVISION,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    NAMESPACE,
    POD,
    REPLICA_SET,
    STATEFUL_SET,
)
from moorage_cluster.controllers.cluster import controller_of
from moorage_cluster.controllers.daemon_nodes import target_node
from moorage_cluster.controllers.pods import is_active
from moorage_cluster.controllers.workload_controllers import WORKLOAD_CONTROLLERS
from tests.controllers.harness import Harness
from tests.controllers.workloads.objects import template, workload

NAMES = {DEPLOYMENT: "web", STATEFUL_SET: "db", DAEMON_SET: "agent"}


def create_all(cluster: Harness, namespace: str = "default") -> None:
    for kind, name in NAMES.items():
        replicas = {} if kind is DAEMON_SET else {"replicas": 3}
        obj = workload(name, {"app": name}, **replicas)
        obj["metadata"]["namespace"] = namespace
        cluster.create(kind, obj)
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "app:1"}]}}
    spec = {"parallelism": 2, "completions": 4, "backoffLimit": 100, "template": pod}
    cluster.create(JOB, {"metadata": {"name": "sum", "namespace": namespace}, "spec": spec})


def is_of_job(pod: Manifest) -> bool:
    owner = controller_of(pod)
    return owner is not None and owner["kind"] == "Job"


def heal(cluster: Harness) -> None:
    """Let everything run as it should for a while."""
    for _ in range(60):
        cluster.finish_deletions()
        cluster.run_pods("Succeeded", where=is_of_job)
        cluster.run_pods(where=lambda pod: not is_of_job(pod))
        cluster.advance(15, step=15)


def test_a_namespace_with_everything_in_it_goes() -> None:
    with Harness(*WORKLOAD_CONTROLLERS) as cluster:
        cluster.add_node("one")
        cluster.create(NAMESPACE, {"metadata": {"name": "passing"}})
        create_all(cluster, "passing")
        for pod in cluster.pods():
            cluster.bind(pod, "one")
        cluster.run_pods(limit=3)
        cluster.delete(NAMESPACE, "passing")
        for _ in range(10):
            cluster.finish_deletions()
            cluster.advance(5, step=5)
        assert cluster.find(NAMESPACE, "passing") is None
        for kind in (POD, REPLICA_SET, CONTROLLER_REVISION, *NAMES, JOB):
            assert cluster.list(kind) == []


def test_a_restart_in_the_middle_changes_nothing() -> None:
    with Harness(*WORKLOAD_CONTROLLERS) as cluster:
        cluster.add_node("one")
        create_all(cluster)
        cluster.run_pods(limit=4)
        for kind, name in NAMES.items():
            cluster.patch(kind, name, {"spec": {"template": template("app:2", {"app": name})}})
        before = cluster.list(POD)
        cluster.restart()
        assert cluster.list(POD) == before
        heal(cluster)
        assert_all_is_well(cluster, {"web": 3, "db": 3}, "app:2", {"one"})


@pytest.mark.parametrize("seed", range(5))
def test_after_accidents_everything_is_as_it_should_be(seed: int) -> None:
    random = Random(seed)
    wanted = {"web": 3, "db": 3}
    image, nodes = "app:1", {"one", "two"}
    with Harness(*WORKLOAD_CONTROLLERS, seed=seed) as cluster:
        for node in nodes:
            cluster.add_node(node)
        create_all(cluster)
        for step in range(25):
            pods = cluster.pods()
            match random.randrange(8):
                case 0:
                    name = random.choice(sorted(wanted))
                    wanted[name] = random.randrange(6)
                    kind = DEPLOYMENT if name == "web" else STATEFUL_SET
                    cluster.patch(kind, name, {"spec": {"replicas": wanted[name]}})
                case 1:
                    image = f"app:{step}"
                    for kind, name in NAMES.items():
                        cluster.patch(kind, name, {"spec": {"template": template(image, {"app": name})}})
                case 2 if pods:
                    cluster.delete(POD, random.choice(pods)["metadata"]["name"])
                case 3:
                    cluster.run_pods("Failed", limit=1)
                case 4:
                    cluster.run_pods(ready=False, limit=random.randrange(5))
                case 5:
                    for pod in pods[:3]:
                        if not pod["spec"].get("nodeName"):
                            cluster.bind(pod, target_node(pod) or "one")
                case 6:
                    cluster.restart()
                case _:
                    cluster.finish_deletions(limit=1)
                    cluster.run_pods(limit=3)
                    cluster.advance(random.randrange(30), step=10)
        heal(cluster)
        assert_all_is_well(cluster, wanted, image, nodes)


def assert_all_is_well(cluster: Harness, wanted: dict[str, int], image: str, nodes: set[str]) -> None:
    pods = [pod for pod in cluster.list(POD) if is_active(pod)]
    found = Counter(pod["metadata"]["labels"].get("app") for pod in pods)
    assert found == Counter({**wanted, "agent": len(nodes)})
    assert all(map(is_ready, pods))
    assert {pod["spec"]["containers"][0]["image"] for pod in pods} == {image}
    assert {target_node(pod) for pod in pods if pod["metadata"]["labels"]["app"] == "agent"} == nodes
    deployment = cluster.get(DEPLOYMENT, "web")
    assert deployment["status"]["observedGeneration"] == deployment["metadata"]["generation"]
    assert deployment["status"].get("availableReplicas", 0) == wanted["web"]
    assert deployment["status"].get("updatedReplicas", 0) == wanted["web"]
    conditions = {each["type"]: each["reason"] for each in deployment["status"]["conditions"]}
    assert conditions["Progressing"] == "NewReplicaSetAvailable"
    stateful = cluster.get(STATEFUL_SET, "db")["status"]
    assert stateful["currentRevision"] == stateful["updateRevision"]
    assert stateful.get("readyReplicas", 0) == wanted["db"]
    daemons = cluster.get(DAEMON_SET, "agent")["status"]
    assert daemons["updatedNumberScheduled"] == daemons["numberAvailable"] == len(nodes)
    job = cluster.get(JOB, "sum")["status"]
    assert job["succeeded"] == 4
    assert "Complete" in [each["type"] for each in job["conditions"]]
    assert not any("finalizers" in pod["metadata"] for pod in cluster.list(POD))
