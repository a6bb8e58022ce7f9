"""DaemonSets: a pod on every node."""

from __future__ import annotations

from typing import Final

from moorage.admission.pods.defaults import default_pod_template
from moorage.api.manifests import Manifest, annotations_of, child
from moorage.apimachinery.fields import FieldError, invalid, not_supported, required
from moorage.apimachinery.validation.checks import (
    amount_of,
    check_at_most_100_percent,
    check_int_or_percent,
    check_not_negative,
)
from moorage.apimachinery.validation.selectors import check_label_selector
from moorage_cluster.apiserver.kinds.base import StatusStrategy
from moorage_cluster.apiserver.kinds.pod_templates import check_lasting_template, check_match
from moorage_cluster.apiserver.kinds.workloads import check_collisions, check_same_selector

_HISTORY_LIMIT: Final = 10
TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
"""The annotation that counts changes of the template, for clients of the former field."""


class DaemonSetStrategy(StatusStrategy):
    """A DaemonSet."""

    has_generation = True
    empty_status = {
        "currentNumberScheduled": 0,
        "desiredNumberScheduled": 0,
        "numberMisscheduled": 0,
        "numberReady": 0,
    }

    def default(self, obj: Manifest) -> None:
        """Rolling update, one node at a time."""
        super().default(obj)
        spec = obj["spec"]
        update = child(spec, "updateStrategy")
        if not update.get("type"):
            update["type"] = "RollingUpdate"
        if update["type"] == "RollingUpdate":
            rolling = child(update, "rollingUpdate")
            rolling.setdefault("maxUnavailable", 1)
            rolling.setdefault("maxSurge", 0)
        spec.setdefault("revisionHistoryLimit", _HISTORY_LIMIT)
        default_pod_template(child(spec, "template"))

    def prepare_create(self, obj: Manifest) -> None:
        """Set the template generation to one."""
        super().prepare_create(obj)
        child(obj["metadata"], "annotations")[TEMPLATE_GENERATION] = "1"

    def prepare_update(self, obj: Manifest, old: Manifest) -> None:
        """Count changes of the template."""
        super().prepare_update(obj, old)
        text = annotations_of(old).get(TEMPLATE_GENERATION, "1")
        count = int(text) if text.isascii() and text.isdigit() else 0
        if obj["spec"].get("template") != (old.get("spec") or {}).get("template"):
            count += 1
        child(obj["metadata"], "annotations")[TEMPLATE_GENERATION] = str(count)

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Validate the spec."""
        spec = obj["spec"]
        selector, template = spec.get("selector"), spec.get("template") or {}
        errors = check_label_selector(selector, "spec.selector")
        errors += check_match(selector, template, "spec.template")
        if selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions"):
            errors.append(invalid("spec.selector", selector, "empty selector is invalid for daemonset"))
        errors += check_lasting_template(template, "spec.template", "DaemonSet")
        errors += check_not_negative(spec, ("minReadySeconds",), "spec")
        errors += _check_update_strategy(spec.get("updateStrategy") or {}, "spec.updateStrategy")
        return errors + check_not_negative(spec, ("revisionHistoryLimit",), "spec")

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The selector is immutable."""
        return check_same_selector(obj, old) + self.validate(obj)

    def validate_status(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The counters are not negative."""
        counts = (*self.empty_status, "observedGeneration", "updatedNumberScheduled")
        counts += ("numberAvailable", "numberUnavailable", "collisionCount")
        errors = check_not_negative(obj.get("status") or {}, counts, "status")
        return errors + check_collisions(obj, old)


def _check_update_strategy(update: Manifest, path: str) -> list[FieldError]:
    kind = update.get("type", "")
    if kind == "OnDelete":
        return []
    if kind != "RollingUpdate":
        return [not_supported(path, update, ("RollingUpdate", "OnDelete"))]
    here, rolling = f"{path}.rollingUpdate", update.get("rollingUpdate") or {}
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    errors = check_int_or_percent(unavailable, f"{here}.maxUnavailable")
    errors += check_int_or_percent(surge, f"{here}.maxSurge")
    errors += check_at_most_100_percent(unavailable, f"{here}.maxUnavailable")
    errors += check_at_most_100_percent(surge, f"{here}.maxSurge")
    if amount_of(unavailable) and amount_of(surge):
        why = "may not be set when maxUnavailable is non-zero"
        errors.append(invalid(f"{here}.maxSurge", surge, why))
    elif not amount_of(unavailable) and not amount_of(surge):
        errors.append(required(f"{here}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    return errors
