"""Small clusters to plan in, at random and by hand, and plain arithmetic about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from moorage.api.base import Object
from moorage.api.decode import decode_object
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.resource_requests import pod_requests
from moorage.api.workloads import PodDisruptionBudget
from moorage.planning.results import Move
from moorage.simulation.settings import Settings, load_settings
from tests.builders import HOSTNAME, REQUIRED, ZONE, Manifest, owner, pod_term, spread
from tests.builders import node as node_manifest
from tests.builders import pod as pod_manifest

SETTINGS: Settings = load_settings()
APPS = ("red", "green")


def node(name: str, zone: str = "a", cpu: str = "4", **fields: Any) -> Manifest:
    room = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
    labels = {HOSTNAME: name, ZONE: zone, **fields.pop("labels", {})}
    return node_manifest(name, labels=labels, allocatable=room, **fields)


def pod(
    name: str, cpu: str = "1", *, on: str = "", app: str = "red", kind: str = "ReplicaSet", **fields: Any
) -> Manifest:
    owners = [owner(kind, app)] if kind else []
    labels = {"app": app}
    return pod_manifest(name, on=on, labels=labels, requests={"cpu": cpu}, owners=owners, **fields)


def budget(app: str, **spec: Any) -> Manifest:
    status = spec.pop("status", {})
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
        "status": status,
    }


def decoded(*manifests: Manifest) -> list[Object]:
    """The objects as a cluster has them."""
    objects = [decode_object(each) for each in manifests]
    return [each for each in objects if each is not None]


def new_pods(*manifests: Manifest) -> list[Pod]:
    """Pods that are not in the cluster yet."""
    return [each for each in decoded(*manifests) if isinstance(each, Pod)]


def apart() -> Manifest:
    """Affinity of a pod that does not want its like on its node."""
    return {"podAntiAffinity": {REQUIRED: [pod_term(HOSTNAME, {"matchLabels": {"app": "red"}})]}}


@st.composite
def clusters(draw: st.DrawFn) -> list[Object]:
    """Nodes in zones, pods of controllers on them, spread or not, and disruption budgets."""
    manifests: list[Manifest] = []
    room: dict[str, int] = {}
    for number in range(draw(st.integers(1, 5))):
        name = f"n{number}"
        cpu = room[name] = draw(st.sampled_from((2, 4)))
        manifests.append(node(name, draw(st.sampled_from("ab")), str(cpu)))
    spreads = {app: draw(st.booleans()) for app in APPS}
    for number in range(draw(st.integers(0, 9))):
        cpu, app = draw(st.sampled_from((1, 2))), draw(st.sampled_from(APPS))
        places = [name for name, left in room.items() if left >= cpu]
        if not places:
            continue
        on = draw(st.sampled_from(places))
        room[on] -= cpu
        fields: dict[str, Any] = {}
        if spreads[app]:
            selector = {"matchLabels": {"app": app}}
            fields["topology_spread_constraints"] = [spread(ZONE, selector)]
        manifests.append(pod(f"p{number}", str(cpu), on=on, app=app, **fields))
    for app in APPS:
        kept = draw(st.none() | st.integers(0, 4) | st.sampled_from(("50%", "100%")))
        if kept is not None:
            manifests.append(budget(app, minAvailable=kept))
    return decoded(*manifests)


# Plain arithmetic


def nodes_of(objects: Iterable[Object]) -> dict[str, Node]:
    return {each.name: each for each in objects if isinstance(each, Node)}


def pods_of(objects: Iterable[Object]) -> dict[str, Pod]:
    return {each.name: each for each in objects if isinstance(each, Pod)}


def places_after(
    objects: Sequence[Object], moves: Iterable[Move], gone: Iterable[str] = ()
) -> dict[str, str]:
    """Where each pod is after some moves; every move begins where its pod is, and ends within capacity.

    gone: pods that were evicted and got no node.
    """
    pods, nodes = pods_of(objects), nodes_of(objects)
    places = {name: each.spec.node_name for name, each in pods.items()}
    for move in moves:
        assert places[move.name] == move.source
        places[move.name] = move.node
    for name in gone:
        places[name] = ""
    used: Counter[str] = Counter()
    for name, place in places.items():
        used[place] += pod_requests(pods[name])["cpu"]
    for name, each in nodes.items():
        assert used[name] <= each.status.allocatable["cpu"]
    return places


def allowed_disruptions(objects: Sequence[Object]) -> Mapping[str, int]:
    """How many pods of each app may be missing, by the budgets without a status."""
    allowed = {}
    for each in objects:
        if isinstance(each, PodDisruptionBudget):
            expected = sum(pod.labels["app"] == each.name for pod in pods_of(objects).values())
            least = each.spec.min_available
            assert least is not None
            if isinstance(least, str):
                least = -(-expected * int(least[:-1]) // 100)
            allowed[each.name] = max(0, expected - least)
    return allowed
