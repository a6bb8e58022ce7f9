"""Defaulting of pods.

All defaults are visible to clients, so each value is Kubernetes' own. Templates of workloads get fewer than
pods: `default_pod_template` stops where a pod's own defaults (requests from limits, host ports, service
links) begin.
"""

from __future__ import annotations

import re
from typing import Any, Final

from moorage.admission.pods.resources import default_pod_level_resources
from moorage.api.manifests import Manifest, child
from moorage.api.quantity import parse_quantity
from moorage.api.text_cache import cached_by_text

DEFAULT_GRACE_SECONDS: Final = 30
DEFAULT_SCHEDULER: Final = "default-scheduler"

_FILE_MODE: Final = 0o644
_TOKEN_SECONDS: Final = 3600
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_CONTAINER_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")

_PATH_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_HOST_PART = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_HOST = rf"(?:{_HOST_PART}(?:\.{_HOST_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_IMAGE: Final = re.compile(
    rf"(?:{_HOST}/)?{_PATH_PART}(?:/{_PATH_PART})*"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?"
    r"(?P<digest>@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?",
    re.ASCII,
)

_VOLUME_DEFAULTS: Final[dict[str, dict[str, Any]]] = {
    "hostPath": {"type": ""},
    "secret": {"defaultMode": _FILE_MODE},
    "configMap": {"defaultMode": _FILE_MODE},
    "downwardAPI": {"defaultMode": _FILE_MODE},
    "projected": {"defaultMode": _FILE_MODE},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}


@cached_by_text(count=8192)
def pull_policy(image: str) -> str:
    """The default pull policy of an image: Always if its tag is `latest`, which may be moved."""
    match = _IMAGE.fullmatch(image)
    if match is None:
        return "IfNotPresent"
    tag = match["tag"] or ("" if match["digest"] else "latest")
    return "Always" if tag == "latest" else "IfNotPresent"


def default_pod(pod: Manifest) -> None:
    """Set the defaults of a pod, status included."""
    spec = child(pod, "spec")
    default_pod_spec(spec)
    if "enableServiceLinks" not in spec:
        spec["enableServiceLinks"] = True
    containers = spec.get("containers") or ()
    init_containers = spec.get("initContainers") or ()
    for container in containers:
        _requests_from_limits(container)
    for container in init_containers:
        _requests_from_limits(container)
    if spec.get("resources"):
        default_pod_level_resources(spec)
    if spec.get("hostNetwork"):
        for container in (*containers, *init_containers):
            for port in container.get("ports") or ():
                if not port.get("hostPort") and port.get("containerPort"):
                    port["hostPort"] = port["containerPort"]
    if status := pod.get("status"):
        _default_status(status)


def default_pod_template(template: Manifest) -> None:
    """Set the defaults of a workload's pod template."""
    child(template, "metadata")
    default_pod_spec(child(template, "spec"))


def default_pod_spec(spec: Manifest) -> None:
    """Set the defaults that pods and templates share."""
    if not spec.get("dnsPolicy"):
        spec["dnsPolicy"] = "ClusterFirst"
    if not spec.get("restartPolicy"):
        spec["restartPolicy"] = "Always"
    if "securityContext" not in spec:
        spec["securityContext"] = {}
    if "terminationGracePeriodSeconds" not in spec:
        spec["terminationGracePeriodSeconds"] = DEFAULT_GRACE_SECONDS
    if not spec.get("schedulerName"):
        spec["schedulerName"] = DEFAULT_SCHEDULER
    align_service_account(spec)
    for volume in spec.get("volumes") or ():
        _default_volume(volume)
    for key in _CONTAINER_LISTS:
        for container in spec.get(key) or ():
            _default_container(container)
    if overhead := spec.get("overhead"):
        _round_up(overhead)
    if resources := spec.get("resources"):
        _default_requirements(resources)


def align_service_account(spec: Manifest) -> None:
    """Keep the field's deprecated name equal to the new one, which takes precedence."""
    if name := spec.get("serviceAccountName"):
        spec["serviceAccount"] = name
    elif name := spec.get("serviceAccount"):
        spec["serviceAccountName"] = name


def _default_container(container: Manifest) -> None:
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = pull_policy(container.get("image") or "")
    if not container.get("terminationMessagePath"):
        container["terminationMessagePath"] = "/dev/termination-log"
    if not container.get("terminationMessagePolicy"):
        container["terminationMessagePolicy"] = "File"
    if "resources" in container:
        _default_requirements(container["resources"])
    else:
        container["resources"] = {}
    for port in container.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
    for variable in container.get("env") or ():
        if source := variable.get("valueFrom"):
            _default_reference(source)
            if (file := source.get("fileKeyRef")) is not None and "optional" not in file:
                file["optional"] = False
    for key in _PROBES:
        if (probe := container.get(key)) is not None:
            _default_probe(probe)
    if lifecycle := container.get("lifecycle"):
        for key in ("postStart", "preStop"):
            if hook := lifecycle.get(key):
                _default_http(hook)


def _default_requirements(resources: Manifest) -> None:
    for key in ("limits", "requests"):
        if amounts := resources.get(key):
            _round_up(amounts)


def _round_up(amounts: dict[str, str]) -> None:
    """Round up to the precision of a thousandth."""
    for name, amount in amounts.items():
        if amount and amount[-1] in "nu":
            milli = parse_quantity(amount).milli_value
            amounts[name] = f"{milli}m" if milli % 1000 else str(milli // 1000)


def _requests_from_limits(container: Manifest) -> None:
    resources = container["resources"]
    limits = resources.get("limits")
    if limits:
        requests = resources.get("requests")
        resources["requests"] = {**limits, **requests} if requests else dict(limits)


def _default_probe(probe: Manifest) -> None:
    for key, value in (
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ):
        if not probe.get(key):
            probe[key] = value
    _default_http(probe)
    if (grpc := probe.get("grpc")) is not None and "service" not in grpc:
        grpc["service"] = ""


def _default_http(handler: Manifest) -> None:
    if (http := handler.get("httpGet")) is not None:
        if not http.get("path"):
            http["path"] = "/"
        if not http.get("scheme"):
            http["scheme"] = "HTTP"


def _default_reference(source: Manifest) -> None:
    if (reference := source.get("fieldRef")) is not None and not reference.get("apiVersion"):
        reference["apiVersion"] = "v1"
    if (reference := source.get("resourceFieldRef")) is not None and not reference.get("divisor"):
        reference["divisor"] = "0"


def _default_volume(volume: Manifest) -> None:
    kinds = volume.keys() - {"name"}
    if not kinds:
        volume["emptyDir"] = {}
        return
    for kind in kinds:
        source = volume[kind]
        for key, value in _VOLUME_DEFAULTS.get(kind, {}).items():
            if source.get(key) in (None, ""):
                source[key] = value
        if kind == "projected":
            for projection in source.get("sources") or ():
                _default_projection(projection)
        elif kind == "downwardAPI":
            _default_files(source)
        elif kind == "ephemeral" and (template := source.get("volumeClaimTemplate")) is not None:
            _default_claim_template(template)
        elif kind == "image" and not source.get("pullPolicy"):
            source["pullPolicy"] = pull_policy(source.get("reference") or "")


def _default_projection(projection: Manifest) -> None:
    if files := projection.get("downwardAPI"):
        _default_files(files)
    if (token := projection.get("serviceAccountToken")) is not None and "expirationSeconds" not in token:
        token["expirationSeconds"] = _TOKEN_SECONDS


def _default_files(source: Manifest) -> None:
    for item in source.get("items") or ():
        _default_reference(item)


def _default_claim_template(template: Manifest) -> None:
    child(template, "metadata")
    spec = child(template, "spec")
    if "volumeMode" not in spec:
        spec["volumeMode"] = "Filesystem"
    _default_requirements(child(spec, "resources"))


def _default_status(status: Manifest) -> None:
    """Set the fields that every container status has, and keep singular and plural IP fields consistent."""
    for key in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for container in status.get(key) or ():
            container.setdefault("state", {})
            container.setdefault("lastState", {})
            container.setdefault("ready", False)
            container.setdefault("restartCount", 0)
            container.setdefault("image", "")
            container.setdefault("imageID", "")
    for one, many in (("podIP", "podIPs"), ("hostIP", "hostIPs")):
        address, addresses = status.get(one), status.get(many)
        if address and not addresses:
            status[many] = [{"ip": address}]
        elif one == "podIP" and addresses:
            if not address:
                status[one] = addresses[0].get("ip", "")
            elif addresses[0].get("ip") != address:
                status[many] = [{"ip": address}]
