"""DaemonSets: which nodes, following them, updates."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from moorage.api.conditions import is_ready
from moorage.api.decode import convert
from moorage.api.manifests import Manifest
from moorage.api.node import Node
from moorage.client.kinds import CONTROLLER_REVISION, DAEMON_SET, NODE, POD
from moorage_cluster.controllers.daemon_nodes import Daemon, target_node, tied_to, with_tolerations
from moorage_cluster.controllers.daemon_set import DaemonSetController
from moorage_cluster.controllers.pods import is_active
from tests.controllers.harness import Harness
from tests.controllers.workloads.objects import template, workload


@pytest.fixture
def cluster() -> Iterator[Harness]:
    with Harness(DaemonSetController) as harness:
        yield harness


def places(cluster: Harness) -> list[str]:
    return sorted(target_node(pod) for pod in cluster.pods())


def images(cluster: Harness) -> list[str]:
    found = sorted(cluster.pods(), key=target_node)
    return [pod["spec"]["containers"][0]["image"].removeprefix("app:") for pod in found]


def status(cluster: Harness) -> Manifest:
    found: Manifest = cluster.get(DAEMON_SET, "web")["status"]
    return found


def set_image(cluster: Harness, image: str) -> None:
    cluster.patch(DAEMON_SET, "web", {"spec": {"template": template(image)}})


def schedule(cluster: Harness) -> None:
    """Put pods where they belong and let them run."""
    for pod in cluster.pods(where=lambda pod: not pod["spec"].get("nodeName")):
        cluster.bind(pod, target_node(pod))
    cluster.run_pods()


class Case(NamedTuple):
    spec: dict[str, Any]
    node: dict[str, Any]
    runs: bool
    stays: bool


def taint(key: str, effect: str) -> dict[str, Any]:
    return {"taints": [{"key": key, "effect": effect}]}


def affinity(value: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": [value]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": required}}


ELIGIBILITY = {
    "any node": Case({}, {}, True, True),
    "selected": Case({"nodeSelector": {"disk": "ssd"}}, {}, True, True),
    "not selected": Case({"nodeSelector": {"disk": "hdd"}}, {}, False, False),
    "by affinity": Case(affinity("ssd"), {}, True, True),
    "against affinity": Case(affinity("hdd"), {}, False, False),
    "by name": Case({"nodeName": "one"}, {}, True, True),
    "by another name": Case({"nodeName": "two"}, {}, False, False),
    "kept away": Case({}, taint("dedicated", "NoSchedule"), False, True),
    "expelled": Case({}, taint("dedicated", "NoExecute"), False, False),
    "discouraged only": Case({}, taint("dedicated", "PreferNoSchedule"), True, True),
    "tolerating": Case(
        {"tolerations": [{"key": "dedicated", "operator": "Exists"}]},
        taint("dedicated", "NoExecute"),
        True,
        True,
    ),
    "not ready": Case({}, taint("node.kubernetes.io/not-ready", "NoExecute"), True, True),
    "cordoned": Case({}, taint("node.kubernetes.io/unschedulable", "NoSchedule"), True, True),
    "no network": Case({}, taint("node.kubernetes.io/network-unavailable", "NoSchedule"), False, True),
    "no network, not needed": Case(
        {"hostNetwork": True}, taint("node.kubernetes.io/network-unavailable", "NoSchedule"), True, True
    ),
}


@pytest.mark.parametrize("case", ELIGIBILITY.values(), ids=ELIGIBILITY.keys())
def test_eligibility(case: Case) -> None:
    daemon_set = workload(template=template(**case.spec))
    node = convert({"metadata": {"name": "one", "labels": {"disk": "ssd"}}, "spec": case.node}, Node)
    assert Daemon(daemon_set).eligibility(node) == (case.runs, case.stays)


def test_tolerations_are_for_ever() -> None:
    given = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    found = with_tolerations({"tolerations": [{**given, "tolerationSeconds": 30}, {"key": "mine"}]})
    assert found["tolerations"][:2] == [{"key": "mine"}, given]
    assert len(found["tolerations"]) == 7


def test_a_pod_is_tied_to_its_node_whatever_the_template_says() -> None:
    tied = tied_to(affinity("ssd"), "one")
    assert target_node({"spec": tied}) == "one"
    required = tied["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert required["nodeSelectorTerms"] == [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["one"]}]}
    ]


def test_pods_follow_nodes(cluster: Harness) -> None:
    cluster.add_node("one", {"disk": "ssd"})
    cluster.add_node("two")
    cluster.create(DAEMON_SET, workload(template=template(nodeSelector={"disk": "ssd"})))
    assert places(cluster) == ["one"]
    cluster.add_node("three", {"disk": "ssd"})
    assert places(cluster) == ["one", "three"]
    schedule(cluster)
    assert (status(cluster)["desiredNumberScheduled"], status(cluster)["numberReady"]) == (2, 2)
    cluster.patch(NODE, "two", {"metadata": {"labels": {"disk": "ssd"}}})
    assert places(cluster) == ["one", "three", "two"]
    cluster.patch(NODE, "one", {"metadata": {"labels": {"disk": "hdd"}}})
    cluster.finish_deletions()
    assert places(cluster) == ["three", "two"]
    assert cluster.events("web")[0][0] == "SuccessfulCreate"


def test_a_tainted_node_keeps_or_loses_its_pod(cluster: Harness) -> None:
    for name in ("one", "two"):
        cluster.add_node(name)
    cluster.create(DAEMON_SET, workload())
    schedule(cluster)
    cluster.patch(NODE, "one", {"spec": taint("dedicated", "NoSchedule")})
    cluster.patch(NODE, "two", {"spec": taint("dedicated", "NoExecute")})
    assert places(cluster) == ["one"]
    assert (status(cluster)["desiredNumberScheduled"], status(cluster).get("numberMisscheduled")) == (0, 2)
    cluster.finish_deletions()
    assert status(cluster)["numberMisscheduled"] == 1


def test_a_pod_for_a_node_that_is_gone_goes(cluster: Harness) -> None:
    cluster.add_node("one")
    cluster.create(DAEMON_SET, workload())
    cluster.delete(NODE, "one")
    assert cluster.list(POD) == []
    assert status(cluster)["desiredNumberScheduled"] == 0


def test_a_failed_pod_is_replaced_after_growing_pauses(cluster: Harness) -> None:
    cluster.add_node("one")
    cluster.create(DAEMON_SET, workload())
    waited = []
    for _ in range(4):
        cluster.run_pods("Failed")
        start = cluster.clock.now()
        while any(pod["status"]["phase"] == "Failed" for pod in cluster.pods()):
            cluster.advance(0.5)
        waited.append(cluster.clock.now() - start)
    assert waited == [0, 1, 2, 4]
    assert "FailedDaemonPod" in [reason for reason, _ in cluster.events("web")]


@pytest.mark.parametrize(
    ("limits", "most", "fewest"),
    [
        ({"maxUnavailable": 1}, 5, 4),
        ({"maxUnavailable": "50%"}, 5, 2),
        ({"maxUnavailable": 0, "maxSurge": 2}, 7, 5),
    ],
)
def test_a_rolling_update_stays_within_its_limits(
    cluster: Harness, limits: dict[str, Any], most: int, fewest: int
) -> None:
    """`most` pods that are not on their way out, at least `fewest` that serve."""
    for name in "abcde":
        cluster.add_node(name)
    cluster.create(DAEMON_SET, workload(updateStrategy={"type": "RollingUpdate", "rollingUpdate": limits}))
    schedule(cluster)

    def measure(pods: list[Manifest]) -> tuple[int, int]:
        active = [pod for pod in pods if is_active(pod)]
        return len(active), sum(map(is_ready, active))

    seen = cluster.record(measure)
    set_image(cluster, "app:2")
    for _ in range(20):
        cluster.finish_deletions(limit=1)
        cluster.settle()
        for pod in cluster.pods(where=lambda pod: not pod["spec"].get("nodeName")):
            cluster.bind(pod, target_node(pod))
        # One at a time: what is under way has to be counted when more is begun.
        cluster.run_pods(limit=1)
    assert images(cluster) == ["2"] * 5
    assert max(total for total, _ in seen) == most
    assert min(serving for _, serving in seen) == fewest
    found = status(cluster)
    assert (found["updatedNumberScheduled"], found["numberAvailable"]) == (5, 5)
    assert found["observedGeneration"] == 2


def test_on_delete_waits_for_the_user(cluster: Harness) -> None:
    for name in ("one", "two"):
        cluster.add_node(name)
    cluster.create(DAEMON_SET, workload(updateStrategy={"type": "OnDelete"}))
    schedule(cluster)
    set_image(cluster, "app:2")
    schedule(cluster)
    assert images(cluster) == ["1", "1"]
    first = next(pod for pod in cluster.pods() if target_node(pod) == "one")
    cluster.delete(POD, first["metadata"]["name"], grace_seconds=0)
    assert images(cluster) == ["2", "1"]
    assert status(cluster)["updatedNumberScheduled"] == 1


def test_revisions(cluster: Harness) -> None:
    cluster.add_node("one")
    cluster.create(DAEMON_SET, workload(revisionHistoryLimit=1))
    for image in ("app:2", "app:3", "app:2"):
        set_image(cluster, image)
    kept = {
        each["data"]["spec"]["template"]["spec"]["containers"][0]["image"]: each["revision"]
        for each in cluster.list(CONTROLLER_REVISION)
    }
    assert kept == {"app:3": 3, "app:2": 4}
    (pod,) = cluster.pods()
    newest = max(cluster.list(CONTROLLER_REVISION), key=lambda each: int(each["revision"]))
    label = pod["metadata"]["labels"]["controller-revision-hash"]
    assert newest["metadata"]["name"] == f"web-{label}"
    assert newest["metadata"]["labels"]["controller-revision-hash"] == label


def test_availability_takes_time(cluster: Harness) -> None:
    cluster.add_node("one")
    cluster.create(DAEMON_SET, workload(minReadySeconds=10))
    schedule(cluster)
    cluster.advance(9)
    assert (status(cluster)["numberReady"], status(cluster)["numberUnavailable"]) == (1, 1)
    cluster.advance(1)
    assert status(cluster)["numberAvailable"] == 1


def test_many_nodes(cluster: Harness) -> None:
    cluster.create(DAEMON_SET, workload())
    for number in range(60):
        cluster.add_node(f"node-{number}")
    assert len(cluster.list(POD)) == 60


def test_revision_is_the_template_with_sorted_keys(cluster: Harness) -> None:
    """As Go encodes it: clients compare a revision's bytes with the template to find the present one."""
    cluster.create(DAEMON_SET, workload())
    cluster.settle()
    [revision] = cluster.list(CONTROLLER_REVISION)
    present = cluster.get(DAEMON_SET, "web")["spec"]["template"]
    expected = {"spec": {"template": {**present, "$patch": "replace"}}}
    assert json.dumps(revision["data"]) == json.dumps(expected, sort_keys=True)
