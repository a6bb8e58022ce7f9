"""Small clusters for checking plugins, seeded so that findings are reproducible.

Each is small enough to be read, and together they have nearly everything that a scheduler reads: nodes
with and without labels, taints, images and free resources; pods on them, with ports, claims and affinities;
many kinds of pending pods; and the other objects. What else a plugin reads (its own label) is mixed in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from random import Random
from typing import Any, Final

from msgspec.structs import replace

from moorage.api.base import Object
from moorage.api.decode import decode_object
from moorage.api.labels import HOSTNAME, ZONE
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.yaml_reading import load_yaml
from moorage.testing.objects import node, pod

Values = Sequence[str | None]
"""Possible values of a label or annotation; None: it may be absent."""

_GPU: Final = "example.com/gpu"
_PENDING_POD_COUNT: Final = 8


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster's objects, and its pending pods."""

    name: str
    objects: tuple[Object, ...]
    pods: tuple[Pod, ...]


@dataclass(frozen=True, slots=True)
class Extras:
    """Labels and annotations to be mixed in, each with the values it may have."""

    node_labels: Mapping[str, Values] | None = None
    node_annotations: Mapping[str, Values] | None = None
    pod_labels: Mapping[str, Values] | None = None
    pod_annotations: Mapping[str, Values] | None = None


def standard_clusters(extras: Extras | None = None, *, seed: int = 1) -> tuple[Cluster, ...]:
    """The clusters that plugins are checked in, the same for the same seed."""
    random = Random(seed)
    mixed = _Mixer(random, extras or Extras())
    return (
        _cluster("one node", mixed, 1, pods_each=1),
        _cluster("three nodes", mixed, 3, pods_each=2),
        _cluster("six nodes", mixed, 6, pods_each=2),
        _cluster("bare nodes", mixed, 3, pods_each=0, bare=True),
        _cluster("crowded", mixed, 5, pods_each=4),
    )


class _Mixer:
    """Makes random choices, and mixes in the extras."""

    def __init__(self, random: Random, extras: Extras) -> None:
        self._random = random
        self._extras = extras

    def one_of(self, choices: Sequence[Any]) -> Any:
        return self._random.choice(choices)

    def some_of(self, choices: Sequence[Any], most: int) -> list[Any]:
        return self._random.sample(choices, self._random.randint(0, min(most, len(choices))))

    def sample(self, choices: Sequence[Any], count: int) -> list[Any]:
        return self._random.sample(choices, min(count, len(choices)))

    def node(self, made: Node) -> Node:
        return replace(
            made, metadata=self._marked(made, self._extras.node_labels, self._extras.node_annotations)
        )

    def pod(self, made: Pod) -> Pod:
        return replace(
            made, metadata=self._marked(made, self._extras.pod_labels, self._extras.pod_annotations)
        )

    def _marked(
        self, made: Object, labels: Mapping[str, Values] | None, annotations: Mapping[str, Values] | None
    ) -> Any:
        meta = made.metadata
        return replace(
            meta,
            labels={**meta.labels, **self._chosen(labels)},
            annotations={**meta.annotations, **self._chosen(annotations)},
        )

    def _chosen(self, wanted: Mapping[str, Values] | None) -> dict[str, str]:
        chosen = {key: self.one_of(values) for key, values in (wanted or {}).items()}
        return {key: value for key, value in chosen.items() if value is not None}


def _cluster(name: str, mixed: _Mixer, nodes: int, *, pods_each: int, bare: bool = False) -> Cluster:
    made = [_bare_node(number) if bare else _node(number, mixed) for number in range(nodes)]
    placed = [
        mixed.pod(_placed_pod(f"on-{each.name}-{number}", each.name, mixed))
        for each in made
        for number in range(pods_each)
    ]
    kinds = _standard()["waiting"]
    chosen = mixed.sample(range(len(kinds)), _PENDING_POD_COUNT)
    waiting = [mixed.pod(pod(f"waiting-{number}", **kinds[number])) for number in sorted(chosen)]
    others = () if bare else _others()
    return Cluster(name, (*(mixed.node(each) for each in made), *placed, *others), tuple(waiting))


def _bare_node(number: int) -> Node:
    """A node with nothing but a name."""
    return node(f"n{number}", allocatable={})


def _node(number: int, mixed: _Mixer) -> Node:
    name = f"n{number}"
    room = {"cpu": mixed.one_of(("2", "4", "16")), "memory": mixed.one_of(("4Gi", "8Gi", "64Gi"))}
    gpus = mixed.one_of(({}, {}, {_GPU: "2"}))
    return node(
        name,
        labels={
            HOSTNAME: name,
            **mixed.one_of(({}, {ZONE: "a"}, {ZONE: "b"}, {ZONE: ""})),
            **mixed.one_of(({}, {"disk": "ssd"}, {"disk": "hdd"}, {"disk": "7"})),
        },
        annotations=mixed.one_of(({}, {"note": "x"})),
        taints=mixed.some_of(("a=1:NoSchedule", "b:PreferNoSchedule", "c:NoExecute"), 1),
        unschedulable=mixed.one_of((False, False, False, True)),
        allocatable={**room, "pods": mixed.one_of(("3", "5", "110")), **gpus},
        features=mixed.one_of(((), ("UserNamespacesHostNetworkSupport",))),
        images=mixed.one_of(({}, {"web:1": 300_000_000}, {"web:1": 300_000_000, "db:1": 900_000_000})),
    )


def _placed_pod(name: str, on: str, mixed: _Mixer) -> Pod:
    return pod(
        name,
        on=on,
        namespace=mixed.one_of(("default", "default", "other")),
        labels=mixed.one_of(({}, {"app": "a"}, {"app": "b", "team": "x"})),
        requests=mixed.one_of(({}, {"cpu": "500m"}, {"cpu": "1", "memory": "1Gi"}, {"memory": "2Gi"})),
        **mixed.one_of(_standard()["placed"]),
        priority=mixed.one_of((0, 0, -5, 1000)),
    )


@cache
def _standard() -> dict[str, list[dict[str, Any]]]:
    """The manifests that clusters are built from: pods on nodes, pending pods, other objects."""
    text = files("moorage.testing").joinpath("standard.yaml").read_text(encoding="utf-8")
    content: dict[str, list[dict[str, Any]]] = load_yaml(text)
    return content


def _others() -> tuple[Object, ...]:
    decoded = (decode_object(manifest) for manifest in _standard()["others"])
    return tuple(each for each in decoded if each is not None)
