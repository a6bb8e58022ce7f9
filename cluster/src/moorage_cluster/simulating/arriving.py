"""Pods of a workload, as an API server takes them."""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.api.as_sent import PodAsSent
from moorage.api.decode import InputError
from moorage.api.manifests import Manifest
from moorage.api.pod import Pod
from moorage.api.pod_groups import PodGroup
from moorage.client.kinds import POD_GROUP
from moorage.scheduler.encoding import plain
from moorage.simulation.controlled import ControlledObjects
from moorage.simulation.settings import Settings
from moorage.simulation.workload import DURATION, Arrival


def manifest_of(arrival: Arrival) -> Manifest:
    """The pod of an arrival, which ends after its run time.

    A pod whose priority is but a number gets the name of a class.
    """
    manifest = _manifest(arrival.pod)
    spec: Manifest = {**manifest["spec"]}
    meta: Manifest = {"name": arrival.pod.name, "namespace": arrival.pod.namespace}
    for key in ("labels", "annotations"):
        meta[key] = manifest["metadata"].get(key) or {}
    if arrival.duration_seconds is not None:
        meta["annotations"] = {**meta["annotations"], DURATION: f"{arrival.duration_seconds:.3f}s"}
        spec["restartPolicy"] = "Never"
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": _with_class(spec)}


def group_manifest_of(group: PodGroup) -> Manifest:
    """A group of pods, as an API server takes it."""
    meta = {"name": group.name, "namespace": group.namespace}
    spec = {key: value for key, value in plain(group.spec).items() if value is not None}
    policy = {"gang": {"minCount": spec["schedulingPolicy"]["gang"]["minCount"]}}
    spec = _with_class({**spec, "schedulingPolicy": policy})
    return {"apiVersion": POD_GROUP.api_version, "kind": POD_GROUP.name, "metadata": meta, "spec": spec}


def _with_class(spec: Manifest) -> Manifest:
    """A spec with the name of a class, if its priority is but a number."""
    priority = spec.get("priority")
    if not priority or spec.get("priorityClassName"):
        return spec
    return {**spec, "priorityClassName": f"priority-{priority}".replace("--", "-minus-")}


def _manifest(pod: Pod) -> Manifest:
    """The manifest that a pod was read from, if there is one: it may say more than scheduling reads."""
    manifest: Any = msgspec.json.decode(pod.as_sent) if isinstance(pod, PodAsSent) else plain(pod)
    return dict(manifest)


def with_generated_name(manifest: Manifest) -> Manifest:
    """A pod for another one that was deleted, under a name that the server generates."""
    meta = {**manifest["metadata"]}
    meta["generateName"] = f"{meta.pop('name')}-" if "name" in meta else meta["generateName"]
    return {**manifest, "metadata": meta}


def check_end(objects: ControlledObjects, settings: Settings) -> None:
    """InputError if a simulation would never end."""
    if settings.until_seconds is not None:
        return
    for manifest in (*objects.dump, *(each.manifest for each in objects.owners)):
        if manifest.get("kind") == "CronJob" and not (manifest.get("spec") or {}).get("suspend"):
            name = f"CronJob {manifest['metadata'].get('name', '')}"
            raise InputError(name, "makes pods for ever; say with --until when the simulation ends")
