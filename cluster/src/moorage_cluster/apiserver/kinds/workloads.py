"""Controllers of interchangeable pods: Deployments, ReplicaSets and ReplicationControllers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from moorage.admission.pods.defaults import default_pod_template
from moorage.api.manifests import Manifest, annotations_of, child
from moorage.apimachinery.fields import FieldError, forbidden, invalid, not_supported, required
from moorage.apimachinery.validation.checks import (
    amount_of,
    check_at_most_100_percent,
    check_int_or_percent,
    check_not_negative,
    check_unchanged,
)
from moorage_cluster.apiserver.kinds.base import StatusStrategy
from moorage_cluster.apiserver.kinds.pod_templates import (
    check_lasting_template,
    check_match,
    check_plain_match,
    check_selector,
    name_warnings,
)

_QUARTER: Final = "25%"
_HISTORY_LIMIT: Final = 10
_PROGRESS_SECONDS: Final = 600
_MORE_THAN_REPLICAS = "cannot be greater than status.replicas"


class DeploymentStrategy(StatusStrategy):
    """A Deployment."""

    has_generation = True

    def default(self, obj: Manifest) -> None:
        """One replica, with rolling updates of a quarter of the pods at a time."""
        super().default(obj)
        spec = obj["spec"]
        spec.setdefault("replicas", 1)
        strategy = child(spec, "strategy")
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            rolling = child(strategy, "rollingUpdate")
            rolling.setdefault("maxUnavailable", _QUARTER)
            rolling.setdefault("maxSurge", _QUARTER)
        spec.setdefault("revisionHistoryLimit", _HISTORY_LIMIT)
        spec.setdefault("progressDeadlineSeconds", _PROGRESS_SECONDS)
        default_pod_template(child(spec, "template"))

    def prepare_update(self, obj: Manifest, old: Manifest) -> None:
        """Changed annotations increment the generation too: they contain the rollout history."""
        super().prepare_update(obj, old)
        before = old["metadata"].get("generation", 0)
        if obj["metadata"]["generation"] == before and annotations_of(obj) != annotations_of(old):
            obj["metadata"]["generation"] = before + 1

    def prepare_status(self, obj: Manifest, old: Manifest) -> None:
        """Status updates do not change the labels."""
        super().prepare_status(obj, old)
        if "labels" in old["metadata"]:
            obj["metadata"]["labels"] = old["metadata"]["labels"]
        else:
            obj["metadata"].pop("labels", None)

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Validate the spec."""
        spec = obj["spec"]
        errors = check_not_negative(spec, ("replicas",), "spec")
        errors += check_replica_template(spec)
        errors += _check_strategy(spec.get("strategy") or {}, "spec.strategy")
        errors += check_not_negative(spec, ("minReadySeconds", "revisionHistoryLimit"), "spec")
        errors += check_not_negative(spec, ("progressDeadlineSeconds",), "spec")
        deadline = spec.get("progressDeadlineSeconds")
        if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
            why = "must be greater than minReadySeconds"
            errors.append(invalid("spec.progressDeadlineSeconds", deadline, why))
        return errors

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The selector is immutable."""
        return self.validate(obj) + check_same_selector(obj, old)

    def validate_status(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The counters are consistent."""
        status = obj.get("status") or {}
        counts = ("observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
        errors = check_not_negative(status, counts, "status")
        more = ("unavailableReplicas", "terminatingReplicas", "collisionCount")
        errors += check_not_negative(status, more, "status")
        errors += check_replica_counts(status, ("updatedReplicas", "readyReplicas", "availableReplicas"))
        return errors + check_collisions(obj, old)

    def warnings(self, obj: Manifest, old: Manifest | None) -> list[str]:
        """Warn about names that are not valid host names."""
        return name_warnings(obj) if old is None else []


class ReplicaSetStrategy(StatusStrategy):
    """A ReplicaSet."""

    has_generation = True
    empty_status = {"replicas": 0}

    def default(self, obj: Manifest) -> None:
        """One replica."""
        super().default(obj)
        obj["spec"].setdefault("replicas", 1)
        default_pod_template(child(obj["spec"], "template"))

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Validate the spec."""
        spec = obj["spec"]
        return check_not_negative(spec, ("replicas", "minReadySeconds"), "spec") + check_replica_template(
            spec
        )

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The selector is immutable."""
        return self.validate(obj) + check_same_selector(obj, old)

    def validate_status(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The counters are consistent."""
        return _check_replica_status(obj.get("status") or {})

    def warnings(self, obj: Manifest, old: Manifest | None) -> list[str]:
        """Warn about names that are not valid host names."""
        return name_warnings(obj) if old is None else []

    def selectable(self, obj: Manifest) -> dict[str, str]:
        """Selectable by the number of replicas."""
        return {"status.replicas": str(obj.get("status", {}).get("replicas", 0))}


class ReplicationControllerStrategy(ReplicaSetStrategy):
    """A ReplicationController, the predecessor of ReplicaSet."""

    orphans_dependents = True

    def default(self, obj: Manifest) -> None:
        """The selector and the labels default to the template's labels."""
        StatusStrategy.default(self, obj)
        spec = obj["spec"]
        spec.setdefault("replicas", 1)
        if "template" not in spec:
            return
        default_pod_template(spec["template"])
        if labels := spec["template"].get("metadata", {}).get("labels"):
            if not spec.get("selector"):
                spec["selector"] = dict(labels)
            if not obj["metadata"].get("labels"):
                obj["metadata"]["labels"] = dict(labels)

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Validate the spec."""
        spec = obj["spec"]
        errors = check_not_negative(spec, ("minReadySeconds",), "spec")
        selector, template = spec.get("selector") or {}, spec.get("template")
        if not selector:
            errors.append(required("spec.selector"))
        errors += check_not_negative(spec, ("replicas",), "spec")
        if template is None:
            return [*errors, required("spec.template")]
        errors += check_plain_match(selector, template, "spec.template")
        return errors + check_lasting_template(template, "spec.template", "ReplicationController")

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """All fields may change, the selector included."""
        return self.validate(obj)


def check_replica_template(spec: Manifest) -> list[FieldError]:
    """Validation errors of the selector and template of a Deployment or ReplicaSet."""
    selector, template = spec.get("selector"), spec.get("template") or {}
    errors = check_selector(selector, "spec.selector", "deployment")
    errors += check_match(selector, template, "spec.template")
    return errors + check_lasting_template(template, "spec.template", "ReplicaSet")


def check_same_selector(obj: Manifest, old: Manifest) -> list[FieldError]:
    """The selector is immutable."""
    before = (old.get("spec") or {}).get("selector")
    return check_unchanged(obj["spec"].get("selector"), before, "spec.selector")


def check_replica_counts(
    status: Manifest, parts: Iterable[str], ready_text: str = "readyReplicas"
) -> list[FieldError]:
    """No counter exceeds the replicas, and only ready replicas can be available."""
    replicas, available = status.get("replicas", 0), status.get("availableReplicas", 0)
    errors = [
        invalid(f"status.{part}", status.get(part, 0), _MORE_THAN_REPLICAS)
        for part in parts
        if status.get(part, 0) > replicas
    ]
    if available > status.get("readyReplicas", 0):
        errors.append(invalid("status.availableReplicas", available, f"cannot be greater than {ready_text}"))
    return errors


def check_collisions(obj: Manifest, old: Manifest) -> list[FieldError]:
    """The collision count never decreases."""
    count = obj.get("status", {}).get("collisionCount", 0)
    if count < (old.get("status") or {}).get("collisionCount", 0):
        return [invalid("status.collisionCount", count, "cannot be decremented")]
    return []


def _check_replica_status(status: Manifest) -> list[FieldError]:
    counts = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration")
    errors = check_not_negative(status, (*counts, "terminatingReplicas"), "status")
    parts = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    return errors + check_replica_counts(status, parts)


def _check_strategy(strategy: Manifest, path: str) -> list[FieldError]:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            why = "may not be specified when strategy `type` is 'Recreate'"
            return [forbidden(f"{path}.rollingUpdate", why)]
        return []
    if kind != "RollingUpdate":
        return [not_supported(path, strategy, ("Recreate", "RollingUpdate"))]
    here = f"{path}.rollingUpdate"
    rolling = rolling or {}
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    errors = check_int_or_percent(unavailable, f"{here}.maxUnavailable")
    errors += check_int_or_percent(surge, f"{here}.maxSurge")
    if amount_of(unavailable) == 0 and amount_of(surge) == 0:
        why = "may not be 0 when `maxSurge` is 0"
        errors.append(invalid(f"{here}.maxUnavailable", unavailable, why))
    return errors + check_at_most_100_percent(unavailable, f"{here}.maxUnavailable")
