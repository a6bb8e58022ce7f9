"""Cases: a cluster, pods, and the arguments of a profile's plugins."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from hypothesis import strategies as st

from moorage.api.base import Object
from moorage.api.decode import convert
from moorage.api.pod import Pod
from moorage.config.args import ARGS_BY_PLUGIN
from tests import builders as b
from tests.builders import Manifest
from tests.strategies.choosing import Draw, one_of
from tests.strategies.cluster_nodes import nodes
from tests.strategies.objects import other_objects
from tests.strategies.plugin_args import plugin_args
from tests.strategies.pods import new_pods, placed_pods
from tests.strategies.selectors import USUAL_LABELS
from tests.strategies.subjects import AFFINITY, NODE_NAMES, OWNED, PORTS, RESOURCES, SPREAD, SUBJECTS


@dataclass
class Case:
    """A cluster, pods that want a node, and a profile's arguments: as manifests, and as objects."""

    cluster: list[Manifest]
    pods: list[Manifest]
    args: dict[str, Manifest] = field(default_factory=dict)

    @cached_property
    def objects(self) -> list[Object]:
        """The cluster's objects, nodes first."""
        return [b.make(manifest) for manifest in self.cluster]

    @cached_property
    def new_pods(self) -> list[Pod]:
        """All pods that want a node."""
        return [convert(manifest, Pod) for manifest in self.pods]

    @property
    def pod(self) -> Pod:
        """The first pod that wants a node."""
        return self.new_pods[0]

    @cached_property
    def typed_args(self) -> dict[str, Any]:
        """The arguments of every plugin that takes some, complete."""
        return {
            name: convert(self.args.get(name, {}), kind, name).defaulted()
            for name, kind in ARGS_BY_PLUGIN.items()
        }

    def __repr__(self) -> str:
        lines: list[Any] = [*self.cluster, "pods:", *self.pods, "args:", self.args]
        shown = (line if isinstance(line, str) else json.dumps(_tidy(line)) for line in lines)
        return "Case:\n  " + "\n  ".join(shown)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """How Hypothesis shows a failing case."""
        printer.text(repr(self))


def _tidy(value: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest without what is empty at its top levels, to be read."""
    tidied = {
        key: _tidy(item) if key in ("spec", "status", "metadata") else item for key, item in value.items()
    }
    return {key: item for key, item in tidied.items() if item not in ({}, [], "", None, False)}


@st.composite
def cases(
    draw: Draw[Any], about: Collection[str] = SUBJECTS, *, new: int = 1, nodes_at_least: int = 1
) -> Case:
    """A case about some subjects."""
    names = NODE_NAMES[: draw(st.integers(nodes_at_least, len(NODE_NAMES)))]
    cluster: list[Manifest] = [draw(nodes(name, about)) for name in names]
    if {AFFINITY, SPREAD, RESOURCES, PORTS} & set(about):
        places = draw(st.lists(st.sampled_from(names), max_size=8))
        cluster += [draw(placed_pods(f"p{i}", place, about)) for i, place in enumerate(places)]
    if {AFFINITY, SPREAD, OWNED} & set(about):
        # Plain pods that most selectors match, so that there is something to count.
        crowd = draw(st.lists(st.sampled_from(names), max_size=6))
        cluster += [
            b.pod(f"c{i}", namespace="red", labels=USUAL_LABELS, on=place) for i, place in enumerate(crowd)
        ]
    cluster += draw(other_objects(about))
    pods = [draw(new_pods(f"new{i}", about)) for i in range(new)]
    return Case(cluster, pods, draw(plugin_args(about)))


@st.composite
def mixed_cases(draw: Draw[Any], /, *, most_subjects: int = 4, **options: Any) -> Case:
    """A case about a few subjects at a time, so that a pod is not refused everywhere for one of too many."""
    about = draw(st.lists(one_of(*SUBJECTS), min_size=1, max_size=most_subjects, unique=True))
    return draw(cases(about, **options))
