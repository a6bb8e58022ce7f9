"""One question of many: a plugin, a cluster, and a pod that waits there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.testing.clusters import Cluster
from moorage.testing.stage import Stage

Find = Callable[["Trial"], Iterator[str]]
"""What is wrong with a plugin, in sentences; nothing if all is well."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A plugin that is asked about a pod in a cluster.

    stage: shared by the pods of a cluster, so its plugin has been asked before. Who changes anything makes a
        stage of its own.
    twins: stages with other objects, shared in the same way, by what is otherwise there.
    """

    stage: Stage
    cluster: Cluster
    pod: Pod
    twins: dict[str, Stage] = field(default_factory=dict)

    def fresh(self) -> Stage:
        """A new plugin in a new cluster with the same objects."""
        return self.stage.recipe.stage(self.cluster.objects)

    def twin(self, difference: str, objects: Sequence[Object]) -> Stage:
        """The same plugin in a cluster with other objects; made once for every difference."""
        if difference not in self.twins:
            self.twins[difference] = self.stage.recipe.stage(objects)
        return self.twins[difference]

    @property
    def where(self) -> str:
        """Which pod, and in which cluster."""
        return f"pod {self.pod.name}, cluster {self.cluster.name!r}"


@dataclass(frozen=True, slots=True)
class Check:
    """A rule for plugins: its name, the rule as a sentence, whom it concerns, and how breaches are found.

    methods: it concerns plugins that have any of these; none named: all plugins.
    once: it is about the plugin, not about its answers for pods; one trial is enough.
    """

    name: str
    sentence: str
    find: Find
    methods: tuple[str, ...] = ()
    once: bool = False

    def concerns(self, stage: Stage) -> bool:
        """Whether a plugin has what this rule is about."""
        return not self.methods or any(map(stage.has, self.methods))
