"""The nominated nodes of waiting pods, maintained as pods are added, updated and deleted."""

from __future__ import annotations

from typing import Protocol

from moorage.api.pod import Pod


class Nominator(Protocol):
    """Stores nominations: a scheduling cycle counts nominated pods on their nodes."""

    def put(self, pod: Pod, node_name: str) -> None:
        """Nominate a pod to a node; an empty name clears its nomination."""

    def remove(self, uid: str) -> None:
        """Remove a pod's nomination, if it has one."""

    def node_of(self, uid: str) -> str | None:
        """The node a pod is nominated to."""


class NoNominator:
    """Stores nothing."""

    def put(self, pod: Pod, node_name: str) -> None:
        """Do nothing."""

    def remove(self, uid: str) -> None:
        """Do nothing."""

    def node_of(self, uid: str) -> str | None:
        """Always None."""
        return None


def update_nomination(nominator: Nominator, old: Pod, new: Pod) -> None:
    """Store the nomination of an updated pod.

    A nomination that the API server does not show yet is kept: neither version of the pod has one.
    """
    node_name = new.status.nominated_node_name
    if not node_name and not old.status.nominated_node_name:
        node_name = nominator.node_of(old.uid) or ""
    nominator.put(new, node_name)
