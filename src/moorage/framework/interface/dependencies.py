"""What a plugin's answers about a node depend on: what may be cached, and until when.

Pods of one equivalence class are the common case, and between two of them hardly anything changes. A plugin
that implements `depends_on` is called again only for nodes where one of its dependencies has changed.
"""

from __future__ import annotations

from dataclasses import dataclass

from moorage.api.base import Object


@dataclass(frozen=True, slots=True)
class DependsOn:
    """What answers depend on, besides the pod's namespace, labels, spec and owner, and the node itself.

    pods: the pods on the node. images: which nodes have which images. tables: other kinds of objects.
    runs_after_filter: whether the plugin has to run for such pods after a node is chosen.
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
"""The plugin does nothing for such pods."""
