from __future__ import annotations

import json

from tests.apiserver.running import Kubectl, RunningServer

GROUP_VERSIONS = [
    "apiextensions.k8s.io/v1", "apps/v1", "authentication.k8s.io/v1", "authorization.k8s.io/v1", "batch/v1",
    "coordination.k8s.io/v1", "events.k8s.io/v1", "node.k8s.io/v1", "policy/v1",
    "rbac.authorization.k8s.io/v1", "resource.k8s.io/v1", "scheduling.k8s.io/v1", "storage.k8s.io/v1", "v1",
]  # fmt: skip

RESOURCES = {
    "nodes": ("no", "v1", "false", "Node"),
    "pods": ("po", "v1", "true", "Pod"),
    "persistentvolumeclaims": ("pvc", "v1", "true", "PersistentVolumeClaim"),
    "deployments": ("deploy", "apps/v1", "true", "Deployment"),
    "customresourcedefinitions": ("crd,crds", "apiextensions.k8s.io/v1", "false", "CustomResourceDefinition"),
    "poddisruptionbudgets": ("pdb", "policy/v1", "true", "PodDisruptionBudget"),
    "priorityclasses": ("pc", "scheduling.k8s.io/v1", "false", "PriorityClass"),
    "storageclasses": ("sc", "storage.k8s.io/v1", "false", "StorageClass"),
}


def test_version_and_address(anywhere: Kubectl, server: RunningServer) -> None:
    version = json.loads(anywhere("version", "-o", "json"))["serverVersion"]
    assert (version["major"], version["minor"]) == ("1", "37")
    assert version["gitVersion"].startswith("v1.37.0")
    # Client and server are at most a version apart: kubectl has no skew to warn of.
    assert anywhere.run("version").stderr == ""
    assert f"Kubernetes control plane is running at {server.url}" in anywhere("cluster-info")


def test_health(anywhere: Kubectl) -> None:
    assert [anywhere("get", "--raw", f"/{path}") for path in ("readyz", "livez")] == ["ok", "ok"]
    assert "readyz check passed" in anywhere("get", "--raw", "/readyz?verbose")
    missing = anywhere("get", "--raw", "/nothing", ok=False)
    assert "(NotFound): the server could not find the requested resource" in missing


def test_api_resources_and_versions(anywhere: Kubectl) -> None:
    served = anywhere("api-versions").splitlines()
    assert set(GROUP_VERSIONS) <= set(served)
    rows = [line.split() for line in anywhere("api-resources", "--no-headers").splitlines()]
    by_name = {row[0]: tuple(row[1:]) for row in rows}
    for name, expected in RESOURCES.items():
        assert by_name[name] == expected
    verbs = anywhere("api-resources", "--namespaced=false", "--verbs=list,watch,patch", "-o", "name").split()
    assert "nodes" in verbs
    assert "pods" not in verbs
    assert "subjectaccessreviews.authorization.k8s.io" not in verbs


def test_every_resource_is_explained(anywhere: Kubectl) -> None:
    rows = [line.split()[-4:] for line in anywhere("api-resources", "--no-headers").splitlines()]
    names = [line.split()[0] for line in anywhere("api-resources", "--no-headers").splitlines()]
    assert len(rows) > 45
    for name, (*_, group_version, _, kind) in zip(names, rows, strict=True):
        output = anywhere("explain", name, "--recursive", f"--api-version={group_version}")
        assert f"KIND:       {kind}\n" in output
        assert f"VERSION:    {group_version.rpartition('/')[2]}\n" in output
        fields = output.partition("\nFIELDS:\n")[2].splitlines()
        assert any(line.startswith("  metadata\t<ObjectMeta>") for line in fields), name
        assert len(fields) > 30, name


def test_fields_are_explained(anywhere: Kubectl) -> None:
    output = anywhere("explain", "pod.spec.containers.resources.limits")
    assert "FIELD: limits <map[string]Quantity>" in output
    assert "FIELD: topologySpreadConstraints <[]TopologySpreadConstraint>" in anywhere(
        "explain", "deploy.spec.template.spec.topologySpreadConstraints"
    )
    unknown = anywhere("explain", "pod.spec.nothing", ok=False)
    assert 'field "nothing" does not exist' in unknown


def test_what_is_not_served_is_reported(anywhere: Kubectl) -> None:
    assert 'the server doesn\'t have a resource type "gateways"' in anywhere("get", "gateways", ok=False)
    assert "Metrics API not available" in anywhere("top", "nodes", ok=False)
