"""How many nodes of which shape may still be asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from moorage import Node, Nodes, Offer, Quantity, plain
from moorage.optional_plugins.node_request.arguments import NodeRequestArgs

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
"""The label of a node that says its shape."""


class Allowance:
    """What is left of the limits: nodes that are there count, and those that are asked for."""

    def __init__(self, args: NodeRequestArgs, nodes: Nodes, expected: Iterable[tuple[Offer, Node]]) -> None:
        self._args = args
        self._shapes: Counter[str] = Counter()
        if any(shape.max is not None for shape in args.shapes):
            self._shapes.update(node.labels.get(INSTANCE_TYPE, "") for node in nodes.snapshot.nodes)
        self._nodes = len(nodes)
        self._resources = {name: _total(nodes, name) for name in args.max_resources}
        for offer, node in expected:
            self.take(offer, node)

    def count(self, offer: Offer) -> int:
        """How many nodes of the offer's shape there are, or are expected."""
        return self._shapes[offer.shape.name]

    def refusal(self, offer: Offer, node: Node) -> str:
        """Which limit forbids a further node; empty: none."""
        shape, args = offer.shape, self._args
        if shape.max is not None and self._shapes[shape.name] >= shape.max:
            return f"max node count of {shape.name} reached ({shape.max})"
        if args.max_nodes is not None and self._nodes >= args.max_nodes:
            return f"max node count reached ({args.max_nodes})"
        for name, most in args.max_resources.items():
            if self._resources[name] + _amount(name, node.status.allocatable) > _units(name, most):
                return f"max {name} reached ({plain(most)})"
        return ""

    def take(self, offer: Offer, node: Node) -> None:
        """Count a further node."""
        self._change(offer, node, 1)

    def give_back(self, offer: Offer, node: Node) -> None:
        """Do not count a node any more."""
        self._change(offer, node, -1)

    def _change(self, offer: Offer, node: Node, count: int) -> None:
        self._shapes[offer.shape.name] += count
        self._nodes += count
        for name in self._resources:
            self._resources[name] += count * _amount(name, node.status.allocatable)


def _total(nodes: Nodes, resource: str) -> int:
    if resource == "pods":
        return int(nodes.allowed_pods.sum())
    return int(nodes.allocatable(resource).sum())


def _amount(resource: str, amounts: Mapping[str, Quantity]) -> int:
    return _units(resource, amounts[resource]) if resource in amounts else 0


def _units(resource: str, amount: Quantity) -> int:
    """An amount in the unit in which nodes are counted: thousandths of CPUs, and units of all else."""
    return amount.milli_value if resource == "cpu" else amount.value
