"""The binding subresource: assigns a pod to a node, once."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus

from moorage.api.conditions import set_condition
from moorage.api.manifests import Manifest, utc_now
from moorage.api.text import quoted
from moorage.apimachinery import errors
from moorage.apimachinery.fields import FieldError, not_supported, required


def bind(pod: Manifest, binding: Manifest, now: datetime | None = None) -> Manifest:
    """The pod, assigned to the binding's target; ApiError if that is not allowed. `pod` is not changed."""
    meta, spec = pod["metadata"], pod["spec"]
    name = meta["name"]
    wanted = binding.get("metadata") or {}
    if wanted.get("name", "") != name:
        raise errors.bad_request("name in URL does not match name in Binding object")
    target = binding.get("target") or {}
    _check_target(target)
    check_preconditions(pod, wanted)
    if meta.get("deletionTimestamp"):
        raise _conflict(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if node := spec.get("nodeName"):
        raise _conflict(name, f"pod {name} is already assigned to node {quoted(node)}")
    if spec.get("schedulingGates"):
        raise _conflict(name, f"pod {name} has non-empty .spec.schedulingGates")
    status = dict(pod.get("status") or {})
    status.pop("nominatedNodeName", None)
    condition = {"type": "PodScheduled", "status": "True"}
    status["conditions"] = set_condition(status.get("conditions") or (), condition, now or utc_now())
    # The caller sets metadata of the stored pod, so it is never shared with the old pod.
    meta = dict(meta)
    for key in ("annotations", "labels"):
        if added := wanted.get(key):
            meta[key] = {**(meta.get(key) or {}), **added}
    return {**pod, "metadata": meta, "spec": {**spec, "nodeName": target["name"]}, "status": status}


def check_preconditions(pod: Manifest, wanted: Manifest) -> None:
    """Reject a request for a uid or resource version that the pod does not have."""
    meta = pod["metadata"]
    for key, spoken in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        value = wanted.get(key)
        if value and value != meta.get(key, ""):
            why = (
                f"StorageError: invalid object, Code: 4, Key: /registry/pods/{meta.get('namespace', '')}/"
                f"{meta['name']}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
                f"{spoken} in precondition: {value}, {spoken} in object meta: {meta.get(key, '')}"
            )
            raise errors.conflict("", "pods", meta["name"], why)


def _check_target(target: Manifest) -> None:
    problems: list[FieldError] = []
    if target.get("kind") not in ("Node", "", None):
        problems.append(not_supported("target.kind", target["kind"], ("Node", "<empty>")))
    if not target.get("name"):
        problems.append(required("target.name"))
    if problems:
        said = [str(problem) for problem in problems]
        text = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
        # Kubernetes reports these outside its usual form for invalid objects; clients see a 500.
        raise errors.ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, "", text)


def _conflict(name: str, why: str) -> errors.ApiError:
    return errors.conflict("", "pods/binding", name, why)
