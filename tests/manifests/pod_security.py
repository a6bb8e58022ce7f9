"""The Pod Security Standard "restricted", and "baseline" in it, as Kubernetes v1.36 enforces it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Manifest = dict[str, Any]

_VOLUMES = {
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected",
    "secret",
}  # fmt: skip
_SECCOMP = {"RuntimeDefault", "Localhost"}
_HANDLERS = ("httpGet", "tcpSocket")


def _containers(pod: Manifest) -> list[Manifest]:
    fields = ("initContainers", "containers", "ephemeralContainers")
    return [each for field in fields for each in pod.get(field) or ()]


def _effective(pod: Manifest, field: str) -> Iterator[Any]:
    """What holds for each container: what it says itself, or what its pod says."""
    of_pod = (pod.get("securityContext") or {}).get(field)
    for each in _containers(pod):
        yield (each.get("securityContext") or {}).get(field, of_pod)


def _own(pod: Manifest, field: str) -> list[Any]:
    return [(each.get("securityContext") or {}).get(field) for each in _containers(pod)]


def _contexts(pod: Manifest) -> list[Manifest]:
    return [each.get("securityContext") or {} for each in (pod, *_containers(pod))]


def _handlers(pod: Manifest) -> Iterator[Manifest]:
    for each in _containers(pod):
        hooks = (each.get("lifecycle") or {}).values()
        probes = (each.get(name) or {} for name in ("livenessProbe", "readinessProbe", "startupProbe"))
        yield from (one[kind] for one in (*probes, *hooks) for kind in _HANDLERS if kind in one)


RULES: dict[str, Callable[[Manifest], bool]] = {
    "host namespaces": lambda pod: not any(pod.get(each) for each in ("hostNetwork", "hostPID", "hostIPC")),
    "privileged containers": lambda pod: not any(_own(pod, "privileged")),
    "host ports": lambda pod: (
        not any(port.get("hostPort") for each in _containers(pod) for port in each.get("ports") or ())
    ),
    "hosts of probes": lambda pod: not any(each.get("host") for each in _handlers(pod)),
    "AppArmor": lambda pod: (
        not any((each.get("appArmorProfile") or {}).get("type") == "Unconfined" for each in _contexts(pod))
    ),
    "SELinux": lambda pod: not any(each.get("seLinuxOptions") for each in _contexts(pod)),
    "/proc mount type": lambda pod: set(_own(pod, "procMount")) <= {None, "Default"},
    "sysctls": lambda pod: not (pod.get("securityContext") or {}).get("sysctls"),
    "Windows host processes": lambda pod: not any(each.get("windowsOptions") for each in _contexts(pod)),
    "volume types": lambda pod: all(
        each.keys() - {"name"} <= _VOLUMES and len(each) == 2 for each in pod.get("volumes") or ()
    ),
    "privilege escalation": lambda pod: all(each is False for each in _own(pod, "allowPrivilegeEscalation")),
    "running as non-root": lambda pod: all(each is True for each in _effective(pod, "runAsNonRoot")),
    "running as a user but root": lambda pod: not any(each == 0 for each in _effective(pod, "runAsUser")),
    "seccomp": lambda pod: all(
        (each or {}).get("type") in _SECCOMP for each in _effective(pod, "seccompProfile")
    ),
    "capabilities": lambda pod: all(
        "ALL" in ((each or {}).get("drop") or ())
        and set((each or {}).get("add") or ()) <= {"NET_BIND_SERVICE"}
        for each in _own(pod, "capabilities")
    ),
}
"""What each asks of a pod. Some rules of "baseline" allow more than is asked here."""


def violated(pod: Manifest) -> list[str]:
    """The rules that a pod's spec breaks."""
    return [name for name, holds in RULES.items() if not holds(pod)]
