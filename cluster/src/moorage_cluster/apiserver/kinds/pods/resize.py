"""The resize subresource: changes the cpu and memory of a running pod."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from moorage.admission.pods.resources import qos_class
from moorage.admission.pods.totals import is_sidecar
from moorage.admission.pods.validation import MIRROR_ANNOTATION, validate_pod
from moorage.api.manifests import Manifest, annotations_of, take
from moorage.apimachinery import errors
from moorage.apimachinery.fields import FieldError, forbidden, invalid
from moorage_cluster.apiserver.kinds.pods.differences import same
from moorage_cluster.apiserver.kinds.pods.strategy import count_change

_RESIZABLE: Final = ("cpu", "memory")
_LISTS: Final = ("containers", "initContainers")


def resize(pod: Manifest, body: Manifest) -> Manifest:
    """The pod with the resources of `body`, a whole pod with its defaults; ApiError if rejected.

    All other fields of `body` are ignored. `pod` is not changed; the node decides about the resize.
    """
    changed = {
        **pod,
        "metadata": dict(pod["metadata"]),
        "spec": _wanted_spec(pod["spec"], body.get("spec") or {}),
    }
    count_change(changed, pod)
    if problems := _problems(changed, pod):
        raise errors.invalid("", "Pod", pod["metadata"]["name"], problems)
    return changed


def _wanted_spec(old: Manifest, wanted: Manifest) -> Manifest:
    """The old spec with only the resources of the new one, or all of the new one if the containers differ."""
    if any(_names(wanted, key) != _names(old, key) for key in _LISTS):
        return wanted
    spec = dict(old)
    take(spec, wanted, "resources")
    for key in _LISTS:
        if key in old:
            spec[key] = [
                _with_resources(before, now)
                for before, now in zip(old[key], wanted.get(key) or (), strict=True)
            ]
    return spec


def _names(spec: Manifest, key: str) -> list[str]:
    return [container.get("name", "") for container in spec.get(key) or ()]


def _with_resources(old: Manifest, wanted: Manifest) -> Manifest:
    container = dict(old)
    for key in ("resources", "resizePolicy"):
        take(container, wanted, key)
    return container


def _problems(new: Manifest, old: Manifest) -> list[FieldError]:
    if MIRROR_ANNOTATION in annotations_of(old):
        return [forbidden("", "static pods cannot be resized")]
    now, before = new["spec"], old["spec"]
    if (before.get("os") or {}).get("name") == "windows":
        return [forbidden("", "windows pods cannot be resized")]
    problems = validate_pod(new)
    status = old.get("status") or {}
    if (status.get("qosClass") or qos_class(old)) != qos_class(new):
        detail = "Pod QOS Class may not change as a result of resizing"
        problems.append(invalid("spec", status.get("qosClass", ""), detail))
    if not _node_can_resize(status):
        problems.append(forbidden("spec", "Pod running on node without support for resize"))
    problems += _pod_level(now.get("resources"), before.get("resources"))
    if moved := _reordered(now, before):
        return problems + moved
    for key in ("initContainers", "containers"):
        for index, (container, was) in enumerate(zip(now.get(key) or (), before.get(key) or (), strict=True)):
            problems += _container(container, was, key, f"spec.{key}[{index}]")
    return problems


def _node_can_resize(status: Manifest) -> bool:
    """Whether the node supports resizing: it reports the resources of running containers in the status."""
    for container in status.get("containerStatuses") or ():
        if (container.get("state") or {}).get("running") is not None:
            return container.get("resources") is not None
    return True


def _pod_level(new: Manifest | None, old: Manifest | None) -> list[FieldError]:
    if not any((each or {}).get(key) for each in (new, old) for key in ("requests", "limits")):
        return []
    if old is not None and new is None:
        return [forbidden("spec.resources", "pod-level resources cannot be removed")]
    problems = [
        forbidden(f"spec.resources.{key}", f"pod-level resource {key} cannot be removed")
        for key in ("requests", "limits")
        if _removed((new or {}).get(key), (old or {}).get(key))
    ]
    if not same(_immutable_part(new), _immutable_part(old)):
        problems.append(forbidden("spec", "only cpu and memory resources are mutable at pod-level"))
    return problems


def _reordered(new: Manifest, old: Manifest) -> list[FieldError]:
    problems: list[FieldError] = []
    for key in _LISTS:
        now, before = _names(new, key), _names(old, key)
        if len(now) != len(before):
            problems.append(forbidden(f"spec.{key}", f"{key} may not be added or removed on resize"))
            continue
        for index, name in enumerate(before):
            if now[index] != name:
                detail = f"{key} may not be renamed or reordered on resize"
                problems.append(forbidden(f"spec.{key}[{index}].name", detail))
    return problems


def _container(new: Manifest, old: Manifest, kind: str, path: str) -> list[FieldError]:
    now, before = new.get("resources") or {}, old.get("resources") or {}
    problems = [
        forbidden(f"{path}.resources.{key}", f"resource {key} cannot be removed")
        for key in ("requests", "limits")
        if _removed(now.get(key), before.get(key))
    ]
    if same(new, old):
        return problems
    unchanged = {**new, "resources": _immutable_part(now)}
    if not same(unchanged, {**old, "resources": _immutable_part(before)}):
        if kind == "containers":
            problems.append(forbidden("spec", "only cpu and memory resources are mutable"))
        else:
            detail = "only cpu and memory resources for init or sidecar containers are mutable"
            problems.append(forbidden(path, detail))
    if kind == "initContainers" and not is_sidecar(new) and _restarts(new.get("resizePolicy") or ()):
        detail = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
        problems.append(forbidden(path, detail))
    return problems


def _restarts(policies: Sequence[Manifest]) -> bool:
    return any(policy.get("restartPolicy") == "RestartContainer" for policy in policies)


def _removed(new: Mapping[str, str] | None, old: Mapping[str, str] | None) -> bool:
    return any(name not in (new or {}) for name in old or {})


def _immutable_part(resources: Manifest | None) -> dict[str, Any]:
    part: dict[str, Any] = dict(resources or {})
    for key in ("requests", "limits"):
        if key in part:
            part[key] = {name: amount for name, amount in part[key].items() if name not in _RESIZABLE}
    return part
