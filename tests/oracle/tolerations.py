"""Taints and tolerations, the plain way."""

from __future__ import annotations

from moorage.api.node import Node, Taint
from moorage.api.pod import Pod, Toleration


def covers(toleration: Toleration, taint: Taint) -> bool:
    """Whether a toleration covers a taint: no key means any key, no effect any effect."""
    if toleration.key not in ("", taint.key) or toleration.effect not in ("", taint.effect):
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value


def tolerated(pod: Pod, taint: Taint) -> bool:
    """Whether a pod tolerates a taint."""
    return any(covers(toleration, taint) for toleration in pod.spec.tolerations)


def is_repelled(pod: Pod, node: Node) -> bool:
    """Whether a taint of the strict effects keeps a pod off a node."""
    strict = [taint for taint in node.spec.taints if taint.effect in ("NoSchedule", "NoExecute")]
    return not all(tolerated(pod, taint) for taint in strict)
