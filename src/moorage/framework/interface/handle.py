"""What the framework provides to plugins beyond the pod and the nodes: live objects, writing, time."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, Protocol, TypeVar

from moorage.api.base import Object
from moorage.api.manifests import Manifest
from moorage.api.pod import Pod
from moorage.api.pod_groups import GroupKey
from moorage.client.waiting import sleep, within
from moorage.clock import Clock, LoopClock
from moorage.cluster.nominations import Nominations
from moorage.cluster.object_tables import Objects
from moorage.cluster.pod_followers import PodFollower
from moorage.cluster.pod_groups import PodGroups
from moorage.cluster.pod_table import PodInfo
from moorage.cluster.snapshot import Snapshot
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, KubernetesVersion
from moorage.framework.extenders.extenders import Extenders
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.framework.interface.effects import Effects, NoEffects
from moorage.framework.interface.nodes import Nodes
from moorage.framework.runtime.hypothetical_nodes import HypotheticalNodes
from moorage.framework.runtime.periodic_calls import PeriodicCalls
from moorage.framework.runtime.plugin_metrics import PluginMetrics
from moorage.framework.runtime.plugin_threads import PluginThreads, WrongThreadError
from moorage.framework.runtime.pre_binding import PreBinding
from moorage.framework.runtime.single_node_filters import SingleNodeFilters
from moorage.framework.runtime.slow_plugins import SlowCalls
from moorage.framework.runtime.waiting_pods import WaitingPods
from moorage.queue.cluster_events import Action

if TYPE_CHECKING:
    from moorage.client.client import Client

T = TypeVar("T")

FilterRunner = Callable[[CycleState, Pod, Nodes, Diagnosis], Nodes]
"""Runs all filters of a profile over nodes: returns those that pass, and records rejections."""

SingleNodeFiltersOf = Callable[[CycleState], SingleNodeFilters | None]
"""The filters of a cycle for one node at a time; None where some of them depend on more than that."""

StateWithoutPods = Callable[[CycleState, Pod, Snapshot, Iterable[PodInfo]], CycleState]
"""A copy of a pod's cycle state, in which filters that count pods do not count some that are on nodes."""


_NOT_GIVEN: Final = WaitingPods(LoopClock())
"""Stands for pods that wait by the handle's own clock."""


class NotHereError(RuntimeError):
    """A plugin used something that only a scheduler at a real cluster has."""


class EventRecorder(Protocol):
    """Writes events, as a profile."""

    def event(
        self,
        profile: str,
        about: Object,
        related: Object | None,
        type: str,
        reason: str,
        action: str,
        note: str,
    ) -> None:
        """Record an event; never waits."""


def _no_background(work: Coroutine[Any, Any, None]) -> None:
    work.close()
    raise NotHereError("handle.in_background: there is no scheduler that would do the work")


@dataclass(frozen=True, slots=True)
class Live:
    """What only a scheduler that runs in a cluster has; simulations have none of it."""

    client: Client
    recorder: EventRecorder
    activate: Callable[[Iterable[Pod]], None]
    activate_group: Callable[[GroupKey], None]
    custom: Callable[[str], list[Manifest]] = lambda kind: []
    announce: Callable[[str, Action], None] = lambda resource, action: None
    start: Callable[[Coroutine[Any, Any, None]], None] = _no_background
    only_compares: bool = False
    """Whether nothing of what is decided is carried out."""


def _no_profile() -> NoReturn:
    raise NotHereError("handle.hypothetical_nodes: there are filters only in a profile")


def _outside_a_profile(cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis) -> NoReturn:
    raise NotHereError("handle.run_filters: there are filters only in a profile; make a Framework first")


@dataclass(slots=True)
class Handle:
    """What a plugin is given when it is made, if its `__init__` has a parameter named `handle`.

    Reading the cluster:
        nodes(): all nodes as the latest scheduling cycle saw them; it does not change before the next one. At
            extension points that are given `nodes`, use those.
        objects: the informers' caches, live, a table for each kind: `handle.objects.of(Namespace)`. Plugins
            may assume changes there (`ObjectTable.assume`) in reserve, and take them back in unreserve. What
            a cycle reads comes from `nodes.objects`, which does not change.
        pods_on(node_name): the pods on a node, live, those included that are being bound.
        custom(kind): all objects of a kind that moorage does not know, as the API server has them, where the
            plugin's `events` names it, by the same name: `handle.custom("quotas.v1.example.com")`.
        wait_until(condition, timeout_seconds): wait, in pre_bind or bind, for objects to change.

    Beside the scheduling cycles, where there is a scheduler:
        every(interval_seconds, method): call an async method again and again, such as to read what has no
            informer. What is read and matters to decisions is put into `objects`, so that cycles see it.
        announce(resource, action): say that what was read has changed, for pods that the plugin refused.
        in_background(work): have a coroutine done. A simulation does not end before it; shutdown does not
            wait for it.
        sleep(seconds), within(seconds, work): a pause, and a time limit, by the handle's clock.
        clock.call_later(seconds, call): a timer, which can be cancelled.
        has_ended: whether another configuration is in force. Calls of `every` end by themselves; background
            work and timers that the plugin starts again have to ask.

    Writing, where there is a cluster (`is_live`):
        client: requests to the API server, as the scheduler's account:
            `await handle.client.get(kinds.CONFIG_MAP, "default", "zones")`. For pre_bind, bind and post_bind:
            the other extension points do not wait. NotHereError in simulations.
        record_event(about, reason, note): an event about an object, for `kubectl describe`. Simulations
            record none.
        is_acting: whether decisions are carried out: not by a scheduler that only compares its own. Plugins
            that write by themselves ask before.
        effects: what moorage's own plugins write with; a simulation does it to its own cluster.

    Other pods:
        waiting: pods that wait for a permit. Iterate over it, or `get(uid)`; each has `pod`, `node_name`,
            `pending_plugins`, `allow(plugin)` and `reject(plugin, reason)`.
        nominations: pods that are to get a node that is being freed for them: `node_of(uid)`,
            `on(node_name)`, `put(pod, node_name)`, `remove(uid)`.
        pod_groups: groups of pods, their hierarchy and members.
        follow_pods(follower): call `follower.pod_moved(info, count)` for every pod on a node, and from now on
            when one comes to a node (1), assumed or seen there, or leaves it (-1); a pod that changes does
            both. It must be fast, and must not raise. The follower is not kept alive by this.
        activate(pods): move pods to the active queue. Simulations have no queue: nothing happens.
        activate_group(key): the same for the pods of a group, by the root of its hierarchy.
        pre_binding: pods in pre-bind, which can still be stopped.

    Calling other plugins and extenders:
        run_filters(cycle, pod, nodes, diagnosis): the profile's filters, with nominated pods counted in; with
            `Nodes.hypothetical_pods`, for plugins that do dry runs. Returns the nodes that pass.
        single_node_filters: the same for one node at a time, where their results for a node can be cached.
        without_pods(cycle, pod, snapshot, infos): a cycle state for `run_filters` that does not count some
            pods on other nodes.
        hypothetical_nodes(): nodes that do not exist yet: would a pod fit on a new node like this one?
        extenders: the web services that take part in scheduling, in their order.

    In threads (`pre_bind`, `bind` and `post_bind` that are not async, or a thread of the plugin's own):
        on_loop(call): call something on the scheduler's loop, and wait for its result; `call`
            may be async: `handle.on_loop(lambda: handle.client.get(kinds.CONFIG_MAP, "default", "zones"))`.
        Safe as they are: record_event, activate, activate_group, announce, is_live, profile, `custom`,
            `pre_binding.is_stopped`, `allow` and `reject` of waiting pods, and getting a single object from
            `objects`.
            WrongThreadError: client, nodes and wait_until. All else, such as changing or iterating over
            objects and nominations, needs on_loop, too, and is not checked.

    clock and random: sources of time and randomness, which simulations replace. profile: the scheduler name
    of the profile the plugin is in. metrics: where moorage's own plugins record metrics. version: the version
    of Kubernetes that is emulated, with its feature gates: `handle.version.features.generic_workload`.
    """

    objects: Objects = field(default_factory=Objects)
    effects: Effects = field(default_factory=NoEffects)
    clock: Clock = field(default_factory=LoopClock)
    random: Random = field(default_factory=Random)
    waiting: WaitingPods = _NOT_GIVEN
    pre_binding: PreBinding = field(default_factory=PreBinding)
    metrics: PluginMetrics = field(default_factory=PluginMetrics)
    run_filters: FilterRunner = _outside_a_profile
    single_node_filters: SingleNodeFiltersOf = lambda cycle: None
    without_pods: StateWithoutPods = lambda cycle, pod, snapshot, infos: cycle
    hypothetical_nodes: Callable[[], HypotheticalNodes] = _no_profile
    nominations: Nominations = field(default_factory=Nominations)
    pod_groups: PodGroups = field(default_factory=lambda: PodGroups(Objects(), lambda uid: None))
    snapshot: Callable[[], Snapshot] = Snapshot
    follow_pods: Callable[[PodFollower], None] = lambda follower: None
    pods_on: Callable[[str], list[Pod]] = lambda node_name: []
    extenders: Extenders = field(default_factory=Extenders)
    live: Live | None = None
    profile: str = ""
    slow_calls: SlowCalls = field(default_factory=SlowCalls)
    threads: PluginThreads = field(default_factory=PluginThreads)
    periodic: PeriodicCalls = field(default_factory=PeriodicCalls)
    version: KubernetesVersion = DEFAULT_VERSION

    def __post_init__(self) -> None:
        if self.waiting is _NOT_GIVEN:
            self.waiting = WaitingPods(self.clock, self.threads)
        self.pod_groups.set_features(self.version.features)

    def for_profile(
        self,
        profile: str,
        run_filters: FilterRunner,
        single_node_filters: SingleNodeFiltersOf,
        without_pods: StateWithoutPods,
        hypothetical_nodes: Callable[[], HypotheticalNodes],
    ) -> Handle:
        """A copy for one profile of several; everything else is shared."""
        return replace(
            self,
            profile=profile,
            run_filters=run_filters,
            single_node_filters=single_node_filters,
            without_pods=without_pods,
            hypothetical_nodes=hypothetical_nodes,
        )

    def nodes(self) -> Nodes:
        """All nodes, as the latest scheduling cycle saw them."""
        self._check_thread("nodes")
        return Nodes(self.snapshot())

    def custom(self, kind: str) -> list[Manifest]:
        """All objects of a kind (`plural.version.group`) that some plugin's `events` names; live.

        They are shared and must not be changed. Simulations have none.
        """
        return [] if self.live is None else self.live.custom(kind)

    @property
    def is_live(self) -> bool:
        """Whether there is a cluster: not in `moorage decide`, replays and tests of plugins."""
        return self.live is not None

    @property
    def is_acting(self) -> bool:
        """Whether decisions are carried out in a cluster: a scheduler that only compares its own does not."""
        return self.live is not None and not self.live.only_compares

    @property
    def client(self) -> Client:
        """Requests to the API server, as the scheduler's account; NotHereError in simulations."""
        self._check_thread("client")
        if self.live is None:
            raise NotHereError("handle.client: a simulation has no API server; ask handle.is_live before")
        return self.live.client

    def record_event(
        self,
        about: Object,
        reason: str,
        note: str,
        *,
        type: Literal["Normal", "Warning"] = "Normal",
        action: str = "Scheduling",
        related: Object | None = None,
    ) -> None:
        """Record an event about an object; never waits. `reason` is one word, such as `Delayed`."""
        if self.live is not None:
            self._posted(self.live.recorder.event, self.profile, about, related, type, reason, action, note)

    def activate(self, pods: Iterable[Pod]) -> None:
        """Move pods that wait in the queue to the active queue, regardless of what they wait for."""
        if self.live is not None:
            self._posted(self.live.activate, list(pods))

    def activate_group(self, key: GroupKey) -> None:
        """The same for all pods of a group that wait together; key: the root of its hierarchy."""
        if self.live is not None:
            self._posted(self.live.activate_group, key)

    def every(self, interval_seconds: float, method: Callable[[], Awaitable[None]]) -> None:
        """Call an async method beside the scheduling cycles, for as long as this configuration is in force.

        To be asked for in `__init__`. The first call is when the scheduler begins, each later one when the
        interval has passed since the last one ended. An exception is logged, and the next call comes all the
        same. Simulations without a scheduler make no calls.
        """
        self.periodic.add(interval_seconds, method)

    def announce(self, resource: str, action: Action) -> None:
        """Say that something has changed that the plugin reads by itself (`listed_kinds`).

        Pods that the plugin refused, and whose `events` name this, are tried again. Hints are called without
        an object.
        """
        if self.live is not None:
            self._posted(self.live.announce, resource, action)

    @property
    def has_ended(self) -> bool:
        """Whether another configuration is in force: the plugin decides for no more pods."""
        return self.periodic.has_ended

    async def sleep(self, seconds: float) -> None:
        """Wait for some time by the clock."""
        await sleep(self.clock, seconds)

    async def within(self, seconds: float, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine; cancels it and raises TimeoutError after a time by the clock."""
        return await within(self.clock, seconds, work)

    def in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Have work done beside the scheduling cycles; NotHereError in simulations without a scheduler."""
        (self.live.start if self.live is not None else _no_background)(work)

    def _posted(self, call: Callable[..., None], *arguments: Any) -> None:
        """Call something: at once if on the loop, soon if in a thread."""
        if self.threads.is_elsewhere():
            self.threads.post(call, *arguments)
        else:
            call(*arguments)

    def _check_thread(self, what: str) -> None:
        if self.threads.is_elsewhere():
            raise WrongThreadError(
                f"handle.{what}: not in a thread; write handle.on_loop(lambda: handle.{what}...), "
                "or make the method async"
            )

    def on_loop(self, call: Callable[[], Any]) -> Any:
        """The result of `call`, which may be async, called on the scheduler's loop; for threads.

        Without threads, in simulations, it is called at once, and cannot wait.
        """
        if self.threads.is_elsewhere():
            return self.threads.wait_for(call)
        answer = call()
        if not inspect.isawaitable(answer):
            return answer
        if inspect.iscoroutine(answer):
            answer.close()
        raise WrongThreadError("handle.on_loop: nothing can wait here; make the method async, and await")

    async def wait_until(self, condition: Callable[[], bool], timeout_seconds: float) -> bool:
        """Wait for objects to change until `condition` holds; False if it times out.

        An exception of `condition` ends the wait and is raised here.
        """
        self._check_thread("wait_until")
        if condition():
            return True
        outcome: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def look() -> None:
            if outcome.done():
                return
            try:
                if condition():
                    outcome.set_result(True)
            except Exception as error:
                outcome.set_exception(error)

        def give_up() -> None:
            if not outcome.done():
                outcome.set_result(False)

        timer = self.clock.call_later(timeout_seconds, give_up)
        unsubscribe = self.objects.subscribe(look)
        try:
            return await outcome
        finally:
            timer.cancel()
            unsubscribe()
