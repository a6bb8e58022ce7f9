"""TaintNodesByCondition: a new node is tainted as not ready until a controller finds it ready."""

from __future__ import annotations

from typing import Final

from moorage.admission.attributes import Attributes, Reader
from moorage.admission.plugin import NODES, Call, Plugin
from moorage.api.manifests import child

_KEY: Final = "node.kubernetes.io/not-ready"
_EFFECT: Final = "NoSchedule"


def admit(attributes: Attributes, reader: Reader) -> None:
    """Add the taint, unless the node already has it."""
    taints = child(attributes.obj, "spec").setdefault("taints", [])
    if not any(each.get("key") == _KEY and each.get("effect") == _EFFECT for each in taints):
        taints.append({"key": _KEY, "effect": _EFFECT})


PLUGIN: Final = Plugin("TaintNodesByCondition", admit, (Call("CREATE", NODES),))
