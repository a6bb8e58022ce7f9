"""The printed pods are admitted where only restricted ones are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moorage.api.manifests import copy
from tests.manifests.pod_security import RULES, violated
from tests.manifests.printing import pod_of, printed
from tests.manifests.test_permissions import PLUGIN

LOOSENED: dict[str, tuple[tuple[str | int, ...], Any]] = {
    "host namespaces": (("hostNetwork",), True),
    "privileged containers": (("containers", 0, "securityContext", "privileged"), True),
    "host ports": (("containers", 0, "ports", 0, "hostPort"), 10259),
    "hosts of probes": (("containers", 0, "livenessProbe", "httpGet", "host"), "127.0.0.1"),
    "AppArmor": (("securityContext", "appArmorProfile"), {"type": "Unconfined"}),
    "SELinux": (("securityContext", "seLinuxOptions"), {"user": "root"}),
    "/proc mount type": (("containers", 0, "securityContext", "procMount"), "Unmasked"),
    "sysctls": (("securityContext", "sysctls"), [{"name": "kernel.msgmax", "value": "1"}]),
    "Windows host processes": (("securityContext", "windowsOptions"), {"hostProcess": True}),
    "volume types": (("volumes", 0), {"name": "config", "hostPath": {"path": "/etc"}}),
    "privilege escalation": (("containers", 0, "securityContext", "allowPrivilegeEscalation"), None),
    "running as non-root": (("securityContext", "runAsNonRoot"), None),
    "running as a user but root": (("securityContext", "runAsUser"), 0),
    "seccomp": (("securityContext", "seccompProfile"), None),
    "capabilities": (("containers", 0, "securityContext", "capabilities", "drop"), ["NET_RAW"]),
}


@pytest.mark.parametrize("namespace", ["kube-system", "harbour"])
def test_a_namespace_that_enforces_restricted_admits_the_pods(namespace: str, tmp_path: Path) -> None:
    plugin = tmp_path / "berths.py"
    plugin.write_text(PLUGIN)
    assert violated(pod_of(printed("--namespace", namespace, "--plugin", plugin))) == []


@pytest.mark.parametrize("rule", RULES)
def test_a_pod_that_is_less_restricted_would_be_noticed(rule: str) -> None:
    pod = copy(pod_of(printed()))
    (*path, last), value = LOOSENED[rule]
    place: Any = pod
    for step in path:
        place = place[step]
    place[last] = value
    assert violated(pod) == [rule]
