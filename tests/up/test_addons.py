"""`moorage up --with`: what a cluster has besides Kubernetes itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from moorage.api.coscheduling import POD_GROUP_LABEL
from moorage.cli.main import app
from moorage.client.kinds import COSCHEDULING_POD_GROUP
from moorage.http.errors import RequestError
from moorage_cluster.addons import AddonName
from moorage_cluster.addons.addon import ADDONS
from moorage_cluster.local import LocalSettings
from tests.apiserver.running import Kubectl, manifest
from tests.up.harness import ClusterHarness
from tests.up.objects import Manifest, pod
from tests.up.running import TIMEOUT_SECONDS, start_cluster

EXAMPLE = Path(__file__).parents[2] / "examples" / "training_job.yaml"
POD_GROUPS = ADDONS[AddonName.POD_GROUPS]


@pytest.fixture(scope="module")
def cluster() -> Iterator[ClusterHarness]:
    with ClusterHarness(LocalSettings(nodes=1, schedules=False, addons=(POD_GROUPS,))) as made:
        yield made


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    result = CliRunner().invoke(app, ["up", "--port", "0", "--with", "nothing"])
    assert result.exit_code == 2
    assert "--with" in result.output
    for name in AddonName:
        assert name in result.output


def test_pod_groups_are_those_of_scheduler_plugins() -> None:
    (definition,) = (each.manifest for each in POD_GROUPS.objects())
    spec = definition["spec"]
    assert definition["metadata"]["name"] == "podgroups.scheduling.x-k8s.io"
    assert (spec["group"], spec["scope"]) == ("scheduling.x-k8s.io", "Namespaced")
    assert spec["names"] == {
        "kind": "PodGroup",
        "listKind": "PodGroupList",
        "plural": "podgroups",
        "singular": "podgroup",
        "shortNames": ["pg", "pgs"],
    }
    (version,) = spec["versions"]
    assert (version["name"], version["subresources"]) == ("v1alpha1", {"status": {}})
    columns = [(each["name"], each["type"], each["jsonPath"]) for each in version["additionalPrinterColumns"]]
    assert columns == [
        ("Phase", "string", ".status.phase"),
        ("MinMember", "integer", ".spec.minMember"),
        ("Running", "integer", ".status.running"),
        ("Succeeded", "integer", ".status.succeeded"),
        ("Failed", "integer", ".status.failed"),
        ("Age", "date", ".metadata.creationTimestamp"),
    ]
    schema = version["schema"]["openAPIV3Schema"]["properties"]
    types = {
        part: {name: (each["type"], each.get("format")) for name, each in schema[part]["properties"].items()}
        for part in ("spec", "status")
    }
    assert types == {
        "spec": {
            "minMember": ("integer", "int32"),
            "minResources": ("object", None),
            "scheduleTimeoutSeconds": ("integer", "int32"),
        },
        "status": {
            "phase": ("string", None),
            "occupiedBy": ("string", None),
            "running": ("integer", "int32"),
            "succeeded": ("integer", "int32"),
            "failed": ("integer", "int32"),
            "scheduleStartTime": ("string", "date-time"),
        },
    }


GROUPS: dict[str, tuple[dict[str, Any], str]] = {
    "nothing is required": ({}, ""),
    "everything": (
        {"minMember": 3, "minResources": {"cpu": "500m", "nvidia.com/gpu": 2}, "scheduleTimeoutSeconds": 9},
        "",
    ),
    "no members": ({"minMember": 0}, "should be greater than or equal to 1"),
    "a number in words": ({"minMember": "three"}, 'must be of type integer: "string"'),
    "no quantity": ({"minResources": {"cpu": "much"}}, "should match"),
    "a fraction": ({"minResources": {"cpu": 1.5}}, "must be of type"),
}


@pytest.mark.parametrize("case", GROUPS)
def test_pod_groups_are_validated(cluster: ClusterHarness, case: str) -> None:
    spec, problem = GROUPS[case]
    group = {"metadata": {"name": case.replace(" ", "-"), "namespace": "default"}, "spec": spec}
    if problem:
        with pytest.raises(RequestError, match=problem):
            cluster.create(COSCHEDULING_POD_GROUP, group)
    else:
        assert cluster.create(COSCHEDULING_POD_GROUP, group)["spec"] == spec


def gang(name: str, cpu: str) -> list[Manifest]:
    """A group of three, and its pods."""
    group = {"apiVersion": COSCHEDULING_POD_GROUP.api_version, "kind": "PodGroup", "spec": {"minMember": 3}}
    pods = [pod(f"{name}-{number}", cpu=cpu) for number in range(3)]
    for each in pods:
        each["metadata"]["labels"][POD_GROUP_LABEL] = name
    return [{**group, "metadata": {"name": name}}, *pods]


def test_a_group_runs_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    options = ("--with", "pod-groups", "--nodes", "2", "--node-cpu", "4", "--emulated-version", "1.36")
    with start_cluster(tmp_path, *options) as running:
        kubectl = Kubectl(running, tmp_path)
        kubectl("apply", "-f", "-", input=manifest(*gang("large", "3")))
        kubectl("apply", "-f", str(EXAMPLE))
        kubectl("wait", "pg/mnist", "--for=jsonpath={.status.phase}=Running", TIMEOUT_SECONDS)
        kubectl("wait", "pod/large-2", "--for=condition=PodScheduled=False", TIMEOUT_SECONDS)
        pods = kubectl.json("get", "pods")["items"]
        placed = [
            each["metadata"]["labels"][POD_GROUP_LABEL] for each in pods if each["spec"].get("nodeName")
        ]
        assert placed == ["mnist"] * 3
        assert kubectl.json("get", "pg", "mnist")["status"]["occupiedBy"] == "default/mnist"
        (line,) = kubectl("get", "pgs", "large", "--no-headers").splitlines()
        assert line.split()[:3] == ["large", "Scheduling", "3"]
