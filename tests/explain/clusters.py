"""Random clusters in which a pod is pending, for all kinds of reasons."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from tests.builders import HOSTNAME, REQUIRED, ZONE, node, pod, pod_term, spread

Manifest = dict[str, Any]
ZONES = ("a", "b", "c")
APPS = ("web", "db", "cache")
DRIVER = "gpu.example.com"
EXTENDED = "example.com/card"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


class RandomCluster:
    """Some nodes with pods, and a pod that is likely to fit nowhere, for one to three reasons."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.objects: list[Manifest] = []
        self.labels = {"app": self.random.choice(APPS)}
        self.requests = {"cpu": "100m", "memory": "100Mi"}
        self.ports: list[Manifest] = []
        self.spec: Manifest = {}
        for number in range(self.random.randint(1, 6)):
            self._add_node(f"node-{number}")
        for cause in self.random.sample(self.causes(), self.random.choice((1, 1, 2, 3))):
            cause()
        main: Manifest = {"name": "main", "resources": {"requests": self.requests}, "ports": self.ports}
        side: Manifest = {"name": "side", "resources": {"requests": {"cpu": "50m"}}}
        containers = [main, side] if self.chance(0.3) else [main]
        self.pod = pod("pending", labels=self.labels, containers=containers, **self.spec)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def causes(self) -> list[Callable[[], None]]:
        return [
            self.large_requests,
            self.node_selector,
            self.spread_constraints,
            self.pod_affinity,
            self.host_port,
            self.bound_claim,
            self.unbound_claim,
            self.device_claim,
            self.extended_resource,
        ]

    # The cluster

    def _add_node(self, name: str) -> None:
        random = self.random
        labels = {HOSTNAME: name, ZONE: random.choice(ZONES)}
        if self.chance(0.1):
            del labels[ZONE]
        if self.chance(0.3):
            labels["disk"] = random.choice(("ssd", "hdd"))
        room = {"cpu": str(random.randint(1, 4)), "memory": f"{random.randint(1, 8)}Gi", "pods": "5"}
        if self.chance(0.4):
            room[EXTENDED] = "2"
        taints = [each for each in ("team=a:NoSchedule", "gpu:NoExecute") if self.chance(0.2)]
        cordoned = self.chance(0.1)
        self.objects.append(
            node(name, labels=labels, taints=taints, unschedulable=cordoned, allocatable=room)
        )
        for place in range(random.randint(0, 4)):
            self.objects.append(self._pod_on(f"{name}-{place}", name))
        if self.chance(0.4) or name == "node-0":
            devices = [{"name": f"gpu-{number}"} for number in range(random.randint(1, 2))]
            self.objects.append(_slice(name, devices))

    def _pod_on(self, name: str, on: str) -> Manifest:
        random = self.random
        requests = {"cpu": f"{random.randint(1, 12)}00m", "memory": f"{random.randint(1, 20)}00Mi"}
        if self.chance(0.2):
            requests[EXTENDED] = "1"
        ports = [_PORT] if self.chance(0.3) else []
        return pod(
            name,
            on=on,
            labels={"app": random.choice(APPS)},
            containers=[{"name": "main", "resources": {"requests": requests}, "ports": ports}],
            affinity=self._affinity() if self.chance(0.15) else None,
            priority=random.choice((0, 0, 10)),
        )

    def _affinity(self) -> Manifest:
        selector = {"matchLabels": {"app": self.random.choice(APPS)}}
        side = self.random.choice(("podAntiAffinity", "podAntiAffinity", "podAffinity"))
        return {side: {REQUIRED: [pod_term(self.random.choice((ZONE, HOSTNAME)), selector)]}}

    # Reasons

    def large_requests(self) -> None:
        self.requests["cpu"] = f"{self.random.choice((5, 20, 35, 60))}00m"
        self.requests["memory"] = f"{self.random.choice((1, 20, 90))}00Mi"

    def node_selector(self) -> None:
        self.spec["node_selector"] = {"disk": "ssd", **({"rack": "r1"} if self.chance(0.3) else {})}

    def spread_constraints(self) -> None:
        keys = self.random.sample((ZONE, HOSTNAME), self.random.randint(1, 2))
        self.spec["topology_spread_constraints"] = [spread(key, {"matchLabels": self.labels}) for key in keys]

    def pod_affinity(self) -> None:
        self.spec["affinity"] = self._affinity()

    def host_port(self) -> None:
        self.ports = [_PORT]

    def bound_claim(self) -> None:
        zone = self.random.choice(ZONES)
        self.objects += [
            _claim("bound", BOUND, volumeName="volume", storageClassName="standard"),
            _volume("volume", zone),
        ]
        self._use_claim("bound")

    def unbound_claim(self) -> None:
        self.objects += [
            {
                "kind": "StorageClass",
                "metadata": {"name": "late"},
                "provisioner": "kubernetes.io/no-provisioner",
                "volumeBindingMode": self.random.choice(("WaitForFirstConsumer", "Immediate")),
            },
            _claim("unbound", {}, storageClassName="late"),
        ]
        self._use_claim("unbound")

    def _use_claim(self, name: str) -> None:
        volumes = self.spec.setdefault("volumes", [])
        volumes.append({"name": name, "persistentVolumeClaim": {"claimName": name}})

    def device_claim(self) -> None:
        exactly = {"deviceClassName": "gpu", "count": self.random.randint(1, 3)}
        self.objects += [
            {"kind": "DeviceClass", "metadata": {"name": "gpu"}},
            {
                "kind": "ResourceClaim",
                "metadata": {"name": "gpus", "namespace": "default", "uid": "gpus"},
                "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
            },
        ]
        self.spec["resource_claims"] = [{"name": "gpus", "resourceClaimName": "gpus"}]

    def extended_resource(self) -> None:
        self.requests[EXTENDED] = str(self.random.randint(1, 4))


_PORT = {"containerPort": 80, "hostPort": 8080, "protocol": "TCP"}


def _slice(name: str, devices: list[Manifest]) -> Manifest:
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": pool, "nodeName": name, "devices": devices}
    return {"kind": "ResourceSlice", "metadata": {"name": f"{name}-{DRIVER}"}, "spec": spec}


def _claim(name: str, annotations: Manifest, **spec: str) -> Manifest:
    metadata = {"name": name, "namespace": "default", "uid": name, "annotations": annotations}
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    return {"kind": "PersistentVolumeClaim", "metadata": metadata, "spec": asked}


def _volume(name: str, zone: str) -> Manifest:
    here = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "claimRef": {"namespace": "default", "name": "bound", "uid": "bound"},
        "storageClassName": "standard",
        "nodeAffinity": {"required": {"nodeSelectorTerms": [here]}},
    }
    return {"kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}
