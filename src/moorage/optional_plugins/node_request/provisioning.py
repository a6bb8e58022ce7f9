"""What is asked of whatever makes nodes, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from moorage import Node, Offer, Pod


class NodesWanted(NamedTuple):
    """Nodes of one offer, and the pods that they are for, each with the reason why it fits nowhere."""

    offer: Offer
    nodes: Sequence[Node]
    pods: Sequence[tuple[Pod, str]]


class Answer(NamedTuple):
    """accepted: how many of the nodes will come. names: of the first of them, as far as they are known.

    reason: why the others will not.
    """

    accepted: int
    names: tuple[str, ...] = ()
    reason: str = ""


class ProvisioningError(Exception):
    """Nodes could not be asked for, or could not be made."""


class Provisioner(Protocol):
    """Makes nodes, or has them made."""

    async def ask(self, wanted: NodesWanted) -> Answer:
        """Ask for nodes; ProvisioningError if that fails."""

    async def complete(self, nodes: Sequence[Node]) -> None:
        """Do what is left to do for nodes that were accepted; ProvisioningError if that fails."""
