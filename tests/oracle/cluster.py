"""The cluster as plain lists, and what every oracle has in common."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from moorage.api.base import Object
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, KubernetesVersion

T = TypeVar("T", bound=Object)

Refusal = tuple[tuple[str, ...], bool]
"""Why a node is refused: its reasons, sorted, and whether preemption on that node could help."""


class BrokenPodError(Exception):
    """The pod says something that this plugin cannot work with: the attempt fails."""


@dataclass(frozen=True)
class Cluster:
    """Nodes in the order they were added, the pods on them, and everything else."""

    nodes: list[Node]
    pods: list[Pod]
    others: list[Object]
    version: KubernetesVersion = DEFAULT_VERSION

    @classmethod
    def of(cls, objects: Iterable[Object]) -> Cluster:
        """The cluster made of some objects, where a later one replaces an earlier one of the same name.

        Pods that are over, or on no known node, are nowhere.
        """
        objects = list({(type(each), each.key): each for each in objects}.values())
        nodes = [each for each in objects if isinstance(each, Node)]
        names = {node.name for node in nodes}
        pods = [
            each
            for each in objects
            if isinstance(each, Pod)
            and each.spec.node_name in names
            and each.status.phase not in ("Succeeded", "Failed")
        ]
        return cls(nodes, pods, [each for each in objects if not isinstance(each, Node | Pod)])

    def pods_on(self, node: Node) -> list[Pod]:
        """The pods on a node."""
        return [pod for pod in self.pods if pod.spec.node_name == node.name]

    def placed(self) -> list[tuple[Pod, Node]]:
        """Every pod with the node it is on."""
        by_name = {node.name: node for node in self.nodes}
        return [(pod, by_name[pod.spec.node_name]) for pod in self.pods]

    def all_of(self, kind: type[T], namespace: str = "") -> list[T]:
        """All objects of a kind in a namespace."""
        return [each for each in self.others if isinstance(each, kind) and each.namespace == namespace]

    def one(self, kind: type[T], name: str, namespace: str = "") -> T | None:
        """An object by kind and name, or None."""
        return next((each for each in self.all_of(kind, namespace) if each.name == name), None)

    def what_if(self, removed: Iterable[Pod], added: Iterable[Pod]) -> Cluster:
        """This cluster without some of its pods and with some others."""
        leaving = {pod.uid for pod in removed}
        stay = [pod for pod in self.pods if pod.uid not in leaving]
        return replace(self, pods=[*stay, *added])


class OraclePlugin:
    """What one plugin has to say of one pod. Subclasses are the oracles; by default nothing is said."""

    name: ClassVar[str]
    filters: ClassVar[bool] = False
    scores: ClassVar[bool] = False
    weight: ClassVar[int] = 1
    """The weight in the default profile."""

    def __init__(self, cluster: Cluster, pod: Pod, args: Any = None) -> None:
        self.cluster = cluster
        self.pod = pod
        self.args = args

    def narrow(self) -> frozenset[str] | str | None:
        """The only node names in question, a text that refuses all nodes at once, or None."""
        return None

    def filter(self, node: Node) -> Refusal | None:
        """Why not this node; None if it will do."""
        return None

    def skips_score(self, feasible: list[Node]) -> bool:
        """Whether there is nothing to say about the feasible nodes."""
        return False

    def score(self, node: Node, feasible: list[Node]) -> int:
        """How good one of the feasible nodes is, before normalising."""
        return 0

    def normalise(self, raw: list[int], feasible: list[Node]) -> list[int]:
        """Scores of all feasible nodes, brought to 0..100."""
        return raw

    def final_scores(self, feasible: list[Node]) -> list[int]:
        """Normalised scores of the feasible nodes."""
        return self.normalise([self.score(node, feasible) for node in feasible], feasible)


def refusal(*texts: str, resolvable: bool = True) -> Refusal:
    """A refusal for some reasons."""
    return tuple(sorted(texts)), resolvable


def share_of_largest(raw: list[int], *, reverse: bool = False) -> list[int]:
    """Each score as a percentage of the largest, rounded down; reversed, 100 minus that.

    Where all scores are 0 there is no largest: then all get 0, or reversed all get 100.
    """
    largest = max([0, *raw])
    shares = [100 * score // largest if largest else 0 for score in raw]
    return [100 - share for share in shares] if reverse else shares
