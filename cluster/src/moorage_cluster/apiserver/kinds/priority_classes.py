"""PriorityClasses: named priorities of pods."""

from __future__ import annotations

from typing import Final

from moorage.admission.policy_defaults import default_priority_class
from moorage.admission.system_objects import HIGHEST_USER_PRIORITY, SYSTEM_PRIORITIES
from moorage.api.manifests import Manifest
from moorage.apimachinery.fields import FieldError, forbidden
from moorage.apimachinery.validation.checks import check_one_of, check_unchanged
from moorage_cluster.apiserver.strategy import Strategy

SYSTEM_PREFIX: Final = "system-"
_POLICIES: Final = ("PreemptLowerPriority", "Never")


class PriorityClassStrategy(Strategy):
    """A PriorityClass."""

    def default(self, obj: Manifest) -> None:
        """Set the defaults."""
        default_priority_class(obj)

    def prepare_create(self, obj: Manifest) -> None:
        """Set the generation to one."""
        obj["metadata"]["generation"] = 1

    def validate(self, obj: Manifest) -> list[FieldError]:
        """The highest values and the `system-` prefix are reserved for system classes."""
        name, value = obj["metadata"].get("name", ""), obj.get("value", 0)
        errors = []
        if name.startswith(SYSTEM_PREFIX):
            if why := _system_class_problem(name, value, default=obj.get("globalDefault", False)):
                prefix = (
                    f"priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only."
                )
                errors.append(forbidden("metadata.name", f"{prefix} error: {why}"))
        elif value > HIGHEST_USER_PRIORITY:
            why = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
            errors.append(forbidden("value", why))
        return errors + check_one_of(obj.get("preemptionPolicy", ""), _POLICIES, "preemptionPolicy")

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The value and the preemption policy are immutable."""
        errors = []
        if obj.get("value", 0) != old.get("value", 0):
            errors.append(forbidden("value", "may not be changed in an update."))
        policies = obj.get("preemptionPolicy"), old.get("preemptionPolicy")
        return errors + check_unchanged(*policies, "preemptionPolicy")


def _system_class_problem(name: str, value: int, *, default: bool) -> str:
    """Why a class with a system name is not a system class; empty if it is one."""
    known = SYSTEM_PRIORITIES.get(name)
    if known is None:
        return f"{name} is not a known system priority class"
    if value != known:
        return f"value of {name} PriorityClass must be {known}"
    return f"globalDefault of {name} PriorityClass must be false" if default else ""
