"""Taints and tolerations."""

from __future__ import annotations

from collections.abc import Iterable

from moorage.api.devices import DeviceTaint, DeviceToleration
from moorage.api.node import Taint
from moorage.api.pod import Toleration

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"

UNSCHEDULABLE_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)


def tolerates(toleration: Toleration | DeviceToleration, taint: Taint | DeviceTaint) -> bool:
    """Whether a toleration covers a node's or a device's taint; an empty effect or key covers all of them."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Whether any toleration covers a taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def has_untolerated(taints: Iterable[Taint], tolerations: tuple[Toleration, ...]) -> bool:
    """Whether some taint repels a pod with these tolerations."""
    return any(
        taint.effect in (NO_SCHEDULE, NO_EXECUTE) and not tolerated(taint, tolerations) for taint in taints
    )
