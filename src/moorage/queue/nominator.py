"""Which node a waiting pod is nominated to, as pods come, change and go."""

from __future__ import annotations

from typing import Protocol

from moorage.api.pod import Pod


class Nominator(Protocol):
    """Where nominations are written down: a cycle counts nominated pods on their nodes."""

    def put(self, pod: Pod, node_name: str) -> None:
        """Nominate a pod to a node; an empty name clears its nomination."""

    def remove(self, uid: str) -> None:
        """Forget a pod's nomination, if it has one."""

    def node_of(self, uid: str) -> str | None:
        """The node a pod is nominated to."""


class NoNominator:
    """Writes nothing down."""

    def put(self, pod: Pod, node_name: str) -> None:
        """Do nothing."""

    def remove(self, uid: str) -> None:
        """Do nothing."""

    def node_of(self, uid: str) -> str | None:
        """No node, ever."""
        return None


def update_nomination(book: Nominator, old: Pod, new: Pod) -> None:
    """Write down the nomination of a pod that has changed.

    One that the API server does not show yet stays: neither version of the pod speaks of any.
    """
    node_name = new.status.nominated_node_name
    if not node_name and not old.status.nominated_node_name:
        node_name = book.node_of(old.uid) or ""
    book.put(new, node_name)
