"""A plugin's results depend only on what its `depends_on` declares.

Results of a plugin with `depends_on` are cached for all pods of an equivalence class, or for all pods with
equal `reads`, so an undeclared dependency causes wrong decisions later. Each alteration changes something
that is not declared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec.structs import replace

from moorage.api.base import Object
from moorage.api.labels import ZONE
from moorage.api.node import Node, Taint
from moorage.api.pod import Pod, Toleration
from moorage.api.quantity import parse_quantity
from moorage.framework.interface.dependencies import DependsOn
from moorage.testing.objects import pod as make_pod
from moorage.testing.plugin_answers import (
    Answers,
    ask,
    begin,
    dependencies_of,
    is_refusal,
    prepare_scoring,
    raw_scores,
)
from moorage.testing.trial import Check, Trial


@dataclass(frozen=True, slots=True)
class _Alteration:
    """Another cluster, or another pod of the same template, and the nodes that must keep their results."""

    what: str
    objects: tuple[Object, ...]
    pod: Pod
    names: AbstractSet[str]


def _untrue(trial: Trial) -> Iterator[str]:
    stage, pod = trial.stage, trial.pod
    depends_on: Any = dependencies_of(stage, pod)
    if depends_on is None:
        return
    if not isinstance(depends_on, DependsOn):
        yield f"depends_on returned {depends_on!r}; return NODE, NODE_AND_PODS, a DependsOn, or None"
        return
    before = ask(stage, pod)
    if is_refusal(before.pre_filter) or isinstance(before.pre_filter, frozenset):
        return  # Such a result is not cached.
    for altered in _alterations(trial, depends_on):
        other = trial.twin(f"{altered.what} beside {depends_on}", altered.objects)
        difference = before.of(altered.names).difference(ask(other, altered.pod).of(altered.names))
        if difference:
            yield f"{altered.what}, which depends_on does not name: {difference}"
    if depends_on.reads is not None:
        yield from _unequal_to_readers_of_equals(trial, depends_on, before)
    yield from _unequal_to_equals(trial)


def _unequal_to_readers_of_equals(trial: Trial, depends_on: DependsOn, before: Answers) -> Iterator[str]:
    """Whether a pod that differs only in what the plugin does not read gets other answers."""
    everywhere = {node.name for node in trial.cluster.objects if isinstance(node, Node)}
    for what, other in _other_pods(trial.pod):
        if dependencies_of(trial.stage, other) == depends_on:
            difference = before.of(everywhere).difference(ask(trial.stage, other).of(everywhere))
            if difference:
                yield f"the pod has {what}, which the reads of depends_on do not contain: {difference}"


def _other_pods(pod: Pod) -> Iterator[tuple[str, Pod]]:
    """Pods that differ in one part from this one."""
    meta, spec = pod.metadata, pod.spec
    yield "other labels", replace(pod, metadata=replace(meta, labels={**meta.labels, "app": "changed"}))
    yield "another namespace", replace(pod, metadata=replace(meta, namespace="changed"))
    (container,) = make_pod("other", containers=[_OTHER_CONTAINER]).spec.containers
    changed: tuple[tuple[str, dict[str, Any]], ...] = (
        ("another container", {"containers": (*spec.containers, container)}),
        ("other tolerations", {"tolerations": (Toleration(operator="Exists"),)}),
        ("another node selector", {"node_selector": {**spec.node_selector, "disk": "changed"}}),
        ("another priority", {"priority": (spec.priority or 0) + 1}),
    )
    for what, changes in changed:
        yield what, replace(pod, spec=replace(spec, **changes))


def _alterations(trial: Trial, depends_on: DependsOn) -> Iterator[_Alteration]:
    pod, objects = trial.pod, trial.cluster.objects
    nodes = [each for each in objects if isinstance(each, Node)]
    rest = [each for each in objects if not isinstance(each, Node | Pod)]
    everywhere = {node.name for node in nodes}
    elsewhere = everywhere - {nodes[0].name}

    renamed = replace(
        pod.metadata,
        name=f"{pod.name}-twin",
        uid=f"{pod.metadata.uid}-twin",
        annotations={"moorage.io/changed": "yes"},
    )
    yield _Alteration(
        "another pod of the template has another name and other annotations",
        objects,
        replace(pod, metadata=renamed),
        everywhere,
    )
    yield _Alteration(
        "another node changed",
        tuple(_changed(each, depends_on) if each is nodes[0] else each for each in objects),
        pod,
        elsewhere,
    )
    where = nodes[:1] if depends_on.pods else nodes
    stay = elsewhere if depends_on.pods else everywhere
    emptied = {node.name for node in where}
    yield _Alteration("pods came", (*objects, *_added_pods(where)), pod, stay)
    yield _Alteration(
        "pods went",
        tuple(each for each in objects if not isinstance(each, Pod) or each.spec.node_name not in emptied),
        pod,
        stay,
    )
    named = (*depends_on.tables, *depends_on.node_objects)
    unnamed = [each for each in rest if not isinstance(each, named)] if named else rest
    if unnamed:
        removed = {id(each) for each in unnamed}
        kinds = ", ".join(sorted({type(each).__name__ for each in unnamed}))
        yield _Alteration(
            f"objects went ({kinds})",
            tuple(each for each in objects if id(each) not in removed),
            pod,
            everywhere,
        )


def _changed(node: Node, depends_on: DependsOn) -> Node:
    """A node that differs in everything plugins read; its images stay if depends_on declares them."""
    labels = {**node.labels, ZONE: "elsewhere", "disk": "other", "moorage.io/changed": "yes"}
    labels.update({key: "changed" for key in node.labels if key not in labels})
    room = {name: parse_quantity("1") for name in (*node.status.allocatable, "cpu")}
    images = node.status.images if depends_on.images else ()
    return replace(
        node,
        metadata=replace(node.metadata, labels=labels, annotations={"moorage.io/changed": "yes"}),
        spec=replace(
            node.spec,
            unschedulable=not node.spec.unschedulable,
            taints=(*node.spec.taints, Taint(key="moorage.io/changed", effect="NoSchedule")),
        ),
        status=replace(node.status, allocatable=room, images=images),
    )


def _added_pods(nodes: Sequence[Node]) -> list[Pod]:
    return [
        make_pod(
            f"newcomer-on-{node.name}",
            on=node.name,
            labels={"app": "a"},
            containers=[_OTHER_CONTAINER],
        )
        for node in nodes
    ]


def _unequal_to_equals(trial: Trial) -> Iterator[str]:
    """Whether equal scores are equal after normalising, since equal nodes may be evaluated only once."""
    stage, pod = trial.stage, trial.pod
    if not stage.has("normalize_score"):
        return
    begun = begin(stage, pod)
    nodes = stage.nodes
    if not prepare_scoring(stage, begun.cycle, pod, nodes):
        return
    raw = raw_scores(stage, begun.cycle, pod, nodes)
    normalised = np.asarray(stage.call("normalize_score", begun.cycle, pod, nodes, raw.copy()))
    for score in np.unique(raw):
        if len(set(normalised[raw == score].tolist())) > 1:
            yield f"nodes that all score {score} are made unequal by normalize_score"
            return


_OTHER_CONTAINER = {
    "name": "other",
    "image": "registry.example.com/other:1",
    "ports": [{"containerPort": 80, "hostPort": 80}],
    "resources": {"requests": {"cpu": "100m", "memory": "100Mi"}},
}

CHECKS = (
    Check(
        "depends-on-is-true",
        "What depends_on does not name has no influence on the answers: they are cached.",
        _untrue,
        ("depends_on",),
    ),
)
