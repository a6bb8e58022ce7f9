"""RuntimeClass: a pod gets its runtime's overhead and is scheduled to nodes that support that runtime."""

from __future__ import annotations

from typing import Any, Final

from moorage.admission.attributes import Attributes, Reader
from moorage.admission.plugin import PODS, Call, Plugin, refusal
from moorage.api.manifests import Manifest, child
from moorage.api.quantity import parse_quantity
from moorage.api.text import quoted

RUNTIME_CLASSES: Final = "node.k8s.io/runtimeclasses"

_Toleration = tuple[str, str, str, str, Any]


def admit(attributes: Attributes, reader: Reader) -> None:
    """Merge the runtime class into a new pod."""
    spec = child(attributes.obj, "spec")
    name = spec.get("runtimeClassName")
    if name is None:
        if "overhead" in spec:
            raise _overhead_without_class(attributes)
        return
    found = reader.find(RUNTIME_CLASSES, "", name)
    if found is None:
        raise refusal(attributes, f"pod rejected: RuntimeClass {quoted(name)} not found")
    if "overhead" in found:
        _set_overhead(spec, found["overhead"].get("podFixed") or {}, attributes)
    elif "overhead" in spec:
        raise _overhead_without_class(attributes)
    if "scheduling" in found:
        _set_node_selector(spec, found["scheduling"].get("nodeSelector") or {}, attributes)
        _set_tolerations(spec, found["scheduling"].get("tolerations") or [])


def _overhead_without_class(attributes: Attributes) -> Exception:
    why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
    return refusal(attributes, why)


def _set_overhead(spec: Manifest, overhead: dict[str, str], attributes: Attributes) -> None:
    given = spec.get("overhead")
    if given and _amounts(given) != _amounts(overhead):
        why = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
        raise refusal(attributes, why)
    if overhead:
        spec["overhead"] = dict(overhead)


def _amounts(resources: dict[str, str]) -> dict[str, int]:
    return {name: parse_quantity(text) for name, text in resources.items()}


def _set_node_selector(spec: Manifest, wanted: dict[str, str], attributes: Attributes) -> None:
    given = spec.get("nodeSelector") or {}
    for key, value in wanted.items():
        if given.get(key, value) != value:
            raise refusal(
                attributes,
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {given[key]}",
            )
    if wanted:
        spec["nodeSelector"] = {**given, **wanted}


def _set_tolerations(spec: Manifest, more: list[Manifest]) -> None:
    """All tolerations except those that another one includes."""
    everything = [*spec.get("tolerations", ()), *more]
    merged: list[Manifest] = []
    for index, each in enumerate(everything):
        if any(_includes(other, each) for other in merged):
            continue
        later = everything[index + 1 :]
        # Of two equal ones the first is kept.
        if any(_parts(other) != _parts(each) and _includes(other, each) for other in later):
            continue
        merged.append(each)
    if merged:
        spec["tolerations"] = [dict(each) for each in merged]


def _parts(toleration: Manifest) -> _Toleration:
    get = toleration.get
    return get("key", ""), get("operator", ""), get("value", ""), get("effect", ""), get("tolerationSeconds")


def _includes(wide: Manifest, narrow: Manifest) -> bool:
    """Whether `wide` tolerates all that `narrow` tolerates, for at least the same time."""
    if _parts(wide) == _parts(narrow):
        return True
    key, operator, value, effect, seconds = _parts(wide)
    its_key, its_operator, its_value, its_effect, its_seconds = _parts(narrow)
    if key != its_key and (key or operator != "Exists"):
        return False
    if effect not in ("", its_effect):
        return False
    if effect == "NoExecute" and seconds is not None and (its_seconds is None or its_seconds > seconds):
        return False
    if operator in ("", "Equal"):
        return bool(its_operator == "Equal" and its_value == value)
    return bool(operator == "Exists")


PLUGIN: Final = Plugin("RuntimeClass", admit, (Call("CREATE", PODS),))
