"""What is set in a new pod after admission and before validation."""

from __future__ import annotations

from typing import Final

from moorage.admission.pods.defaults import align_service_account
from moorage.admission.pods.scheduling import PREFERRED_TERMS, REQUIRED_TERMS
from moorage.api.manifests import Manifest, labels_of

_PROJECTIONS_NOT_SERVED: Final = ("clusterTrustBundle", "podCertificate")


def prepare_new_pod(pod: Manifest) -> None:
    """Make fields with two names equal, drop disabled fields, and merge label keys into selectors."""
    align_service_account(pod["spec"])
    drop_disabled_fields(pod["spec"])
    _merge_label_keys(pod)


def drop_disabled_fields(spec: Manifest) -> None:
    """Drop the fields of features that are disabled in this version."""
    for key in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(key) or ():
            lifecycle = container.get("lifecycle")
            if lifecycle and lifecycle.pop("stopSignal", None) and not lifecycle:
                del container["lifecycle"]
    for volume in spec.get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            for kind in _PROJECTIONS_NOT_SERVED:
                source.pop(kind, None)


def _merge_label_keys(pod: Manifest) -> None:
    """Merge matchLabelKeys and mismatchLabelKeys into selectors, with the values of this pod's labels."""
    spec, labels = pod["spec"], labels_of(pod)
    for constraint in spec.get("topologySpreadConstraints") or ():
        _merge(constraint, labels)
    if affinity := spec.get("affinity"):
        for kind in ("podAffinity", "podAntiAffinity"):
            if terms := affinity.get(kind):
                for weighted in terms.get(PREFERRED_TERMS) or ():
                    _merge(weighted.get("podAffinityTerm") or {}, labels)
                for term in terms.get(REQUIRED_TERMS) or ():
                    _merge(term, labels)


def _merge(term: Manifest, labels: dict[str, str]) -> None:
    selector = term.get("labelSelector")
    if selector is None:
        return
    added = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in term.get(field) or ()
        if key in labels
    ]
    if added:
        selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), *added]
