"""Undoing what an API server does to a new pod whose terms say by which of its own labels they select."""

from __future__ import annotations

from collections.abc import Iterator

from moorage.api.manifests import Manifest, labels_of

_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def forget_merged_keys(pod: Manifest) -> None:
    """Take from the selectors of a pod what the server added for matchLabelKeys and mismatchLabelKeys."""
    labels = labels_of(pod)
    for term in _terms(pod["spec"]):
        for field, operator in (("mismatchLabelKeys", "NotIn"), ("matchLabelKeys", "In")):
            for key in reversed(term.get(field) or ()):
                if key in labels:
                    expressions = term["labelSelector"]["matchExpressions"]
                    assert expressions.pop() == {"key": key, "operator": operator, "values": [labels[key]]}


def _terms(spec: Manifest) -> Iterator[Manifest]:
    yield from spec.get("topologySpreadConstraints") or ()
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = (spec.get("affinity") or {}).get(kind) or {}
        yield from terms.get(_REQUIRED) or ()
        for preferred in terms.get(_PREFERRED) or ():
            yield preferred["podAffinityTerm"]
