"""The extension points: when each is called, what each answer does, what it may change.

A plugin is any object with a `name` and one or more of these methods; there is nothing to inherit from. The
order of the points here is the order of a pod's life. Unless said otherwise a method is called in the
scheduling cycle, must not wait for anything, and must not change the pod or the snapshot: equal input gives
equal answers. An exception fails this pod's attempt, with the plugin's name, and nothing else; so does an
answer `Status(Code.ERROR, ("why",))`, at every point, also in the place of a filter result or of scores.

The binding cycle (`pre_bind`, `bind`, `post_bind`) may wait. An async method runs on the scheduler's loop,
where nothing else runs until it waits. An ordinary method of a plugin from outside runs in a thread, and may
block: other pods are scheduled and bound meanwhile. There are 64 such threads; when all are in use, further
pods wait. In a thread a plugin may use the pod, its cycle state, and the members of the handle that `Handle`
lists as safe; it must lock its own shared state. The scheduler does not wait for threads beyond its grace
period at shutdown. Simulations call both kinds of methods one after the other, without threads.

Which plugins run for a pod is in its plan (`framework.runtime.plan`). A plugin is left out where it is not
enabled, where its `pre_filter` or `pre_score` answers SKIP, where `skips_pod` is True, and, once the pod has
a node, where `depends_on` has `runs_after_filter=False`. Its filter results and scores are cached for the
next pods of the equivalence class if it has `depends_on`, which determines how long they are valid.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any, Final, Protocol, runtime_checkable

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.client.kinds import Kind
from moorage.client.permissions import Permission
from moorage.cluster.object_tables import Objects
from moorage.cluster.pod_table import PodInfo
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.dependencies import DependsOn
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.framework.interface.effects import Effect
from moorage.framework.interface.filter_result import FilterResult, Reason
from moorage.framework.interface.nodes import Nodes, NodeView
from moorage.framework.interface.pod_groups import (
    GroupDryRun,
    Placement,
    PlacementAssignments,
    PlacementProgress,
    PodGroupInfo,
    PodGroupPostFilterResult,
)
from moorage.framework.interface.status import SKIP, SUCCESS, Status, point_name
from moorage.queue.cluster_events import Interest
from moorage.queue.queued_pod import QueuedPod

MIN_SCORE, MAX_SCORE = 0, 100

Scores = NDArray[np.int64]


@lru_cache(maxsize=64)
def uniform_scores(score: int, count: int) -> Scores:
    """The same score for all nodes, stored once; read-only."""
    scores: Scores = np.ndarray((count,), np.int64, np.array([score], np.int64).data, 0, (0,))
    scores.flags.writeable = False
    return scores


def is_uniform(scores: Scores) -> bool:
    """Whether scores are stored as one number; false for an array of equal numbers."""
    return scores.strides == (0,)


class Plugin(Protocol):
    """What every plugin has: the name used in configurations and error messages."""

    name: str


@runtime_checkable
class PreEnqueuePlugin(Protocol):
    """Decides whether a pod may enter the active queue at all."""

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Called before a pod enters the active or the backoff queue; must be cheap.

        None lets it in. A rejected pod is gated until an event that the plugin registered; no condition and
        no event is written for it.
        """


@runtime_checkable
class QueueSortPlugin(Protocol):
    """Orders the active queue; exactly one plugin, the same in every profile."""

    def queue_sort(self, queued: QueuedPod) -> Any:
        """The pod's sort key: pods with smaller keys are scheduled first. Keys must be comparable.

        It must not change while the pod waits, except with the pod itself: it is computed when the pod enters
        the active queue or backoff, and when the pod is updated. For an order that changes, see
        `SubQueuesPlugin`.
        """


@runtime_checkable
class SubQueuesPlugin(Protocol):
    """A queue sort whose order changes while pods wait: it is that of sub-queues, evaluated before each pop.

    Pods are in sub-queues, such as one for each team, and `queue_sort` is the order inside each. The pod that
    is popped next is the first one of the sub-queue with the smallest key. The same holds for pods that are
    popped from backoff early, where the ends of their backoff come before `queue_sort`.

    The queue has a copy of each key, and computes it again for sub-queues that the plugin names: a pop takes
    time for the logarithm of the number of sub-queues, and for the keys that have changed.
    """

    def sub_queue(self, queued: QueuedPod) -> Hashable:
        """The sub-queue that a pod belongs to; called when the pod is queued, and when it is updated.

        A group of pods is one entry, with the member that stands for it.
        """

    def sub_queue_sort(self, sub_queue: Any, first: QueuedPod) -> Any:
        """The key of a sub-queue, given its first pod: smaller keys come first. Keys must be comparable.

        Called when another pod becomes the first, and when `changed_sub_queues` names the sub-queue; until
        then, the key must not change.
        """

    def changed_sub_queues(
        self, firsts: Mapping[Any, QueuedPod], popped: Any, failed: bool
    ) -> Iterable[Hashable] | None:
        """The sub-queues whose keys may have changed since the last call; None: all of them.

        Called before a pod is popped. firsts: the first pods of all sub-queues that have any; the pod is one
        of them. popped: the sub-queue of the pod that was popped before; None if there was none since the
        last call. failed: whether its attempt has failed; else the pod is on its node already.
        """


@runtime_checkable
class EventsPlugin(Protocol):
    """Registers the events that may make the pods it rejected schedulable."""

    def events(self) -> Iterable[Interest]:
        """Called once, at the start. Made of `on(kind of object, what happens to it, hint)`.

        A pod that this plugin rejected (in pre_enqueue, pre_filter, filter, reserve or permit) waits until
        one of these events happens and its hint, if it has one, returns that the event may help that pod.
        With no events, the pod is requeued only by other plugins' events, or after a time. A plugin that
        rejects pods without this method is registered for all events, which causes useless attempts. A
        pod's own updates are events, too.

        A hint is called with the pod, the object before (None: it was added) and the object after (None: it
        was deleted), for each waiting pod, and must be fast; with `per_equivalence_class=True` it is called
        once for all pods that have namespace, labels, spec and managing owner in common, and with an
        `index` only where an event can concern them. The tables of other objects contain the change already.
        A hint that raises requeues the pod.
        """


@runtime_checkable
class CatchUpPlugin(Protocol):
    """Keeps something about the whole cluster up to date, which would delay a cycle if much has changed."""

    def catch_up(self, nodes: Nodes) -> None:
        """Called between cycles, before the first one and twice a second, with every node of the cluster.

        Must be fast where nothing has changed. What the next cycle reads may have changed since this call,
        so the plugin has to look for changes then, too. It is not called in simulations, where no pod waits
        in real time. An exception is logged.
        """


@runtime_checkable
class WatchingPlugin(Protocol):
    """Declares which objects it reads: the scheduler has informers for these, and a role allows no others."""

    watched_kinds: tuple[Kind, ...]
    """The kinds of `moorage.kinds` beside nodes and pods.

    A plugin without this attribute may read all kinds that default plugins read in every emulated version.
    """


@runtime_checkable
class ListingPlugin(Protocol):
    """Declares which objects it lists by itself, as they cannot be watched: a role allows to list them."""

    listed_kinds: tuple[Kind, ...]
    """The kinds, each of `declare_kind`.

    The scheduler has no informers for them: the plugin reads them (`Handle.every`), and says when they have
    changed (`Handle.announce`). Simulations of a cluster and `moorage explain` read them once, like watched
    kinds.
    """


@runtime_checkable
class WritingPlugin(Protocol):
    """Declares what it writes to the API server: a role allows this, and no other writes."""

    write_permissions: Mapping[str, tuple[Permission, ...]]
    """The permissions that each of its extension points needs, such as
    `{"pre_bind": Permission.on(kinds.PERSISTENT_VOLUME, "patch")}`.

    A plugin without this attribute may evict pods in post_filter and bind them in bind.
    """


@runtime_checkable
class ReplacingPlugin(Protocol):
    """Does the work of other plugins in its own way, so that it cannot run beside them."""

    replaces: Mapping[str, tuple[str, ...]]
    """Their names by extension point; a profile that has both plugins there is refused."""


@runtime_checkable
class PreFilterPlugin(Protocol):
    """Looks at the pod and at the cluster as a whole before nodes are filtered."""

    def pre_filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | AbstractSet[str] | None:
        """Called once per attempt, with every node of the cluster.

        None goes on. SKIP leaves this plugin's `filter` out. A set of node names narrows the search to
        them; the sets of several plugins are intersected. A refusal ends the attempt for all nodes:
        `unresolvable` at once, `unschedulable` after the other pre-filters have run, because preemption may
        follow and needs their state.
        """


@runtime_checkable
class PodChangePlugin(Protocol):
    """A pre-filter whose state depends on the pods on nodes and can be updated when they change.

    Both methods change only this plugin's own cycle state, and undo each other exactly.
    """

    def add_pod(self, cycle: CycleState, pod: Pod, added: PodInfo, node: NodeView) -> None:
        """`added` is assumed to be on `node`: a nominated pod, or a reprieved victim."""

    def remove_pod(self, cycle: CycleState, pod: Pod, removed: PodInfo, node: NodeView) -> None:
        """`removed` is assumed to be gone from `node`: a victim of preemption."""


@runtime_checkable
class FilterPlugin(Protocol):
    """Determines which nodes can run the pod."""

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> FilterResult:
        """Called with the nodes that every filter before this one let pass.

        Returns ALL, or a result with one code per node. Must also work when this plugin's `pre_filter`
        is switched off.
        """


@runtime_checkable
class FilterNodePlugin(Protocol):
    """The one-node-at-a-time form of a filter; the framework does the loop."""

    def filter_node(self, cycle: CycleState, pod: Pod, node: NodeView) -> Status | Reason | str | None:
        """None passes; a text, `unschedulable(...)`, `unresolvable(...)` or a `Reason` rejects.

        With `filter` besides, this form is used for a few nodes: both must give equal answers.
        """


@runtime_checkable
class PostFilterPlugin(Protocol):
    """Tries to make room when no node passed."""

    def post_filter(
        self, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis
    ) -> PostFilterResult | Status | Awaitable[PostFilterResult | Status]:
        """Called in order until one succeeds; the messages of the others are joined into the pod's message.

        A successful result ends the search. `unschedulable` asks the next plugin, `unresolvable` ends it. An
        awaitable is allowed only where the profile has extenders: no other cycle waits.
        """


class PostFilterResult(msgspec.Struct, frozen=True):
    """The result of a post-filter.

    status: SUCCESS ends the search for room; a refusal asks the next plugin, as a bare Status does.
    nominated_node: the node being freed for the pod; "" clears an earlier nomination, None leaves it.
    effects: the effects to perform, in order; they may go on after the cycle has ended.
    done: to be called when the effects have been performed, or have failed.
    tied: the nodes that rank equally, with the pods to evict there; computed on demand.
    """

    status: Status = SUCCESS
    nominated_node: str | None = None
    effects: tuple[Effect, ...] = ()
    done: Callable[[], None] = lambda: None
    tied: Callable[[], Mapping[str, tuple[Pod, ...]]] = dict


@runtime_checkable
class PreScorePlugin(Protocol):
    """Prepares scoring."""

    def pre_score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """Called once with the feasible nodes, if there are two or more. SKIP leaves `score` out."""


@runtime_checkable
class ScorePlugin(Protocol):
    """Scores the feasible nodes."""

    def score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Scores:
        """One integer per feasible node: 0 to 100, or anything if the plugin has `normalize_score`."""


@runtime_checkable
class ScoreNodePlugin(Protocol):
    """The one-node-at-a-time form of a score; the framework does the loop."""

    def score_node(self, cycle: CycleState, pod: Pod, node: NodeView) -> int:
        """This node's score."""


@runtime_checkable
class NormalizeScorePlugin(Protocol):
    """Brings its own raw scores into bounds."""

    def normalize_score(self, cycle: CycleState, pod: Pod, nodes: Nodes, scores: Scores) -> Scores:
        """Called with the result of `score`; returns integers from 0 to 100."""


@runtime_checkable
class ReservePlugin(Protocol):
    """Tracks the resources that assumed pods take."""

    def reserve(self, cycle: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Called when the pod has been assumed on a node. A refusal un-reserves all plugins."""

    def unreserve(self, cycle: CycleState, pod: Pod, node_name: str) -> None:
        """Called in reverse order of all plugins after any later failure, also where `reserve` was not
        reached or failed: must be idempotent and must not raise.
        """


@runtime_checkable
class PermitPlugin(Protocol):
    """May hold or stop a pod that has a node."""

    def permit(self, cycle: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Last in the scheduling cycle. None permits, a refusal stops, `wait(seconds)` holds the pod until
        every plugin that asked to wait allows it, one rejects it, or the shortest of their time-outs ends.
        """


@runtime_checkable
class PlacementGeneratePlugin(Protocol):
    """Decides among which sets of nodes a group of pods may run."""

    def placement_generate(
        self, cycle: CycleState, group: PodGroupInfo, nodes: Nodes
    ) -> Iterable[Placement] | Status:
        """Called once in a group's cycle, with the nodes that it may use. No placement: it cannot run.

        At most one plugin of a profile may do this. Without any, the only placement is all nodes.
        """


@runtime_checkable
class PlacementFeasiblePlugin(Protocol):
    """Judges whether a group can run in a placement, while its members get their nodes."""

    def placement_feasible(
        self, cycle: CycleState, group: PodGroupInfo, progress: PlacementProgress
    ) -> Status | None:
        """Called before the first part of a group is tried, and after each.

        None: the group can run as it is; the parts left are tried all the same. `wait(0, reason)`: not yet.
        `unschedulable(reason)`: it cannot run here, whatever becomes of the parts left.
        """


@runtime_checkable
class PlacementScorePlugin(Protocol):
    """Scores the feasible placements of a group."""

    def placement_score(
        self, cycle: CycleState, group: PodGroupInfo, placements: Sequence[PlacementAssignments]
    ) -> Scores:
        """One integer per placement: 0 to 100, or anything with `normalize_placement_score`.

        Called if there are two feasible placements or more.
        """


@runtime_checkable
class NormalizePlacementScorePlugin(Protocol):
    """Brings its own raw scores of placements into bounds."""

    def normalize_placement_score(self, cycle: CycleState, group: PodGroupInfo, scores: Scores) -> Scores:
        """Called with the result of `placement_score`; returns integers from 0 to 100."""


@runtime_checkable
class PodGroupPostFilterPlugin(Protocol):
    """Tries to make room when a group could not be scheduled."""

    def pod_group_post_filter(
        self, cycle: CycleState, group: PodGroupInfo, dry_run: GroupDryRun
    ) -> PodGroupPostFilterResult | Status | Awaitable[PodGroupPostFilterResult | Status]:
        """Called in order until one succeeds; the messages of the others are joined into the group's.

        May be async, to wait for the dry run, and for nothing else.
        """


@runtime_checkable
class PreBindPlugin(Protocol):
    """Does what must be done before the pod is bound, such as binding its volumes."""

    def pre_bind(
        self, cycle: CycleState, pod: Pod, node_name: str
    ) -> Status | Awaitable[Status | None] | None:
        """Called in the binding cycle, beside other pods'; may be async, or block. Failure un-reserves.

        If the pod has to make room for another or is deleted meanwhile, an async method is cancelled
        (`asyncio.CancelledError`). One that blocks is not interrupted: `unreserve` waits until it returns,
        and what it returns does not count. It can ask `handle.pre_binding.is_stopped(pod.uid)`.
        """


@runtime_checkable
class PreBindPreFlightPlugin(Protocol):
    """A pre-bind plugin that can determine, without waiting, whether it has anything to do."""

    def pre_bind_pre_flight(self, cycle: CycleState, pod: Pod, node_name: str) -> Status | PreFlight | None:
        """Called at the beginning of the binding cycle. SKIP leaves this plugin's `pre_bind` out.

        None: there is something to do; the pod's node is written into its status before that. A plugin
        without this method is assumed to have something to do for every pod. A `PreFlight` also determines
        whether the plugins before and after this one may pre-bind at the same time.
        """


@runtime_checkable
class BindPlugin(Protocol):
    """Binds the pod."""

    def bind(self, cycle: CycleState, pod: Pod, node_name: str) -> Status | Awaitable[Status | None] | None:
        """Called in order until one does not answer SKIP; may be async, or block."""


@runtime_checkable
class PostBindPlugin(Protocol):
    """Is notified when the pod is bound."""

    def post_bind(self, cycle: CycleState, pod: Pod, node_name: str) -> Awaitable[None] | None:
        """Called after the pod is bound; nothing can fail any more. May be async, or block."""


@dataclass(frozen=True, slots=True)
class PreFlight:
    """The result of a pre-flight of a pre-bind plugin.

    status: None if it has something to do, SKIP if not.
    in_parallel: whether its neighbours may run at the same time; False separates them, even if skipped.
    """

    status: Status | None = None
    in_parallel: bool = False


IN_PARALLEL: Final = PreFlight(None, in_parallel=True)
"""There is something to do, and other plugins may run at the same time."""
SKIP_IN_PARALLEL: Final = PreFlight(SKIP, in_parallel=True)
"""There is nothing to do, and the plugins before and after may run at the same time."""


@runtime_checkable
class DependsOnPlugin(Protocol):
    """A plugin whose answers can be kept in the result cache."""

    def depends_on(self, pod: Pod, objects: Objects) -> DependsOn | None:
        """What this plugin's answers for a pod depend on; None: on more than can be declared here.

        Called once for all pods of an equivalence class, and again when a declared table has changed.
        Plugins from outside run for every pod with volume claims, since pods of a class may differ in those.

        It applies to `pre_filter`, `filter`, `pre_score` and `score`, which may depend on nothing else: not
        on which nodes they are called with, on the time, or on earlier calls. A `normalize_score` may only
        read the scores, and nodes of equal scores must stay equal. Where `runs_after_filter` is False,
        `reserve`, `unreserve`, `pre_bind_pre_flight` and `pre_bind` are left out for pods of the class.
        """


@runtime_checkable
class SkipsPodPlugin(Protocol):
    """A plugin that skips most pods, and detects these without reading nodes."""

    def skips_pod(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> bool:
        """Whether it is certain that `pre_filter` and `pre_score` would both answer SKIP for this pod.

        Called first in a cycle, with every node of the cluster, for pods that have an equivalence class,
        where the plugin is enabled at both points; if True, both are left out, with `filter` and `score`. It
        should use results of earlier pods of the class, and cost next to nothing.
        """


@runtime_checkable
class FiltersByNodePlugin(Protocol):
    """A plugin that counts pods on other nodes, and may know that those that come and go do not matter."""

    def filters_by_node(self, cycle: CycleState, pod: Pod, nodes: Nodes, moving: Sequence[PodInfo]) -> bool:
        """Whether a node's answer depends on some pods only where they are on that node.

        Called where a group makes room, for members whose answers are not declared by `depends_on`, after
        `pre_filter` and with every node of the cluster. moving: the pods that are removed from nodes and put
        back, and the group's members. If True, a node is filtered again only when a pod moved there.
        """


@dataclass(frozen=True)
class ExtensionPoint:
    """An extension point.

    name: as configuration (in camel case) and Python name it.
    protocols: the methods any of which puts a plugin there. optional: further methods of such a plugin.
    may_wait: whether its method may be async, or block.
    of_groups: whether its method is called for a group of pods, not for a pod.
    """

    name: str
    protocols: tuple[type[Any], ...]
    optional: tuple[type[Any], ...] = ()
    may_wait: bool = False
    of_groups: bool = False

    @property
    def metric_name(self) -> str:
        """The name in metrics, logs and messages, such as PreFilter."""
        return point_name(self.name)

    @cached_property
    def methods(self) -> tuple[str, ...]:
        """The Python methods any of which puts a plugin there."""
        return tuple(method for protocol in self.protocols for method in methods_of(protocol))


def methods_of(protocol: type[Any]) -> Mapping[str, Callable[..., Any]]:
    """The methods of a protocol, by name."""
    return {
        name: each for name, each in vars(protocol).items() if inspect.isfunction(each) and name[0] != "_"
    }


POINTS: Mapping[str, ExtensionPoint] = MappingProxyType(
    {
        point.name: point
        for point in (
            ExtensionPoint("pre_enqueue", (PreEnqueuePlugin,)),
            ExtensionPoint("queue_sort", (QueueSortPlugin,), (SubQueuesPlugin,)),
            ExtensionPoint("pre_filter", (PreFilterPlugin,), (PodChangePlugin, SkipsPodPlugin)),
            ExtensionPoint("filter", (FilterPlugin, FilterNodePlugin), (FiltersByNodePlugin,)),
            ExtensionPoint("post_filter", (PostFilterPlugin,)),
            ExtensionPoint("pre_score", (PreScorePlugin,)),
            ExtensionPoint("score", (ScorePlugin, ScoreNodePlugin), (NormalizeScorePlugin,)),
            ExtensionPoint("placement_generate", (PlacementGeneratePlugin,), of_groups=True),
            ExtensionPoint("placement_feasible", (PlacementFeasiblePlugin,), of_groups=True),
            ExtensionPoint(
                "placement_score", (PlacementScorePlugin,), (NormalizePlacementScorePlugin,), of_groups=True
            ),
            ExtensionPoint("pod_group_post_filter", (PodGroupPostFilterPlugin,), of_groups=True),
            ExtensionPoint("reserve", (ReservePlugin,)),
            ExtensionPoint("permit", (PermitPlugin,)),
            ExtensionPoint("pre_bind", (PreBindPlugin,), (PreBindPreFlightPlugin,), may_wait=True),
            ExtensionPoint("bind", (BindPlugin,), may_wait=True),
            ExtensionPoint("post_bind", (PostBindPlugin,), may_wait=True),
        )
    }
)
"""The extension points, in the order of a pod's life."""

BINDING_POINTS = frozenset(point.name for point in POINTS.values() if point.may_wait)
"""The extension points of the binding cycle: methods there may wait."""

ASYNC_POINTS = BINDING_POINTS | {"pod_group_post_filter"}
"""The extension points whose methods may be async."""

PROTOCOLS: tuple[type[Any], ...] = (
    EventsPlugin,
    CatchUpPlugin,
    DependsOnPlugin,
    *(each for point in POINTS.values() for each in (*point.protocols, *point.optional)),
)
"""Everything that a plugin may implement."""

METHODS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        name: tuple(inspect.signature(method).parameters)[1:]
        for protocol in PROTOCOLS
        for name, method in methods_of(protocol).items()
    }
)
"""Every method that a plugin may have, with the names of its parameters."""


def implements(plugin: Any, point: str) -> bool:
    """Whether a plugin (or its class) has something to do at an extension point."""
    return point in POINTS and any(
        callable(getattr(plugin, method, None)) for method in POINTS[point].methods
    )
