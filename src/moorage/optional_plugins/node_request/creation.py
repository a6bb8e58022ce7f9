"""Creates nodes through the API server: in simulations, and where nodes are simulated."""

from __future__ import annotations

from collections.abc import Sequence

from moorage import Handle, Node, kinds, plain
from moorage.optional_plugins.node_request.provisioning import Answer, NodesWanted, ProvisioningError


class Creation:
    """Creates each node after a delay."""

    def __init__(self, handle: Handle, delay_seconds: float) -> None:
        self._handle = handle
        self._delay_seconds = delay_seconds

    async def ask(self, wanted: NodesWanted) -> Answer:
        """All nodes will come, with the names that they are taken to have."""
        return Answer(len(wanted.nodes), tuple(node.name for node in wanted.nodes))

    async def complete(self, nodes: Sequence[Node]) -> None:
        """Create the nodes when the delay is over."""
        await self._handle.sleep(self._delay_seconds)
        for node in nodes:
            try:
                await self._handle.client.create(kinds.NODE, "", plain(node))
            except Exception as error:
                raise ProvisioningError(f"node {node.name} cannot be created: {error}") from error
