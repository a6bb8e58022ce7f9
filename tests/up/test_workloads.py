"""What users run on a cluster, and that it comes to run where it should."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from tests.apiserver.running import Kubectl
from tests.up.conftest import NODES, OWN_SCHEDULER
from tests.up.objects import POOL, claim, claim_template, job, pod, workload
from tests.up.running import TIMEOUT_SECONDS, all_at_once


def running(kubectl: Kubectl, app: str) -> dict[str, str]:
    """The nodes of a workload's Running pods, but for those that are on their way out."""
    return {
        each["metadata"]["name"]: each["spec"]["nodeName"]
        for each in kubectl.json("get", "pods", "-l", f"app={app}")["items"]
        if each["status"]["phase"] == "Running" and "deletionTimestamp" not in each["metadata"]
    }


def revisions(kubectl: Kubectl, target: str) -> list[list[str]]:
    lines = kubectl("rollout", "history", target).splitlines()
    return [line.split(maxsplit=1) for line in lines if line[:1].isdigit()]


def test_a_deployment_with_its_own_scheduler(kubectl: Kubectl) -> None:
    target = "deployment/web"
    pods = {"cpu": "50m", "schedulerName": OWN_SCHEDULER}
    kubectl.create(workload("Deployment", "web", replicas=20, pods=pods))
    assert "successfully rolled out" in kubectl("rollout", "status", target, TIMEOUT_SECONDS)
    placed = running(kubectl, "web")
    assert len(placed) == 20
    assert set(placed.values()) == {f"node-{index}" for index in range(NODES)}
    events = kubectl("describe", "pod", next(iter(placed))).split("Events:")[1]
    assert any(line.split()[1:2] == ["Scheduled"] and OWN_SCHEDULER in line for line in events.splitlines())

    kubectl("scale", target, "--replicas=5")
    kubectl("wait", target, "--for=jsonpath={.status.replicas}=5", TIMEOUT_SECONDS)
    kubectl("annotate", target, "kubernetes.io/change-cause=restarted", "--overwrite")
    kubectl("rollout", "restart", target)
    kubectl("rollout", "status", target, TIMEOUT_SECONDS)
    restarted = running(kubectl, "web")
    assert len(restarted) == 5
    assert not restarted.keys() & placed.keys()
    assert [line[0] for line in revisions(kubectl, target)] == ["1", "2"]
    assert "kubectl.kubernetes.io/restartedAt" in kubectl("rollout", "history", target, "--revision=2")

    kubectl("rollout", "undo", target)
    kubectl("rollout", "status", target, TIMEOUT_SECONDS)
    assert not running(kubectl, "web").keys() & (placed.keys() | restarted.keys())
    assert [line[0] for line in revisions(kubectl, target)] == ["2", "3"]
    assert "restartedAt" not in kubectl("get", target, "-o", "jsonpath={.spec.template}")


def test_a_stateful_set_with_claims_bound_late(kubectl: Kubectl) -> None:
    store = workload(
        "StatefulSet", "store", replicas=3, serviceName="store", volumeClaimTemplates=[claim_template("data")]
    )
    kubectl.create(store, claim("lonely"))
    kubectl("rollout", "status", "statefulset/store", TIMEOUT_SECONDS)
    placed = running(kubectl, "store")
    assert sorted(placed) == ["store-0", "store-1", "store-2"]
    pods = {each["metadata"]["name"]: each for each in kubectl.json("get", "pods")["items"]}
    for earlier, later in (("store-0", "store-1"), ("store-1", "store-2")):
        assert created_at(pods[later]) >= ready_at(pods[earlier])
    volumes = {}
    for name, node in placed.items():
        bound = kubectl.json("get", "pvc", f"data-{name}")
        assert bound["status"]["phase"] == "Bound"
        assert bound["spec"]["storageClassName"] == "standard"
        assert bound["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == node
        volumes[name] = bound["spec"]["volumeName"]
    assert kubectl("get", "pvc", "lonely", "-o", "jsonpath={.status.phase}") == "Pending"
    assert "waiting for first consumer to be created before binding" in kubectl("describe", "pvc", "lonely")
    mount = {"name": "data", "persistentVolumeClaim": {"claimName": "lonely"}}
    kubectl.create(pod("companion", volumes=[mount]))
    kubectl("scale", "statefulset/store", "--replicas=1")
    all_at_once(
        kubectl,
        f"wait pvc/lonely --for=jsonpath={{.status.phase}}=Bound {TIMEOUT_SECONDS}",
        f"wait pod/companion --for=condition=Ready {TIMEOUT_SECONDS}",
        f"wait pod/store-1 pod/store-2 --for=delete {TIMEOUT_SECONDS}",
    )
    assert all(
        phase == "Bound" for phase in kubectl("get", "pvc", "-o", "jsonpath={.items[*].status.phase}").split()
    )

    kubectl("scale", "statefulset/store", "--replicas=2")
    kubectl("rollout", "status", "statefulset/store", TIMEOUT_SECONDS)
    claimed = kubectl("get", "pvc", "data-store-1", "-o", "jsonpath={.spec.volumeName}")
    assert claimed == volumes["store-1"]
    kubectl("delete", "statefulset/store", "--cascade=foreground", TIMEOUT_SECONDS)
    assert len(kubectl("get", "pvc", "-o", "name").split()) == 4


def created_at(obj: dict[str, dict[str, str]]) -> datetime:
    return datetime.fromisoformat(obj["metadata"]["creationTimestamp"])


def ready_at(pod: dict[str, dict[str, list[dict[str, str]]]]) -> datetime:
    ready = next(each for each in pod["status"]["conditions"] if each["type"] == "Ready")
    assert ready["status"] == "True"
    return datetime.fromisoformat(ready["lastTransitionTime"])


def test_a_daemon_set_follows_nodes(kubectl: Kubectl, namespace: str, add_node: Callable[..., str]) -> None:
    def desired(count: int) -> None:
        kubectl("wait", "ds/agent", f"--for=jsonpath={{.status.numberReady}}={count}", TIMEOUT_SECONDS)
        kubectl(
            "wait", "ds/agent", f"--for=jsonpath={{.status.desiredNumberScheduled}}={count}", TIMEOUT_SECONDS
        )

    first = add_node()
    kubectl.create(workload("DaemonSet", "agent", pods={"nodeSelector": {POOL: namespace}}))
    desired(1)
    second = add_node()
    desired(2)
    assert sorted(running(kubectl, "agent").values()) == [first, second]
    kubectl("delete", "node", first)
    desired(1)
    assert "DESIRED" in kubectl("get", "ds/agent", "-o", "wide")


def test_jobs(kubectl: Kubectl) -> None:
    kubectl.create(
        job("sum", says={"duration": "1s"}, completions=3, parallelism=2),
        job("broken", says={"duration": "0s", "exit-code": "3"}, backoffLimit=0),
    )
    all_at_once(
        kubectl,
        f"wait job/sum --for=condition=complete {TIMEOUT_SECONDS}",
        f"wait job/broken --for=condition=failed {TIMEOUT_SECONDS}",
    )
    assert kubectl("get", "job/sum", "--no-headers").split()[1:3] == ["Complete", "3/3"]
    assert kubectl("get", "pods", "-l", "job-name=sum", "--no-headers").count("Completed") == 3
    ended = kubectl.json("get", "pods", "-l", "job-name=broken")["items"]
    states = [each["status"]["containerStatuses"][0]["state"]["terminated"] for each in ended]
    assert [(state["exitCode"], state["reason"]) for state in states] == [(3, "Error")]
    assert "BackoffLimitExceeded" in kubectl("describe", "job/broken")
    logs = kubectl("logs", "job/sum")
    assert "registry.example/app:1" in logs


def test_a_namespace_goes_with_all_that_is_in_it(anywhere: Kubectl) -> None:
    anywhere("create", "namespace", "going")
    kubectl = anywhere.with_options("--namespace", "going")
    mount = {"name": "data", "persistentVolumeClaim": {"claimName": "lonely"}}
    kubectl.create(
        workload("Deployment", "web", replicas=2, pods={"volumes": [mount]}),
        claim("lonely"),
        job("endless", says={}),
    )
    all_at_once(
        kubectl,
        f"rollout status deployment/web {TIMEOUT_SECONDS}",
        f"wait pods -l job-name=endless --for=condition=Ready {TIMEOUT_SECONDS}",
    )
    volume = kubectl("get", "pvc", "lonely", "-o", "jsonpath={.spec.volumeName}")
    anywhere("delete", "namespace", "going", TIMEOUT_SECONDS)
    assert kubectl("get", "all,pvc,events,configmaps", "-o", "name") == ""
    anywhere("wait", f"pv/{volume}", "--for=delete", TIMEOUT_SECONDS)
