"""Pods and groups that need a node."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from moorage import Pod, PodGroupInfo


class Demand(NamedTuple):
    """A pod, or the members of a group that need nodes together."""

    key: Hashable
    pods: tuple[Pod, ...]
    is_local: bool
    """Whether the filters' answers for a node depend on that node and its pods alone."""
    message: str = ""
    """Why it fits on no node."""
    group: PodGroupInfo | None = None
    quorum: int = 0
    """Of a group, how many of the pods have to get nodes; of a pod, it does not count."""

    @property
    def priority(self) -> int:
        """The priority of the pod or group."""
        return self.pods[0].priority if self.group is None else self.group.priority
