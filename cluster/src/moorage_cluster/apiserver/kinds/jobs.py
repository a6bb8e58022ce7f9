"""Jobs: pods that run to completion."""

from __future__ import annotations

from typing import Final

from moorage.admission.pods.defaults import default_pod_template
from moorage.api.manifests import Manifest, child, metadata
from moorage.apimachinery.fields import FieldError
from moorage_cluster.apiserver.kinds.base import StatusStrategy
from moorage_cluster.apiserver.kinds.job_rules import check_job, check_job_change
from moorage_cluster.apiserver.kinds.job_status import check_job_status
from moorage_cluster.apiserver.kinds.pod_templates import name_warnings

UID_LABELS: Final = ("controller-uid", "batch.kubernetes.io/controller-uid")
NAME_LABELS: Final = ("job-name", "batch.kubernetes.io/job-name")
_BACKOFF_LIMIT: Final = 6
_NO_BACKOFF_LIMIT: Final = 2**31 - 1


class JobStrategy(StatusStrategy):
    """A Job."""

    has_generation = True
    orphans_dependents = True
    deletion_warning = (
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to "
        "remove them or set propagationPolicy=Orphan to suppress this warning"
    )

    def default(self, obj: Manifest) -> None:
        """One pod with one completion, and a backoff limit of six."""
        super().default(obj)
        metadata(obj)
        spec = obj["spec"]
        default_job_spec(spec)
        _default_labels(obj)
        if "completions" not in spec and "parallelism" not in spec:
            spec["completions"] = 1
        spec.setdefault("parallelism", 1)
        if "backoffLimit" not in spec:
            spec["backoffLimit"] = _NO_BACKOFF_LIMIT if "backoffLimitPerIndex" in spec else _BACKOFF_LIMIT
        spec.setdefault("completionMode", "NonIndexed")
        spec.setdefault("suspend", False)
        if "podReplacementPolicy" not in spec:
            careful = "podFailurePolicy" in spec
            spec["podReplacementPolicy"] = "Failed" if careful else "TerminatingOrFailed"
        spec.setdefault("manualSelector", False)

    def prepare_create(self, obj: Manifest) -> None:
        """Label the pods with the job's name and uid, and select them by the uid."""
        super().prepare_create(obj)
        spec = obj["spec"]
        if spec.get("manualSelector"):
            return
        uid, name = obj["metadata"].get("uid", ""), obj["metadata"].get("name", "")
        labels = child(child(spec["template"], "metadata"), "labels")
        for key in NAME_LABELS:
            labels.setdefault(key, name)
        for key in UID_LABELS:
            labels.setdefault(key, uid)
        child(child(spec, "selector"), "matchLabels").setdefault(UID_LABELS[1], uid)
        _default_labels(obj)

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Validate the job."""
        return check_job(obj)

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """Validate the update: most of the spec is immutable."""
        return check_job(obj) + check_job_change(obj, old)

    def validate_status(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """Validate the status: a finished job stays finished."""
        return check_job_status(obj, old)

    def warnings(self, obj: Manifest, old: Manifest | None) -> list[str]:
        """Warn about names that are not valid host names."""
        return name_warnings(obj) if old is None else []

    def selectable(self, obj: Manifest) -> dict[str, str]:
        """Selectable by the number of successful pods."""
        return {"status.successful": str(obj.get("status", {}).get("succeeded", 0))}


def _default_labels(job: Manifest) -> None:
    """A job without labels gets those of its pod template, generated ones included."""
    labels = job["spec"]["template"].get("metadata", {}).get("labels")
    if labels and not job["metadata"].get("labels"):
        job["metadata"]["labels"] = dict(labels)


def default_job_spec(spec: Manifest) -> None:
    """Set the defaults that a job's spec has in any object: those of its pods and its failure policy."""
    default_pod_template(child(spec, "template"))
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            if not pattern.get("status"):
                pattern["status"] = "True"
