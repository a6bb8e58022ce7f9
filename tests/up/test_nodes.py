"""What administrators do with nodes, and what users see of pods on them."""

from __future__ import annotations

from collections.abc import Callable

from tests.apiserver.running import Kubectl
from tests.up.conftest import NODES
from tests.up.objects import IMAGE, POOL, apart, budget, pod, workload
from tests.up.running import TIMEOUT_SECONDS, all_at_once, finished, line_with


def test_draining_with_a_budget(
    kubectl: Kubectl, anywhere: Kubectl, namespace: str, add_node: Callable[..., str]
) -> None:
    first, second, spare = add_node(), add_node(), add_node()
    anywhere("cordon", spare)
    assert "SchedulingDisabled" in anywhere("get", "node", spare)
    pods = {"nodeSelector": {POOL: namespace}, "affinity": apart("web")}
    kubectl.create(
        workload("Deployment", "web", replicas=2, pods=pods),
        budget("web", minAvailable=2),
        pod("bare", nodeName=first),
    )
    all_at_once(
        kubectl,
        f"rollout status deployment/web {TIMEOUT_SECONDS}",
        f"wait pod/bare --for=condition=Ready {TIMEOUT_SECONDS}",
    )
    refused = anywhere("drain", first, ok=False)
    assert "cannot delete Pods that declare no controller" in refused
    kubectl("delete", "pod", "bare", "--force", "--grace-period=0")

    draining = anywhere.start("drain", first)
    line = line_with(draining, "will retry after 5s")
    assert "Cannot evict pod as it would violate the pod's disruption budget." in line
    kubectl("patch", "pdb", "web", "--type=merge", "-p", '{"spec":{"minAvailable":1}}')
    assert f"node/{first} drained" in finished(draining)
    left = kubectl.json("get", "pods")["items"]
    assert sorted(each["spec"].get("nodeName", "") for each in left) == ["", second]
    waiting = next(each["metadata"]["name"] for each in left if "nodeName" not in each["spec"])
    kubectl("wait", f"pod/{waiting}", "--for=condition=PodScheduled=False", TIMEOUT_SECONDS)
    assert "node(s) were unschedulable" in kubectl("describe", "pod", waiting)
    anywhere("uncordon", spare)
    kubectl("wait", f"pod/{waiting}", "--for=condition=Ready", TIMEOUT_SECONDS)
    assert kubectl("get", "pod", waiting, "-o", "jsonpath={.spec.nodeName}") == spare


def test_what_is_shown(kubectl: Kubectl, anywhere: Kubectl) -> None:
    kubectl.create(pod("shown", cpu="500m", memory="64Mi", says={"usage": "cpu=250m,memory=100Mi"}))
    kubectl("wait", "pod/shown", "--for=condition=Ready", TIMEOUT_SECONDS)
    stored = kubectl.json("get", "pod", "shown")
    node, address = stored["spec"]["nodeName"], stored["status"]["podIP"]

    wide = kubectl("get", "pods", "-o", "wide", "--no-headers").split()
    assert wide[:3] == ["shown", "1/1", "Running"]
    assert (address, node) == (wide[5], wide[6])
    described = kubectl("describe", "pod", "shown")
    reasons = [line.split()[1] for line in described.split("Events:")[1].splitlines()[3:]]
    assert {"Scheduled", "Created", "Started"} <= set(reasons)
    assert "PodReadyToStartContainers   True" in described
    assert IMAGE in kubectl("logs", "shown")
    assert len(kubectl("logs", "shown", "--tail=1").splitlines()) == 1

    assert kubectl("top", "pods", "--no-headers").split() == ["shown", "250m", "100Mi"]
    usage = {line.split()[0]: line.split() for line in anywhere("top", "nodes", "--no-headers").splitlines()}
    assert usage.keys() >= {f"node-{index}" for index in range(NODES)}
    assert int(usage[node][1].removesuffix("m")) >= 250

    nodes = anywhere("get", "nodes", "-o", "wide", "--no-headers").splitlines()
    assert all(line.split()[1].startswith("Ready") for line in nodes)
    described = anywhere("describe", "node", node)
    assert "KubeletReady" in described
    row = next(line.split() for line in described.splitlines() if line.split()[1:2] == ["shown"])
    assert row[2:4] == ["500m", "(6%)"]
    assert "RegisteredNode" in described
