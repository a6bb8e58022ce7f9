"""Random clusters in which a pod is pending, for all kinds of reasons."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.builders import HOSTNAME, REQUIRED, ZONE, node, pod, pod_term, spread

Manifest = dict[str, Any]
ZONES = ("a", "b", "c")
APPS = ("web", "db", "cache")


def random_cluster(random: Random) -> tuple[list[Manifest], Manifest]:
    """Some nodes with pods, and a pod that is likely to fit nowhere."""
    objects: list[Manifest] = []
    for number in range(random.randint(1, 6)):
        name = f"node-{number}"
        objects.append(_node(random, name))
        objects += [_pod(random, f"{name}-{place}", name) for place in range(random.randint(0, 4))]
    return objects, _pending(random)


def _node(random: Random, name: str) -> Manifest:
    labels = {HOSTNAME: name, ZONE: random.choice(ZONES)}
    if random.random() < 0.1:
        del labels[ZONE]
    if random.random() < 0.3:
        labels["disk"] = random.choice(("ssd", "hdd"))
    room = {"cpu": str(random.randint(1, 4)), "memory": f"{random.randint(1, 8)}Gi", "pods": "5"}
    return node(
        name,
        labels=labels,
        taints=[each for each in ("team=a:NoSchedule", "gpu:NoExecute") if random.random() < 0.25],
        unschedulable=random.random() < 0.1,
        allocatable=room,
    )


def _pod(random: Random, name: str, on: str) -> Manifest:
    affinity = None
    if random.random() < 0.15:
        affinity = _anti_affinity(random)
    containers = None
    requests = {"cpu": f"{random.randint(1, 12)}00m", "memory": f"{random.randint(1, 20)}00Mi"}
    ports = [{"containerPort": 80, "hostPort": 8080, "protocol": "TCP"}] if random.random() < 0.2 else []
    containers = [{"name": "main", "resources": {"requests": requests}, "ports": ports}]
    return pod(
        name,
        on=on,
        labels={"app": random.choice(APPS)},
        containers=containers,
        affinity=affinity,
        priority=random.choice((0, 0, 10)),
    )


def _pending(random: Random) -> Manifest:
    requests = {
        "cpu": f"{random.choice((1, 5, 20, 35, 60))}00m",
        "memory": f"{random.choice((1, 20, 90))}00Mi",
    }
    ports = [{"containerPort": 80, "hostPort": 8080, "protocol": "TCP"}] if random.random() < 0.3 else []
    containers = [{"name": "main", "resources": {"requests": requests}, "ports": ports}]
    if random.random() < 0.3:
        containers.append({"name": "side", "resources": {"requests": {"cpu": "700m"}}})
    labels, spec = {"app": random.choice(APPS)}, {}
    if random.random() < 0.3:
        spec["node_selector"] = {"disk": "ssd"}
    if random.random() < 0.4:
        key = random.choice((ZONE, HOSTNAME))
        spec["topology_spread_constraints"] = [spread(key, {"matchLabels": labels})]
    if random.random() < 0.4:
        spec["affinity"] = _anti_affinity(random)
    if random.random() < 0.2:
        spec["tolerations"] = [{"key": "team", "operator": "Exists"}]
    return pod("pending", labels=labels, containers=containers, **spec)


def _anti_affinity(random: Random) -> Manifest:
    selector = {"matchLabels": {"app": random.choice(APPS)}}
    side = random.choice(("podAntiAffinity", "podAntiAffinity", "podAffinity"))
    return {side: {REQUIRED: [pod_term(random.choice((ZONE, HOSTNAME)), selector)]}}
