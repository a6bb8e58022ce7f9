"""The strategy of pods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from moorage.admission.pods.defaults import align_service_account, default_pod
from moorage.admission.pods.preparation import drop_disabled_fields, prepare_new_pod
from moorage.admission.pods.resources import qos_class
from moorage.admission.pods.validation import validate_new_pod, validate_pod_annotations
from moorage.api.conditions import set_condition
from moorage.api.manifests import Manifest, Now, child, take, utc_now
from moorage.apimachinery.fields import FieldError
from moorage_cluster.apiserver.kinds.pods.differences import same
from moorage_cluster.apiserver.kinds.pods.updates import validate_pod_update, validate_status_update
from moorage_cluster.apiserver.kinds.pods.validated_spec_cache import ValidatedSpecCache
from moorage_cluster.apiserver.kinds.pods.warnings import name_warnings, spec_warnings
from moorage_cluster.apiserver.strategy import Strategy

_FINISHED: Final = ("Succeeded", "Failed")


class PodStrategy(Strategy):
    """The strategy of pods; `now` returns the time of new conditions."""

    has_status = True
    has_generation = True

    def __init__(self, now: Now = utc_now) -> None:
        self._now = now
        self._validated_specs = ValidatedSpecCache()
        self._last_validated: tuple[Manifest, list[str]] = ({}, [])
        """The spec that was last found valid, with its warnings, which are requested right after."""

    def default(self, obj: Manifest) -> None:
        """Set the defaults."""
        default_pod(obj)

    def prepare_create(self, obj: Manifest) -> None:
        """Set phase Pending, the QoS class and the gated condition, and merge label keys into selectors."""
        obj["metadata"]["generation"] = 1
        spec = obj["spec"]
        prepare_new_pod(obj)
        status: Manifest = {"phase": "Pending", "qosClass": qos_class(obj)}
        obj["status"] = status
        if spec.get("schedulingGates"):
            condition = {
                "type": "PodScheduled",
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }
            status["conditions"] = set_condition((), condition, self._now())

    def prepare_update(self, obj: Manifest, old: Manifest) -> None:
        """Keep the status, and count changes of the spec in the generation."""
        take(obj, old, "status")
        align_service_account(obj["spec"])
        drop_disabled_fields(obj["spec"])
        count_change(obj, old)

    def prepare_status(self, obj: Manifest, old: Manifest) -> None:
        """Keep everything except the status, labels, annotations and finalizers."""
        for key in (obj.keys() | old.keys()) - {"metadata", "status"}:
            take(obj, old, key)
        for key in ("deletionTimestamp", "ownerReferences", "generation"):
            take(obj["metadata"], old["metadata"], key)
        status = child(obj, "status")
        before = old.get("status") or {}
        if not status.get("qosClass"):
            take(status, before, "qosClass")
        _keep_observed_generations(status, before)

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Validation errors of a new pod."""
        spec = obj["spec"]
        key = self._validated_specs.key(spec)
        warnings = self._validated_specs.warnings(key)
        if warnings is not None:
            self._last_validated = (spec, warnings)
            annotations = obj["metadata"].get("annotations")
            return validate_pod_annotations(annotations, spec, "metadata.annotations") if annotations else []
        problems = validate_new_pod(obj)
        if not problems:
            warnings = spec_warnings(spec)
            self._validated_specs.add(key, warnings)
            self._last_validated = (spec, warnings)
        return problems

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """Validation errors of an update of a pod."""
        return validate_pod_update(obj, old)

    def validate_status(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """Validation errors of an update of a pod's status."""
        return validate_status_update(obj, old)

    def warnings(self, obj: Manifest, old: Manifest | None) -> list[str]:
        """Warnings for the creator of a pod; updates come from programs, which ignore them."""
        if old is not None:
            return []
        spec, known = self._last_validated
        about_spec = known if spec is obj["spec"] else spec_warnings(obj["spec"])
        return name_warnings(obj["metadata"].get("name", "")) + about_spec

    def selectable(self, obj: Manifest) -> dict[str, str]:
        """The fields that field selectors support."""
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        addresses = status.get("podIPs")
        return {
            "spec.nodeName": spec.get("nodeName", ""),
            "spec.restartPolicy": spec.get("restartPolicy", ""),
            "spec.schedulerName": spec.get("schedulerName", ""),
            "spec.serviceAccountName": spec.get("serviceAccountName", ""),
            "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
            "status.phase": status.get("phase", ""),
            "status.podIP": addresses[0].get("ip", "") if addresses else "",
            "status.nominatedNodeName": status.get("nominatedNodeName", ""),
        }

    def grace_seconds(self, obj: Manifest, wanted: int | None) -> int:
        """The grace period of a deletion, in seconds: 0 if the pod never started or has terminated."""
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        if not spec.get("nodeName") or status.get("phase") in _FINISHED:
            return 0
        seconds: int = wanted if wanted is not None else spec.get("terminationGracePeriodSeconds", 0)
        return 1 if seconds < 0 else seconds


def count_change(obj: Manifest, old: Manifest) -> None:
    """Set the generation, incremented if the spec changed."""
    before = old["metadata"].get("generation", 0)
    obj["metadata"]["generation"] = before if same(obj["spec"], old["spec"]) else before + 1


def _keep_observed_generations(status: Manifest, before: Manifest) -> None:
    """Keep observedGeneration when a client that does not support it updates the status."""
    if not status.get("observedGeneration"):
        take(status, before, "observedGeneration")
    seen = _generations(before.get("conditions") or ())
    for condition in status.get("conditions") or ():
        generation = next(seen.get(condition.get("type", ""), iter(())), 0)
        if generation and not condition.get("observedGeneration"):
            condition["observedGeneration"] = generation


def _generations(conditions: Sequence[Manifest]) -> dict[str, Iterator[int]]:
    found: dict[str, list[int]] = {}
    for condition in conditions:
        found.setdefault(condition.get("type", ""), []).append(condition.get("observedGeneration", 0))
    return {kind: iter(generations) for kind, generations in found.items()}
