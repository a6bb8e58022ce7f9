"""One plugin's answers that equivalence classes share: pods differ, but not in what the plugin reads of them.

A plugin declares what it reads (`DependsOn.reads`): TaintToleration the pod's tolerations, which are equal in
most templates. Its answers for all nodes are computed once, and again when a node has changed. They are kept
only where they do not depend on the pods on a node: those change with every pod that is placed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.cluster.snapshot import Snapshot
from moorage.framework.interface.cycle_state import CycleState, StateKey
from moorage.framework.interface.dependencies import DependsOn
from moorage.framework.interface.extension_points import Plugin, Scores, is_uniform, uniform_scores
from moorage.framework.interface.filter_result import ALL, FilterResult
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import SUCCESS, Code, PluginError, Status
from moorage.framework.runtime.plan import ProfileCalls
from moorage.framework.runtime.plugin_call import PluginCall

_MAX_ANSWERS: Final = 16_384
_MAX_BYTES: Final = 32 << 20
"""Maximum size of all answers: arrays, except those with one value for all nodes, and parts of pods."""
_BYTES_PER_CHARACTER: Final = 16
"""Size of the parts of a pod that a plugin reads, and parses, for each character of their text."""
_NEVER: Final = -1
_ONE_ROW: Final = np.zeros(1, np.intp)


@dataclass(slots=True, eq=False)
class NodeScores:
    """One plugin's score of every node, before normalising."""

    depends_on: DependsOn
    raw: Scores
    normalizes: bool
    constant: int | None = None
    """The normalised and weighted score of every node, if it is certain to be the same everywhere."""

    def find_constant(
        self, call: PluginCall, plugin: Plugin, cycle: CycleState, pod: Pod, snapshot: Snapshot
    ) -> None:
        """Determine whether all nodes have the same score."""
        raw = self.raw
        self.constant = None
        if len(raw) and (is_uniform(raw) or (raw == raw[0]).all()):
            one = Nodes(snapshot, _ONE_ROW)
            self.constant = int(call.weighted(plugin, cycle, pod, one, raw[:1])[0])


def normalizes(plugin: Plugin) -> bool:
    """Whether a plugin's scores depend on which nodes are feasible."""
    return getattr(plugin, "normalize_score", None) is not None


class PluginPreparation:
    """What a plugin answered in pre_filter and pre_score, and the cycle state that it wrote there."""

    __slots__ = ("is_cached", "skips_filter", "skips_score", "state", "written")

    def __init__(self, state: CycleState) -> None:
        self.state = state
        self.written: AbstractSet[StateKey[Any]] = frozenset()
        """The keys of the state that the plugin wrote in pre_filter."""
        self.is_cached = True
        """Whether the answer is the same for all nodes; if not, the plugin is called for every pod."""
        self.skips_filter = self.skips_score = False

    def pre_filter(self, call: PluginCall, pod: Pod, nodes: Nodes) -> None:
        """Run the plugin's pre_filter."""
        before = self.state.keys()
        answer = call(self.state, pod, nodes)
        self.written = self.state.keys() - before
        if isinstance(answer, Status) and answer.code is Code.SKIP:
            self.skips_filter = True
        elif answer is not None and answer != SUCCESS:
            self.is_cached = False  # It narrows the search, or rejects.

    def pre_score(self, call: PluginCall, pod: Pod, nodes: Nodes) -> None:
        """Run the plugin's pre_score."""
        if self.is_cached:
            self.skips_score = call.skips(self.state, pod, nodes)


class PluginAnswers:
    """A plugin's answers for all pods of which it reads the same, over one snapshot as it moves."""

    __slots__ = (
        "_filter_result",
        "_filter_seen",
        "_images_seen",
        "_plugin",
        "_reads_bytes",
        "_scores",
        "_scores_seen",
        "_versions",
        "depends_on",
        "preparation",
        "snapshot",
    )

    def __init__(self, plugin: Plugin, depends_on: DependsOn, snapshot: Snapshot) -> None:
        self._plugin = plugin
        self.depends_on = depends_on
        self.snapshot = snapshot
        self.preparation = PluginPreparation(CycleState())
        self._versions = versions_of(depends_on.tables, snapshot)
        self._reads_bytes = _BYTES_PER_CHARACTER * len(repr(depends_on.reads))
        self._filter_result = ALL
        self._scores: NodeScores | None = None
        self._filter_seen = self._scores_seen = self._images_seen = _NEVER

    @property
    def size_bytes(self) -> int:
        """The size of the arrays, and of the parts of pods that are read."""
        codes, scores = self._filter_result.codes, self._scores
        codes_bytes = 0 if codes is None else codes.nbytes
        scores_bytes = 0 if scores is None or scores.constant is not None else scores.raw.nbytes
        return self._reads_bytes + codes_bytes + scores_bytes

    def hold(self, depends_on: DependsOn, snapshot: Snapshot) -> bool:
        """Whether the answers are for that snapshot, and nothing relevant outside its rows has changed."""
        return (
            self.snapshot is snapshot
            and (self.depends_on is depends_on or self.depends_on == depends_on)
            and (not depends_on.tables or self._versions == versions_of(depends_on.tables, snapshot))
        )

    def filter(self, call: PluginCall, cycle: CycleState, pod: Pod) -> FilterResult:
        """The filter results of all nodes."""
        position = self.snapshot.node_changes.position
        if position != self._filter_seen:
            result = call.filter(cycle, pod, Nodes(self.snapshot))
            self._filter_result = ALL if result.codes is None or not result.codes.any() else result
            self._filter_seen = position
        return self._filter_result

    def score(self, call: PluginCall, cycle: CycleState, pod: Pod) -> NodeScores:
        """The scores of all nodes."""
        snapshot, position = self.snapshot, self.snapshot.node_changes.position
        images = snapshot.images.version if self.depends_on.images else _NEVER
        scores = self._scores
        if scores is None or position != self._scores_seen or images != self._images_seen:
            raw = call.score(cycle, pod, Nodes(snapshot)).astype(np.int64, copy=False)
            scores = self._scores = NodeScores(self.depends_on, raw, normalizes(self._plugin))
            scores.find_constant(call, self._plugin, cycle, pod, snapshot)
            if scores.constant is not None:
                scores.raw = uniform_scores(int(raw[0]), len(raw))
            self._scores_seen, self._images_seen = position, images
        return scores


def versions_of(tables: tuple[type[Object], ...], snapshot: Snapshot) -> list[int]:
    """The versions of the tables of a snapshot's other objects."""
    return [snapshot.objects.of(table).version for table in tables]


class SharedAnswers:
    """The most recently used shared answers of a profile's plugins."""

    def __init__(self, profile: ProfileCalls, plugins: Mapping[str, Plugin]) -> None:
        self._pre_filters = {call.plugin: call for call in profile.by_method["pre_filter"]}
        self._pre_scores = {call.plugin: call for call in profile.by_method["pre_score"]}
        self._plugins = plugins
        self._known: OrderedDict[tuple[str, object], PluginAnswers] = OrderedDict()
        self._recent: dict[str, PluginAnswers] = {}
        """The answers of each plugin that were used last."""
        self._uncounted = 0
        """Answers that were made since the last time their sizes were added up."""

    def of(
        self, plugin: str, depends_on: DependsOn, pod: Pod, snapshot: Snapshot, *, is_sampled: bool
    ) -> PluginAnswers:
        """A plugin's answers for the pods of which it reads the same as of this one."""
        recent = self._recent.get(plugin)
        # Plugins return the same object for all pods of which they read nothing.
        if recent is not None and recent.depends_on is depends_on and recent.hold(depends_on, snapshot):
            return recent
        key = (plugin, depends_on.reads)
        try:
            known = self._known.get(key)
        except TypeError as error:
            reason = f"returned reads that cannot be hashed: {error}"
            raise PluginError(plugin, "depends_on", reason) from None
        if known is None or not known.hold(depends_on, snapshot):
            known = self._known[key] = self._make(plugin, depends_on, pod, snapshot, is_sampled=is_sampled)
            self._make_room()
        else:
            self._known.move_to_end(key)
        self._recent[plugin] = known
        return known

    def _make(
        self, plugin: str, depends_on: DependsOn, pod: Pod, snapshot: Snapshot, *, is_sampled: bool
    ) -> PluginAnswers:
        made = PluginAnswers(self._plugins[plugin], depends_on, snapshot)
        made.preparation.state.is_sampled = is_sampled
        everywhere = Nodes(snapshot)
        if call := self._pre_filters.get(plugin):
            made.preparation.pre_filter(call, pod, everywhere)
        if call := self._pre_scores.get(plugin):
            made.preparation.pre_score(call, pod, everywhere)
        return made

    def _make_room(self) -> None:
        """Evict the least recently used answers beyond the limits."""
        self._uncounted += 1
        if self._uncounted > len(self._known) // 8:  # Arrays are made later than answers.
            self._uncounted = 0
            excess = sum(each.size_bytes for each in self._known.values()) - _MAX_BYTES
            while excess > 0 and len(self._known) > 1:
                excess -= self._known.popitem(last=False)[1].size_bytes
        while len(self._known) > _MAX_ANSWERS:
            self._known.popitem(last=False)
