"""One test case of the checks: a plugin, a cluster, and a pending pod."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.testing.clusters import Cluster
from moorage.testing.stage import Stage

Find = Callable[["Trial"], Iterator[str]]
"""Yields a sentence for each violation by a plugin."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A plugin that is called for a pod in a cluster.

    stage: shared by the pods of a cluster, so its plugin has been called before. Checks that change anything
        create their own stage.
    twins: stages with other objects, shared in the same way, by their difference.
    """

    stage: Stage
    cluster: Cluster
    pod: Pod
    twins: dict[str, Stage] = field(default_factory=dict)

    def fresh(self) -> Stage:
        """A new plugin in a new cluster with the same objects."""
        return self.stage.recipe.stage(self.cluster.objects)

    def twin(self, difference: str, objects: Sequence[Object]) -> Stage:
        """The same plugin in a cluster with other objects; created once for every difference."""
        if difference not in self.twins:
            self.twins[difference] = self.stage.recipe.stage(objects)
        return self.twins[difference]

    @property
    def where(self) -> str:
        """The pod and the cluster, as text."""
        return f"pod {self.pod.name}, cluster {self.cluster.name!r}"


@dataclass(frozen=True, slots=True)
class Check:
    """A rule for plugins: its name, the rule as a sentence, which plugins it applies to, and how to check it.

    methods: it applies to plugins that have any of these; if empty, to all plugins.
    once: it checks the plugin, not its results for pods; one trial is enough.
    """

    name: str
    sentence: str
    find: Find
    methods: tuple[str, ...] = ()
    once: bool = False

    def concerns(self, stage: Stage) -> bool:
        """Whether the rule applies to a plugin."""
        return not self.methods or any(map(stage.has, self.methods))
