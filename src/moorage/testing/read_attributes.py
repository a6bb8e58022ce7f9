"""Finds out which labels and annotations of nodes and pods a plugin reads.

No generated object would have a label that only the plugin uses, and all its results would be equal. So it is
called once with objects that record which keys are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from moorage.api.base import Object
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.cluster.label_columns import LabelColumn, LabelColumns
from moorage.framework.interface.status import PluginError
from moorage.testing.clusters import Extras, Values, standard_clusters
from moorage.testing.plugin_answers import ask
from moorage.testing.stage import Recipe

T = TypeVar("T", bound=Object)

_LIKELY: Final = ("1", "7", "60", "true", "x", "", None, None)
"""Likely values of such a label: a number, a word, empty, absent."""


class _RecordingDict(dict[str, str]):
    """Labels that record which keys are read."""

    def __init__(self, content: Mapping[str, str], asked: set[str]) -> None:
        super().__init__(content)
        self._asked = asked

    def __getitem__(self, key: str) -> str:
        self._asked.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self._asked.add(key)
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        if isinstance(key, str):
            self._asked.add(key)
        return super().__contains__(key)


class _RecordingColumns(LabelColumns):
    """Columns of node labels that record which keys are read, including keys that no node has."""

    def __init__(self, columns: LabelColumns, asked: set[str]) -> None:
        super().__init__()
        vars(self).update(vars(columns))
        self._asked = asked

    def column(self, key: str, nodes: Sequence[Node]) -> LabelColumn:
        self._asked.add(key)
        return super().column(key, nodes)


@dataclass(slots=True)
class _ReadKeys:
    node_labels: set[str] = field(default_factory=set)
    node_annotations: set[str] = field(default_factory=set)
    pod_labels: set[str] = field(default_factory=set)
    pod_annotations: set[str] = field(default_factory=set)

    def recording(self, obj: T) -> T:
        """The same object; if it is a node or a pod, a copy that records reads."""
        if isinstance(obj, Node):
            labels, annotations = self.node_labels, self.node_annotations
        elif isinstance(obj, Pod):
            labels, annotations = self.pod_labels, self.pod_annotations
        else:
            return obj
        meta = obj.metadata
        listening = replace(
            meta,
            labels=_RecordingDict(meta.labels, labels),
            annotations=_RecordingDict(meta.annotations, annotations),
        )
        return replace(obj, metadata=listening)


def learn_extras(recipe: Recipe) -> Extras:
    """The labels and annotations that a plugin reads, with possible values."""
    asked = _ReadKeys()
    clusters = standard_clusters()[1:3]
    for cluster in clusters:
        stage = recipe.stage([asked.recording(each) for each in cluster.objects])
        snapshot = stage.cache.snapshot()
        snapshot.labels = _RecordingColumns(snapshot.labels, asked.node_labels)
        for pod in cluster.pods:
            try:
                ask(stage, asked.recording(pod))
            except PluginError:
                continue  # The checks report what is wrong.
    values = (*_LIKELY, *_texts(recipe.args))
    objects = [each for cluster in clusters for each in (*cluster.objects, *cluster.pods)]
    return Extras(
        _with_values(asked.node_labels - _labels(objects, Node), values),
        _with_values(asked.node_annotations, values),
        _with_values(asked.pod_labels - _labels(objects, Pod), values),
        _with_values(asked.pod_annotations, values),
    )


def _labels(objects: Iterable[Object], kind: type[Object]) -> set[str]:
    """The labels that objects of a kind already have."""
    return {key for each in objects if isinstance(each, kind) for key in each.labels}


def _with_values(keys: Iterable[str], values: Sequence[str | None]) -> Mapping[str, Values]:
    return dict.fromkeys(sorted(keys), values)


def _texts(args: Any) -> list[str]:
    """The strings in a plugin's arguments, which are likely values of its labels."""
    if isinstance(args, str):
        return [args]
    if isinstance(args, Mapping):
        return [text for value in args.values() for text in _texts(value)]
    if isinstance(args, list | tuple):
        return [text for value in args for text in _texts(value)]
    return []
