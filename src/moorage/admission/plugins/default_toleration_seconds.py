"""DefaultTolerationSeconds: pods tolerate a node that is not ready or unreachable for five minutes."""

from __future__ import annotations

from typing import Final

from moorage.admission.attributes import Attributes, Reader
from moorage.admission.plugin import PODS, Call, Plugin
from moorage.api.manifests import Manifest, child

_NOT_READY: Final = "node.kubernetes.io/not-ready"
_UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_SECONDS: Final = 300


def admit(attributes: Attributes, reader: Reader) -> None:
    """Add tolerations for both taints, except for a taint that the pod already has a toleration for."""
    spec = child(attributes.obj, "spec")
    given = spec.get("tolerations") or ()
    missing = [_toleration(taint) for taint in (_NOT_READY, _UNREACHABLE) if not _spoken_of(taint, given)]
    if missing:
        spec["tolerations"] = [*given, *missing]


def _spoken_of(taint: str, tolerations: list[Manifest] | tuple[()]) -> bool:
    for each in tolerations:
        if each.get("key", "") in ("", taint) and each.get("effect", "") in ("", "NoExecute"):
            return True
    return False


def _toleration(taint: str) -> Manifest:
    return {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _SECONDS}


PLUGIN: Final = Plugin("DefaultTolerationSeconds", admit, (Call("CREATE", PODS), Call("UPDATE", PODS)))
