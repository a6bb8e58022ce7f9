"""Catalogues and manifests: what is read, and what is wrong with bad ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.api.decode import InputError
from moorage.api.labels import HOSTNAME, ZONE
from moorage.planning.catalogue import Offer, new_nodes, offers_of, read_catalogue
from moorage.planning.inputs import read_planned, require_nodes
from moorage.simulation.scenario import ScenarioSource
from moorage.simulation.shapes import INSTANCE_TYPE, NodeShape, price_of

ROOT = Path(__file__).parent.parent.parent


def test_a_shape_becomes_nodes_with_its_labels_taints_zone_and_price() -> None:
    shapes = read_catalogue(ROOT / "examples" / "catalogue.yaml")
    assert [each.prefix for each in offers_of(shapes)[:3]] == [
        "general-4-west",
        "general-4-north",
        "general-4-south",
    ]
    gpu = shapes[-1]
    assert gpu.max == 3
    node = next(new_nodes(Offer(gpu, "west"), {"gpu-8-west-0"}))
    assert node.labels == {
        INSTANCE_TYPE: "gpu-8",
        ZONE: "west",
        "gpu": "true",
        HOSTNAME: "gpu-8-west-1",
    }
    assert price_of(node) == 2.4
    assert [each.key for each in node.spec.taints] == ["nvidia.com/gpu"]
    amounts = {name: amount.value for name, amount in node.status.allocatable.items()}
    assert amounts == {"cpu": 8, "memory": 64 << 30, "nvidia.com/gpu": 1, "pods": 110}


GOOD = "name: a, pricePerHour: 1, resources: {cpu: 4, memory: 8Gi}"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("shapes: []", "shapes: there are none"),
        ("nodes: []", "object contains unknown field `nodes`"),
        ("[", "not YAML: "),
        (f"shapes: [{{{GOOD}}}, {{{GOOD}}}]", "shapes[1]: name: 'a' is given twice"),
        ("shapes: [{name: a, resources: {cpu: 4, memory: 8Gi}}]", "shapes[0]: object missing required field"),
        (f"shapes: [{{{GOOD}, speed: 3}}]", "shapes[0]: object contains unknown field `speed`"),
        (
            f"shapes: [{{{GOOD.replace(': 4', ': lots')}}}]",
            "shapes[0].resources.cpu: 'lots' is not a quantity",
        ),
        (f"shapes: [{{{GOOD.replace(': 4', ': -4')}}}]", "shapes[0].resources.cpu: -4 is negative"),
        (f"shapes: [{{{GOOD.replace(': 4', ': 0')}}}]", "shapes[0]: resources.cpu: missing, or 0"),
        (
            f"shapes: [{{{GOOD.replace(': 1', ': 0')}}}]",
            "shapes[0]: pricePerHour: 0: expected a number above 0",
        ),
        (f"shapes: [{{{GOOD}, zones: []}}]", "shapes[0]: zones: expected different names of zones"),
        (f"shapes: [{{{GOOD}, max: -1}}]", "shapes[0]: max: -1: expected a number of at least 0"),
        (
            f"shapes: [{{{GOOD}, taints: [{{key: a, effect: Never}}]}}]",
            "shapes[0]: taints: effect 'Never': expected",
        ),
        ("shapes: [{name: '', pricePerHour: 1, resources: {cpu: 4, memory: 8Gi}}]", "shapes[0]: name: empty"),
    ],
)
def test_a_bad_catalogue_is_one_clear_line(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "catalogue.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        read_catalogue(path)
    assert problem in str(raised.value)
    assert str(raised.value).startswith(str(path))
    assert "\n" not in str(raised.value)


def test_controllers_stand_for_their_pods(tmp_path: Path) -> None:
    planned = read_planned(ScenarioSource(workload=[ROOT / "examples" / "backlog.yaml"]))
    names = [each.name for each in planned.pods]
    assert names == [
        *(f"shop-{n}" for n in range(9)),
        *(f"report-{n}" for n in range(4)),
        "train-0",
        "train-1",
    ]
    assert planned.pods[0].labels == {"app": "shop"}
    assert planned.pods[0].priority == 0
    assert planned.cluster == []


def test_what_is_no_pod_belongs_to_the_cluster(tmp_path: Path) -> None:
    path = tmp_path / "pods.yaml"
    path.write_text(
        """
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}
---
{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {priorityClassName: high,
  containers: [{name: web, image: web}]}}
"""
    )
    planned = read_planned(
        ScenarioSource(shapes=[NodeShape("n", 1, resources={"cpu": "1", "memory": "1Gi"})], workload=[path])
    )
    # A PriorityClass is an object of the cluster if a plugin that was loaded before reads them.
    assert [each.name for each in planned.cluster if each.name != "high"] == ["n-0", "web"]
    assert [each.priority for each in planned.pods] == [1000]
    assert require_nodes(planned.cluster) is planned.cluster


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "{kind: DaemonSet, metadata: {name: a}}",
            "DaemonSet: how many pods it makes is not in it; give its pods",
        ),
        ("{kind: Deployment, metadata: {name: a}}", "Deployment: spec: missing"),
        ("{kind: Deployment, metadata: {name: a}, spec: {}}", "Deployment: spec: template: missing"),
        ("{kind: Job, spec: {template: {}}}", "Job: metadata.name: missing"),
        (
            "{kind: Job, metadata: {name: a}, spec: {parallelism: x, template: {}}}",
            "Job a: spec.parallelism: not a number",
        ),
    ],
)
def test_a_bad_controller_is_one_clear_line(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "pods.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=problem):
        read_planned(ScenarioSource(workload=[path]))
