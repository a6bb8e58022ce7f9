"""Pods as YAML for editing, and back.

The text of a pod in the cluster has only what scheduling reads: no environment, arguments or annotations,
which may hold secrets.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from moorage.admission.pod_creation import PodCreation
from moorage.api.decode import InputError, convert, decode_object
from moorage.api.manifests import Manifest
from moorage.api.pod import Container, Pod, Volume
from moorage.config.load import dump_yaml
from moorage.http.api_error import ApiError
from moorage.scheduler.encoding import plain
from moorage.ui.what_if.texts import EditedText

_KEPT_METADATA: Final = ("name", "namespace", "labels", "ownerReferences")
_DEFAULT_NAMESPACE: Final = "default"
_WITHOUT_CLASS: Final = "what-if"
"""The name of the class for a pod with a priority and no class."""


def pod_text(pod: Pod) -> str:
    """A pod for editing, as if it were new."""
    metadata = plain(pod.metadata)
    spec = replace(
        pod.spec,
        node_name="",
        containers=tuple(map(_edited_container, pod.spec.containers)),
        init_containers=tuple(map(_edited_container, pod.spec.init_containers)),
        volumes=tuple(map(_edited_volume, (each for each in pod.spec.volumes if each.concerns_scheduling))),
    )
    return dump_yaml(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {key: metadata[key] for key in _KEPT_METADATA if key in metadata},
            "spec": plain(spec),
        }
    )


def _edited_container(container: Container) -> Container:
    """Rules for restarts are only read in part, and incomplete ones are invalid."""
    return replace(container, restart_policy_rules=())


def _edited_volume(volume: Volume) -> Volume:
    ephemeral = volume.ephemeral
    template = None if ephemeral is None else ephemeral.volume_claim_template
    if ephemeral is None or template is None:
        return volume
    template = replace(template, metadata=replace(template.metadata, annotations={}))
    return replace(volume, ephemeral=replace(ephemeral, volume_claim_template=template))


def read_pod_text(text: str, priority_classes: list[Manifest]) -> Pod:
    """A pod with an API server's defaults, admission and validation; TextError if it would be rejected."""
    edited = EditedText("pod", text)
    try:
        manifest = _new_pod(edited.value)
        classes = [*priority_classes, *_assumed(manifest["spec"])]
        convert(manifest, Pod)  # Its errors name the field, which those of admission for amounts do not.
        pod = decode_object(PodCreation((each, "") for each in classes).created(manifest))
    except (InputError, ApiError) as error:
        raise edited.rejected(error) from None
    assert isinstance(pod, Pod)
    return pod


def _new_pod(manifest: Any) -> Manifest:
    """A manifest as that of a new pod, with a namespace and no status; InputError if it cannot be one."""
    if not isinstance(manifest, dict) or manifest.get("kind") != "Pod" or manifest.get("apiVersion") != "v1":
        raise InputError("kind", "expected a Pod of apiVersion v1")
    for field in ("metadata", "spec"):
        if not isinstance(manifest.get(field), dict):
            raise InputError(field, "expected an object")
    metadata = {"namespace": _DEFAULT_NAMESPACE, **manifest["metadata"]}
    for field in ("name", "namespace"):
        if not isinstance(metadata.get(field), str):
            raise InputError(f"metadata.{field}", "expected a name")
    if manifest["spec"].get("nodeName"):
        raise InputError("spec.nodeName", "a scheduler does not see pods that have a node")
    return {key: value for key, value in manifest.items() if key != "status"} | {"metadata": metadata}


def _assumed(spec: dict[str, Any]) -> list[Manifest]:
    """Objects with which admission accepts what a pod says of its priority and its runtime."""
    objects: list[Manifest] = []
    priority, name = spec.get("priority"), spec.get("priorityClassName")
    if isinstance(priority, int) and (name is None or isinstance(name, str)):
        objects.append(
            {
                "kind": "PriorityClass",
                "metadata": {"name": name or _WITHOUT_CLASS},
                "value": priority,
                "preemptionPolicy": spec.get("preemptionPolicy") or "PreemptLowerPriority",
                "globalDefault": not name,
            }
        )
    if isinstance(runtime := spec.get("runtimeClassName"), str) and runtime:
        overhead = spec.get("overhead")
        objects.append(
            {
                "kind": "RuntimeClass",
                "metadata": {"name": runtime},
                "handler": runtime,
                **({"overhead": {"podFixed": overhead}} if isinstance(overhead, dict) else {}),
            }
        )
    return objects
