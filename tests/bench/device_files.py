"""Templates and operations of workloads with devices."""

from __future__ import annotations

from tests.bench.files import Files, node, pod

DRIVER = "gpu.example.com"
DRIVER_OP = {
    "opcode": "createResourceDriver",
    "driverName": DRIVER,
    "nodes": "gpu-*",
    "maxClaimsPerNode": 3,
}
CLASS = {"opcode": "createAny", "templatePath": "class.yaml"}
TEMPLATE = {"opcode": "createAny", "templatePath": "template.yaml", "namespace": "a"}
CLAIMS = {"opcode": "createResourceClaims", "templatePath": "claim.yaml", "namespace": "a", "count": 4}
ALLOCATED = {"opcode": "allocResourceClaims", "namespace": "a"}


def write_device_templates(files: Files, api_version: str = "resource.k8s.io/v1") -> None:
    """Nodes with devices, a class of them, claims for one of them, and pods with such a claim."""
    spec = {"devices": {"requests": [{"name": "one", "exactly": {"deviceClassName": "gpu"}}]}}
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    contents = {
        "DeviceClass": ("class.yaml", {"name": "gpu"}, {"selectors": [selector]}),
        "ResourceClaimTemplate": ("template.yaml", {"name": "gpu"}, {"spec": spec}),
        "ResourceClaim": ("claim.yaml", {"generateName": "gpu-"}, spec),
    }
    for kind, (name, metadata, content) in contents.items():
        files.template(name, {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": content})
    files.template("node.yaml", node(metadata={"generateName": "gpu-"}))
    files.template("pod.yaml", pod(resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "gpu"}]))
