"""The ephemeralcontainers subresource: adds containers to a running pod; they cannot be removed."""

from __future__ import annotations

from moorage.admission.pods.validation import MIRROR_ANNOTATION, validate_pod
from moorage.api.manifests import Manifest, annotations_of, take
from moorage.api.text import quoted
from moorage.apimachinery import errors
from moorage.apimachinery.fields import FieldError, forbidden
from moorage_cluster.apiserver.kinds.pods.differences import described, same
from moorage_cluster.apiserver.kinds.pods.strategy import count_change

_PATH = "spec.ephemeralContainers"


def set_ephemeral_containers(pod: Manifest, body: Manifest) -> Manifest:
    """The pod with the ephemeral containers of `body`, a whole pod with its defaults; ApiError if rejected.

    All other fields of `body` are ignored. `pod` is not changed.
    """
    spec = dict(pod["spec"])
    take(spec, body.get("spec") or {}, "ephemeralContainers")
    changed = {**pod, "metadata": dict(pod["metadata"]), "spec": spec}
    count_change(changed, pod)
    if problems := _problems(changed, pod):
        raise errors.invalid("", "Pod", pod["metadata"]["name"], problems)
    return changed


def _problems(new: Manifest, old: Manifest) -> list[FieldError]:
    if MIRROR_ANNOTATION in annotations_of(old):
        return [forbidden("", "static pods do not support ephemeral containers")]
    problems = validate_pod(new)
    now = {container.get("name"): container for container in new["spec"].get("ephemeralContainers") or ()}
    for before in old["spec"].get("ephemeralContainers") or ():
        name = before.get("name", "")
        container = now.get(name)
        if container is None:
            detail = f"existing ephemeral containers {quoted(name)} may not be removed\n"
            problems.append(forbidden(_PATH, detail))
        elif not same(container, before):
            difference = described(container, before, "")
            detail = f"existing ephemeral containers {quoted(name)} may not be changed\n{difference}"
            problems.append(forbidden(_PATH, detail))
    return problems
