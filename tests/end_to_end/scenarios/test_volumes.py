"""Claims that come, or are bound, after the pod that wants them."""

from __future__ import annotations

from tests.end_to_end.scenarios.stage import Stage, condition, node_of
from tests.end_to_end.scenarios.storage import SELECTED_NODE, mounted, provisioned, storage_class
from tests.up.objects import claim, pod
from tests.up.running import TIMEOUT_SECONDS


def test_pods_run_as_soon_as_their_claims_can_be_bound(stage: Stage) -> None:
    stage.add_node("n1")
    scheduler = stage.start()
    stage.kubectl.create(storage_class("at-once", "Immediate"))
    early = claim("early")
    early["spec"]["storageClassName"] = "at-once"
    stage.user.create(
        early, pod("patient", volumes=[mounted("early")]), pod("hasty", volumes=[mounted("late")])
    )
    stage.wait("PodScheduled=False", "patient", "hasty")
    assert condition(stage.pod("patient"), "PodScheduled")["message"] == (
        "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"
    )
    assert condition(stage.pod("hasty"), "PodScheduled")["message"] == (
        '0/1 nodes are available: persistentvolumeclaim "late" not found. not found'
    )

    stage.user.create(claim("late"))
    stage.wait("Ready", "hasty")
    late = stage.user.json("get", "pvc", "late")
    assert late["status"]["phase"] == "Bound"
    assert late["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == "n1"
    assert node_of(stage.pod("patient")) == ""

    stage.kubectl.create(provisioned(stage.user.json("get", "pvc", "early")))
    stage.wait("Ready", "patient")
    stage.user("wait", "pvc/early", "--for=jsonpath={.status.phase}=Bound", TIMEOUT_SECONDS)
    scheduler.stop()


def test_a_pod_that_goes_while_its_volume_is_awaited_gives_its_place_to_another(stage: Stage) -> None:
    stage.add_node("n1", cpu="2")
    scheduler = stage.start()
    stage.kubectl.create(storage_class("never", "WaitForFirstConsumer"))
    data = claim("data")
    data["spec"]["storageClassName"] = "never"
    stage.user.create(data, pod("awaits", cpu="1500m", volumes=[mounted("data")]))
    stage.user("wait", "pvc/data", f"--for=jsonpath={SELECTED_NODE}=n1", TIMEOUT_SECONDS)
    stage.user("wait", "pod/awaits", "--for=jsonpath={.status.nominatedNodeName}=n1", TIMEOUT_SECONDS)
    stage.user.create(pod("next", cpu="1500m"))
    stage.wait("PodScheduled=False", "next")
    stage.user("delete", "pod", "awaits")
    stage.wait("PodScheduled", "next")
    scheduler.stop()
    assert [event["regarding"]["name"] for event in stage.events("Scheduled")] == ["next"]
