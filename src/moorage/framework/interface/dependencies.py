"""What a plugin's answers about a node rest on: what may be remembered, and until when.

Pods made from one template are the common case, and between two of them hardly anything changes. A plugin
that says what its answers rest on is asked again only about nodes where that has changed; see `recall`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.cluster.objects import Objects
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.nodes import Nodes


@dataclass(frozen=True, slots=True)
class DependsOn:
    """What the answers rest on, beside the pod's namespace, labels, spec and owner, and the node itself.

    pods: the pods on the node. images: which nodes have which images. tables: other kinds of objects.
    runs_after_filter: whether the plugin may have anything to do for such pods once they have a node.
    """

    pods: bool = False
    images: bool = False
    tables: tuple[type[Object], ...] = ()
    runs_after_filter: bool = True


NODE = DependsOn()
"""The node alone."""
NODE_AND_PODS = DependsOn(pods=True)
"""The node and the pods on it."""
NO_CONCERN = DependsOn(runs_after_filter=False)
"""Such pods are none of the plugin's business."""


@runtime_checkable
class DependsOnPlugin(Protocol):
    """A plugin whose answers can be remembered."""

    def depends_on(self, pod: Pod, objects: Objects) -> DependsOn | None:
        """What this plugin's answers for a pod rest on; None: on more than can be said here.

        Asked once for all pods of a template, and again when a table has changed that was named.

        It speaks for `pre_filter`, `filter`, `pre_score` and `score`, which may look at nothing else: not at
        which nodes they are asked about, at the time, or at earlier calls. A `normalize_score` may only
        look at the scores, and nodes of equal scores must stay equal. Where the plugin does not act, its
        `reserve`, `unreserve`, `pre_bind_pre_flight` and `pre_bind` are left out for pods of the template.
        """


class SkipsPodPlugin(Protocol):
    """A plugin that has nothing to say about most pods, and sees at a glance which they are."""

    def skips_pod(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> bool:
        """Whether it is certain that `pre_filter` and `pre_score` would both answer SKIP to this pod.

        Asked first in a cycle, with every node of the cluster, where answers may be remembered; if it says
        so, both are left out. It should know from earlier pods of the template, and cost next to nothing.
        """
