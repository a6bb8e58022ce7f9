"""Priority: a pod's priority comes from its class, and at most one class is the global default."""

from __future__ import annotations

from typing import Final

from moorage.admission.attributes import Attributes, Reader
from moorage.admission.plugin import PODS, Call, Plugin, refusal
from moorage.admission.system_objects import SYSTEM_PRIORITIES
from moorage.api.manifests import Manifest, child

PRIORITY_CLASSES: Final = "scheduling.k8s.io/priorityclasses"
_GROUPS: Final = {
    "scheduling.k8s.io/podgroups": "pod group",
    "scheduling.k8s.io/compositepodgroups": "composite pod group",
}
"""The kinds of groups, as messages call them, by storage."""

_NO_CLASS: Final[Manifest] = {"metadata": {}, "value": 0, "preemptionPolicy": "PreemptLowerPriority"}
"""Used for a pod that names no class when there is no default class."""


def admit_pod(attributes: Attributes, reader: Reader) -> None:
    """Give a new pod its class's priority and preemption policy."""
    spec = child(attributes.obj, "spec")
    found = _class_for(spec, attributes, reader)
    priority, given = found.get("value", 0), spec.get("priority")
    if given is not None and given != priority:
        raise refusal(
            attributes,
            f"the integer value of priority ({given}) must not be provided in pod spec; "
            f"priority admission controller computed {priority} from the given PriorityClass name",
        )
    spec["priority"] = priority
    _take_preemption_policy(spec, found, attributes, "pod")


def _take_preemption_policy(spec: Manifest, found: Manifest, attributes: Attributes, what: str) -> None:
    policy, given = found.get("preemptionPolicy"), spec.get("preemptionPolicy")
    if policy is None:
        return
    if given is not None and given != policy:
        raise refusal(
            attributes,
            f"the string value of PreemptionPolicy ({given}) must not be provided in {what} spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name",
        )
    spec["preemptionPolicy"] = policy


def keep_pod(attributes: Attributes, reader: Reader) -> None:
    """Keep the values that admission had filled in when an update leaves them out."""
    old = (attributes.old or {}).get("spec", {})
    spec = child(attributes.obj, "spec")
    for field in ("priority", "preemptionPolicy"):
        if spec.get(field) is None and field in old:
            spec[field] = old[field]


def group_plugin(*, preemption_policies: bool) -> Plugin:
    """Gives a new pod group its class's priority, and its preemption policy if groups have one."""

    def admit(attributes: Attributes, reader: Reader) -> None:
        spec, what = child(attributes.obj, "spec"), _GROUPS[attributes.resource.storage]
        found = _class_for(spec, attributes, reader)
        priority, given = found.get("value", 0), spec.get("priority")
        if given is not None and given != priority:
            raise refusal(
                attributes,
                f"priority set in the {what} ({given}) must match the priority computed ({priority}) "
                "based on the priority class set in the spec",
            )
        spec["priority"] = priority
        if preemption_policies:
            _take_preemption_policy(spec, found, attributes, what)

    return Plugin("Priority", admit, tuple(Call("CREATE", storage) for storage in _GROUPS))


def admit_class(attributes: Attributes, reader: Reader) -> None:
    """Reject a second default class."""
    if not attributes.obj.get("globalDefault"):
        return
    default = _default_class(reader)
    if default is None:
        return
    name = default["metadata"]["name"]
    if attributes.operation == "CREATE" or name != attributes.name:
        raise refusal(
            attributes, f"PriorityClass {name} is already marked as default. Only one default can exist"
        )


def keep_system_class(attributes: Attributes, reader: Reader) -> None:
    """Reject the deletion of the classes that every cluster has."""
    if attributes.name in SYSTEM_PRIORITIES:
        raise refusal(attributes, "this is a system priority class and cannot be deleted")


def _class_for(spec: Manifest, attributes: Attributes, reader: Reader) -> Manifest:
    """The class that a spec names, or the default one; its name is then set in the spec."""
    name = spec.get("priorityClassName")
    if name:
        found = reader.find(PRIORITY_CLASSES, "", name)
        if found is None:
            raise refusal(attributes, f"no PriorityClass with name {name} was found")
        return found
    default = _default_class(reader)
    if default is None:
        return _NO_CLASS
    spec["priorityClassName"] = default["metadata"]["name"]
    return default


def _default_class(reader: Reader) -> Manifest | None:
    """The default class; of several, the one with the lowest value."""
    default: Manifest | None = None
    for each in reader.all(PRIORITY_CLASSES):
        if each.get("globalDefault") and (default is None or default.get("value", 0) > each.get("value", 0)):
            default = each
    return default


PLUGINS: Final = (
    Plugin("Priority", admit_pod, (Call("CREATE", PODS),)),
    Plugin("Priority", keep_pod, (Call("UPDATE", PODS),)),
    Plugin("Priority", admit_class, (Call("CREATE", PRIORITY_CLASSES), Call("UPDATE", PRIORITY_CLASSES))),
    Plugin("Priority", keep_system_class, (Call("DELETE", PRIORITY_CLASSES),)),
)
