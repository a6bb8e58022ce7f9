"""Trials: the pod evaluated in the changed cluster, which is put back as it was afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from moorage.api.base import Object
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.cluster.cache import Cache
from moorage.explain.evaluation import all_refusals
from moorage.explain.help.change import Change, Situation
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import PluginError
from moorage.framework.runtime.framework import Framework


class Trials:
    """Evaluates changes for one pod in a cluster."""

    def __init__(self, framework: Framework, cache: Cache, pod: Pod) -> None:
        self._framework = framework
        self._cache = cache
        self._pod = pod

    def opened(self, changes: Iterable[Change]) -> list[str]:
        """The nodes that pass all filters after some changes."""
        situation = self._after(changes)
        with self.applied(situation):
            return self._feasible(situation.pod)

    def _after(self, changes: Iterable[Change]) -> Situation:
        situation = Situation(self._pod)
        for change in changes:
            situation = change.apply(situation)
        return situation

    def refusing(self, changes: Iterable[Change], node: str) -> set[str]:
        """The plugins that reject a node after some changes."""
        situation = self._after(changes)
        with self.applied(situation):
            nodes = Nodes(self._cache.snapshot()).named([node])
            refusals = all_refusals(self._framework, situation.pod, nodes)
        return refusals.cluster_wide_plugins | {each.plugin for each in refusals.by_filter}

    def _feasible(self, pod: Pod) -> list[str]:
        nodes = Nodes(self._cache.snapshot())
        cycle, diagnosis = CycleState(), Diagnosis(len(nodes))
        try:
            candidates = self._framework.pre_filter(cycle, pod, nodes, diagnosis)
            if candidates is None:
                return []
            return self._framework.filter(cycle, pod, candidates, diagnosis).names
        except PluginError:
            return []

    @contextmanager
    def applied(self, situation: Situation) -> Iterator[None]:
        """The cluster with the changes of a situation."""
        before = {key: self._known(item) for key, item in situation.put.items()}
        for item in situation.removed.values():
            self._cache.remove(item)
        for item in situation.put.values():
            self._cache.put(item)
        try:
            yield
        finally:
            for key, item in reversed(list(situation.put.items())):
                original = before[key]
                if original is None:
                    self._cache.remove(item)
                else:
                    self._cache.put(original)
            for item in situation.removed.values():
                self._cache.put(item)
            self._cache.snapshot()

    def _known(self, item: Object) -> Object | None:
        """The object of the same name in the cluster as it is."""
        if isinstance(item, Node):
            return self._cache.node(item.name)
        if isinstance(item, Pod):
            return self._cache.pod(item.uid)
        return self._cache.objects.of(type(item)).get(item.namespace, item.name)
