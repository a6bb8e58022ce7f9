"""What a plugin's answers about a node depend on: what may be cached, and until when.

Pods of one equivalence class are the common case, and between two of them hardly anything changes. A plugin
that implements `depends_on` is called again only for nodes where one of its dependencies has changed.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from moorage.api.base import Object


@dataclass(frozen=True, slots=True)
class DependsOn:
    """What answers depend on, besides the pod's namespace, labels, spec and owner, and the node itself.

    pods: the pods on the node. images: which nodes have which images.
    tables: types of other objects, of watched or listed kinds, or that the plugin puts into `Handle.objects`.
    node_objects: the same where objects are named after nodes: answers depend on the one of the node alone.
    runs_after_filter: whether the plugin has to run for such pods after a node is chosen.
    reads: the parts of the pod that the plugin reads: pods with equal parts share its answers, whatever else
        differs between them. None: answers are shared only by the pods of an equivalence class.
    """

    pods: bool = False
    images: bool = False
    tables: tuple[type[Object], ...] = ()
    node_objects: tuple[type[Object], ...] = ()
    runs_after_filter: bool = True
    reads: Hashable | None = None


NODE = DependsOn()
"""The node alone."""
NODE_FOR_ANY_POD = DependsOn(reads=())
"""The node alone; the answers are the same for all such pods."""
NODE_AND_PODS = DependsOn(pods=True)
"""The node and the pods on it."""
NOT_CONCERNED = DependsOn(runs_after_filter=False, reads=())
"""The plugin does nothing for such pods."""
