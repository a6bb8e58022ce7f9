"""Workloads of every kind, made from templates: pods of different templates differ in labels and spec."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

import msgspec

from moorage.api.manifests import Manifest
from moorage.client.kinds import (
    DEPLOYMENT,
    DEVICE_CLASS,
    JOB,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_DISRUPTION_BUDGET,
    POD_GROUP,
    PRIORITY_CLASS,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    STATEFUL_SET,
    Kind,
)

_HIGH_PRIORITY: Final = "soak-high"
_DEVICE_CLASS: Final = "soak-device"
_DRIVER: Final = "devices.example.com"
_DEVICES_PER_NODE: Final = 4
_APPS: Final = 40
_IMAGES: Final = 120
_MAX_REPLICAS: Final = 8
_RUN_SECONDS: Final = 60
"""The longest run time of a pod that ends by itself, in seconds."""
_ZONE: Final = "topology.kubernetes.io/zone"
_HOST: Final = "kubernetes.io/hostname"
_SOFT: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_HARD: Final = "requiredDuringSchedulingIgnoredDuringExecution"


class Workload(msgspec.Struct, frozen=True):
    """Objects that are created and deleted together.

    objects: in the order of their creation. pods: number of pods that come with them.
    """

    objects: list[tuple[Kind, Manifest]]
    pods: int


class Draft(msgspec.Struct, frozen=True):
    """What a workload is made of: its number, that of its template, and the template's chance."""

    number: int
    template: int
    random: Random

    @property
    def name(self) -> str:
        """The name of its objects."""
        return f"w-{self.number}"

    @property
    def label(self) -> str:
        """The value of the label `workload` of its pods."""
        return f"t-{self.template}"

    @property
    def labels(self) -> dict[str, str]:
        """The labels of its pods."""
        return {
            "app": f"app-{self.template % _APPS}",
            "workload": self.label,
            "build": f"{self.random.getrandbits(48):x}",
        }


def shared_objects(nodes: list[str]) -> list[tuple[Kind, Manifest]]:
    """What workloads need in a cluster with these nodes: a priority, and devices."""
    selector = {"cel": {"expression": f'device.driver == "{_DRIVER}"'}}
    return [
        (PRIORITY_CLASS, _object(PRIORITY_CLASS, _HIGH_PRIORITY, value=1000)),
        (DEVICE_CLASS, _object(DEVICE_CLASS, _DEVICE_CLASS, spec={"selectors": [selector]})),
        *((RESOURCE_SLICE, _devices(node)) for node in nodes),
    ]


def _devices(node: str) -> Manifest:
    devices = [{"name": f"device-{index}"} for index in range(_DEVICES_PER_NODE)]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": _DRIVER, "nodeName": node, "pool": pool, "devices": devices}
    return _object(RESOURCE_SLICE, node, spec=spec)


def new_workload(number: int, template: int, seed: int, *, has_groups: bool) -> Workload:
    """The workload of a number, made from the template of another; has_groups: whether it may be a gang."""
    random = Random(f"{seed} {template}")
    kinds = _WITH_GROUPS if has_groups else _WITHOUT_GROUPS
    return random.choice(kinds)(Draft(number, template, random))


def _object(kind: Kind, name: str, labels: dict[str, str] | None = None, **fields: Any) -> Manifest:
    metadata: Manifest = {"name": name}
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, **fields}


def _spec(draft: Draft, *, cpu: str = "", **fields: Any) -> Manifest:
    random = draft.random
    requests = {
        "cpu": cpu or f"{random.choice((50, 100, 200, 400))}m",
        "memory": f"{random.randint(16, 128)}Mi",
    }
    image = draft.template % _IMAGES
    container = {
        "name": "main",
        "image": f"registry.example/app-{image % _APPS}:{image}",
        "env": [{"name": "BUILD", "value": f"{random.getrandbits(48):x}"}],
        "resources": {"requests": requests},
    }
    return {"containers": [container], "terminationGracePeriodSeconds": 1, **fields}


def _template(draft: Draft, annotations: dict[str, str] | None = None, **fields: Any) -> Manifest:
    metadata: Manifest = {"labels": draft.labels}
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": _spec(draft, **fields)}


def _pod(draft: Draft, suffix: str = "", **fields: Any) -> tuple[Kind, Manifest]:
    return POD, _object(POD, f"{draft.name}{suffix}", draft.labels, spec=_spec(draft, **fields))


def _one_pod(draft: Draft, **fields: Any) -> Workload:
    return Workload([_pod(draft, **fields)], 1)


def _runs(draft: Draft) -> dict[str, str]:
    return {"moorage.io/run-seconds": str(draft.random.randint(1, _RUN_SECONDS))}


def _selects(label: str, value: str) -> Manifest:
    return {"labelSelector": {"matchLabels": {label: value}}}


# -- one function a kind of workload


def _plain(draft: Draft) -> Workload:
    return _one_pod(draft)


def _spread(draft: Draft) -> Workload:
    random = draft.random
    constraint = {
        "maxSkew": random.randint(1, 5),
        "topologyKey": random.choice((_ZONE, _HOST)),
        "whenUnsatisfiable": random.choice(("DoNotSchedule", "ScheduleAnyway")),
        **_selects("app", f"app-{draft.template % _APPS}"),
    }
    return _one_pod(draft, topologySpreadConstraints=[constraint])


def _affine(draft: Draft) -> Workload:
    term = {**_selects("app", f"app-{draft.template % _APPS}"), "topologyKey": _ZONE}
    kind = draft.random.choice(("podAffinity", "podAntiAffinity"))
    return _one_pod(draft, affinity={kind: {_SOFT: [{"weight": 10, "podAffinityTerm": term}]}})


def _apart(draft: Draft) -> Workload:
    term = {**_selects("workload", draft.label), "topologyKey": _HOST}
    pods = [_pod(draft, f"-{each}", affinity={"podAntiAffinity": {_HARD: [term]}}) for each in range(3)]
    return Workload(pods, len(pods))


def _with_volume(draft: Draft) -> Workload:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = _object(PERSISTENT_VOLUME_CLAIM, draft.name, spec=spec)
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": draft.name}}
    return Workload([(PERSISTENT_VOLUME_CLAIM, claim), _pod(draft, volumes=[volume])], 1)


def _with_device(draft: Draft) -> Workload:
    request = {"name": "device", "exactly": {"deviceClassName": _DEVICE_CLASS}}
    claim = _object(RESOURCE_CLAIM, draft.name, spec={"devices": {"requests": [request]}})
    named = [{"name": "device", "resourceClaimName": draft.name}]
    return Workload([(RESOURCE_CLAIM, claim), _pod(draft, resourceClaims=named)], 1)


def _preempting(draft: Draft) -> Workload:
    return _one_pod(draft, cpu="6", priorityClassName=_HIGH_PRIORITY)


def _unschedulable(draft: Draft) -> Workload:
    return _one_pod(draft, nodeSelector={f"missing-{draft.template}": "yes"})


def _deployment(draft: Draft) -> Workload:
    replicas = draft.random.randint(2, _MAX_REPLICAS)
    selector = _selects("workload", draft.label)
    spec = {"replicas": replicas, "selector": selector["labelSelector"], "template": _template(draft)}
    budget = {"minAvailable": 1, "selector": selector["labelSelector"]}
    return Workload(
        [
            (POD_DISRUPTION_BUDGET, _object(POD_DISRUPTION_BUDGET, draft.name, spec=budget)),
            (DEPLOYMENT, _object(DEPLOYMENT, draft.name, spec=spec)),
        ],
        replicas,
    )


def _stateful_set(draft: Draft) -> Workload:
    replicas = draft.random.randint(1, 3)
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    spec = {
        "serviceName": draft.name,
        "replicas": replicas,
        "podManagementPolicy": "Parallel",
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Delete"},
        "selector": _selects("workload", draft.label)["labelSelector"],
        "template": _template(draft),
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
    }
    return Workload([(STATEFUL_SET, _object(STATEFUL_SET, draft.name, spec=spec))], replicas)


def _job(draft: Draft) -> Workload:
    pods = draft.random.randint(1, 4)
    template = _template(draft, _runs(draft), restartPolicy="Never")
    spec = {"completions": pods, "parallelism": pods, "template": template}
    return Workload([(JOB, _object(JOB, draft.name, spec=spec))], pods)


def _gang(draft: Draft) -> Workload:
    size = draft.random.randint(2, 6)
    group = _object(POD_GROUP, draft.name, spec={"schedulingPolicy": {"gang": {"minCount": size}}})
    pods = [_pod(draft, f"-{each}", schedulingGroup={"podGroupName": draft.name}) for each in range(size)]
    return Workload([(POD_GROUP, group), *pods], size)


_WITHOUT_GROUPS: Final[tuple[Callable[[Draft], Workload], ...]] = (
    *(_plain, _plain, _spread, _spread, _affine, _affine, _apart),
    *(_with_volume, _with_device, _preempting, _unschedulable),
    *(_deployment, _deployment, _stateful_set, _job, _job),
)
"""The kinds of workloads, each as often as it is to be chosen."""
_WITH_GROUPS: Final = (*_WITHOUT_GROUPS, _gang, _gang)
