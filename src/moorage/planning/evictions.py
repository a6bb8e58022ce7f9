"""Which pods a drain or a consolidation may evict, and which go with their node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from moorage.api.pod import Pod

SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
"""Annotation of a pod: whether an autoscaler may evict it."""
_MIRROR: Final = "kubernetes.io/config.mirror"
"""Annotation of the mirror of a static pod, which its kubelet runs whatever happens."""

BARE: Final = "no controller creates it again (--force)"
LOCAL_STORAGE: Final = "it loses an emptyDir volume (--delete-emptydir-data)"
NOT_SAFE: Final = f"{SAFE_TO_EVICT} is false (--ignore-safe-to-evict)"


@dataclass(frozen=True, slots=True)
class Permissions:
    """What may be evicted beside pods that lose nothing."""

    bare: bool = False
    """Pods without a controller; the plan creates them again."""
    empty_dir: bool = False
    """Pods with volumes that are lost."""
    unsafe: bool = False
    """Pods that say that they are not safe to evict."""


NOTHING_LOST: Final = Permissions()
"""Only pods that lose nothing."""


def goes_with_its_node(pod: Pod) -> bool:
    """Whether a pod belongs to its node: DaemonSets' and static pods are nowhere else."""
    owner = pod.controller
    return _MIRROR in pod.metadata.annotations or (owner is not None and owner.kind == "DaemonSet")


def drain_obstacle(pod: Pod, permitted: Permissions) -> str:
    """Why `kubectl drain` would not evict a pod; empty if it would."""
    if pod.controller is None and not permitted.bare:
        return BARE
    return LOCAL_STORAGE if _has_empty_dir(pod) and not permitted.empty_dir else ""


def consolidation_obstacle(pod: Pod, permitted: Permissions) -> str:
    """Why a pod should not be moved only to save a node; empty if it may be."""
    safe = pod.metadata.annotations.get(SAFE_TO_EVICT)
    if safe == "true":
        return ""
    if safe == "false" and not permitted.unsafe:
        return NOT_SAFE
    return drain_obstacle(pod, permitted)


def _has_empty_dir(pod: Pod) -> bool:
    return any(volume.empty_dir is not None for volume in pod.spec.volumes)
