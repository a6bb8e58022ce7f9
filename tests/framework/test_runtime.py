"""The rules of the framework: what each answer of a plugin does."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from moorage.cluster.cache import Cache
from moorage.cluster.pods import PodInfo
from moorage.config.defaults import ALL_PLUGINS, default_profile
from moorage.config.load import parse_profiles
from moorage.config.types import PluginConfig, PluginRef, Plugins, PluginSet, Profile
from moorage.engine.engine import Engine
from moorage.framework.changes import Changes
from moorage.framework.clock import VirtualClock
from moorage.framework.cycle import CycleState, StateKey
from moorage.framework.diagnosis import Diagnosis
from moorage.framework.effects import BindPod, Effect
from moorage.framework.handle import Handle
from moorage.framework.nodes import Nodes, NodeView
from moorage.framework.points import PostFilterResult
from moorage.framework.profiles import Profiles
from moorage.framework.registry import Registry, RegistryError
from moorage.framework.runtime import Framework
from moorage.framework.status import (
    SKIP,
    SUCCESS,
    Code,
    PluginError,
    Status,
    unresolvable,
    unschedulable,
    wait,
)
from moorage.framework.verdict import ALL, Verdict, refuse_where
from moorage.plugins import default_registry
from tests.builders import make_node, make_pod

POD = make_pod("p", uid="p")


def framework_of(*plugins: Any, handle: Handle | None = None, **points: Any) -> Framework:
    registry = default_registry()
    names = ["PrioritySort"]
    for plugin in plugins:
        registry.register(plugin.name, lambda plugin=plugin: plugin)
        names.append(plugin.name)
    names += [] if any(hasattr(plugin, "bind") for plugin in plugins) else ["DefaultBinder"]
    chosen = PluginSet(
        enabled=tuple(PluginRef(name=name) for name in names), disabled=(PluginRef(name=ALL_PLUGINS),)
    )
    return Framework(
        default_profile(Profile(plugins=Plugins(multi_point=chosen, **points))), registry, handle
    )


class Log(list[str]):
    """What was called, in order."""


def recorder(name: str, log: Log, **answers: Any) -> Any:
    """A plugin that notes every call and gives fixed answers."""

    def method(point: str, answer: Any) -> Any:
        def call(self: Any, *arguments: Any) -> Any:
            log.append(f"{name}.{point}")
            if isinstance(answer, Exception):
                raise answer
            return answer

        # The checks look at how many arguments a method takes.
        counts = {"pre_enqueue": 1, "post_filter": 4, "normalize_score": 4}
        parameters = ", ".join("abcd"[: counts.get(point, 3)])
        scope: dict[str, Any] = {"call": call}
        exec(f"def {point}(self, {parameters}): return call(self, {parameters})", scope)
        return scope[point]

    return type(
        name, (), {"name": name, **{point: method(point, answer) for point, answer in answers.items()}}
    )()


def nodes(*names: str) -> Nodes:
    return Nodes(Cache(make_node(name) for name in names).snapshot())


# Scores


class Scoring:
    name = "Scoring"

    def __init__(self, scores: Any, normalized: Any = None) -> None:
        self.scores = scores
        if normalized is not None:
            self.normalize_score = lambda cycle, pod, nodes, scores: normalized

    def score(self, cycle: CycleState, pod: object, nodes: Nodes) -> Any:
        return self.scores


@pytest.mark.parametrize(
    ("plugin", "complaint"),
    [
        (Scoring(np.array([101, 0])), "invalid score 101"),
        (Scoring(np.array([0, -1])), "invalid score -1"),
        (Scoring(np.array([5, 5]), np.array([0, 200])), "invalid score 200"),
        (Scoring(np.array([0.5, 1.0])), "scores are integers"),
        (Scoring(np.array([1])), r"shape \(1,\) for 2 nodes"),
        (Scoring(None), "shape"),
    ],
)
def test_scores_must_be_one_integer_per_node_and_in_bounds(plugin: Scoring, complaint: str) -> None:
    with pytest.raises(PluginError, match=complaint):
        framework_of(plugin).score(CycleState(), POD, nodes("a", "b"))


def test_raw_scores_may_be_anything_if_they_are_normalised() -> None:
    table = framework_of(Scoring(np.array([-7, 9000]), np.array([0, 100]))).score(
        CycleState(), POD, nodes("a", "b")
    )
    assert table.by_plugin["Scoring"].tolist() == [0, 100]


def test_weights_multiply_and_totals_add_up() -> None:
    class Other(Scoring):
        name = "Other"

    weighted = PluginSet(enabled=(PluginRef(name="Scoring", weight=5),))
    framework = framework_of(Scoring(np.array([1, 2])), Other(np.array([10, 0])), score=weighted)
    table = framework.score(CycleState(), POD, nodes("a", "b"))
    assert {name: scores.tolist() for name, scores in table.by_plugin.items()} == {
        "Scoring": [5, 10],
        "Other": [10, 0],
    }
    assert table.totals.tolist() == [15, 10]


def test_pre_score_skip_leaves_the_score_out_and_any_other_refusal_is_an_error() -> None:
    log = Log()
    framework = framework_of(recorder("Quiet", log, pre_score=SKIP, score=None))
    assert framework.score(CycleState(), POD, nodes("a", "b")).by_plugin == {}
    assert log == ["Quiet.pre_score"]
    with pytest.raises(PluginError, match='running PreScore plugin "Loud": no'):
        framework_of(recorder("Loud", log, pre_score=unschedulable("no"), score=None)).score(
            CycleState(), POD, nodes("a", "b")
        )


# Filters


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (None, "returned NoneType"),
        (np.array([True]), "returned ndarray"),
        (Verdict(np.zeros(3)), "answered for 3 nodes of 1"),
    ],
)
def test_a_filter_must_answer_for_the_nodes_it_was_asked_about(answer: Any, complaint: str) -> None:
    with pytest.raises(PluginError, match=complaint):
        framework_of(recorder("Odd", Log(), filter=answer)).filter(
            CycleState(), POD, nodes("a"), Diagnosis(1)
        )


def test_one_node_at_a_time_is_as_good_as_all_at_once() -> None:
    class PerNode:
        name = "PerNode"

        def filter_node(self, cycle: CycleState, pod: object, node: NodeView) -> Status | str | None:
            return {
                "a": None,
                "b": "too far",
                "c": unresolvable("too", "small"),
                "d": "too far",
                "e": SUCCESS,
            }[node.name]

        def score_node(self, cycle: CycleState, pod: object, node: NodeView) -> int:
            return ord(node.name) - ord("a")

    framework, diagnosis, everything = framework_of(PerNode()), Diagnosis(5), nodes(*"abcde")
    passed = framework.filter(CycleState(), POD, everything, diagnosis)
    assert passed.names == ["a", "e"]
    assert diagnosis.tally() == {"too far": 2, "too": 1, "small": 1}
    assert diagnosis.code_of(2) is Code.UNRESOLVABLE
    assert diagnosis.code_of(1) is Code.UNSCHEDULABLE
    assert framework.score(CycleState(), POD, passed).totals.tolist() == [0, 4]


def test_a_plugin_that_follows_pods_is_asked_about_each_changed_node_alone() -> None:
    key: StateKey[Counted] = StateKey("follower")

    class Counted:
        def __init__(self, count: int) -> None:
            self.count = count

        def clone(self) -> Counted:
            return Counted(self.count)

    class Follower:
        """Lets a pod in where fewer than two pods are counted, of which there is one in the beginning."""

        name = "Follower"

        def pre_filter(self, cycle: CycleState, pod: object, nodes: Nodes) -> None:
            cycle.write(key, Counted(1))

        def add_pod(self, cycle: CycleState, pod: object, added: PodInfo, node: NodeView) -> None:
            cycle.read(key).count += 1  # type: ignore[union-attr]

        def remove_pod(self, cycle: CycleState, pod: object, removed: PodInfo, node: NodeView) -> None:
            cycle.read(key).count -= 1  # type: ignore[union-attr]

        def filter(self, cycle: CycleState, pod: object, nodes: Nodes) -> Verdict:
            full = cycle.read(key).count >= 2  # type: ignore[union-attr]
            return refuse_where(np.full(len(nodes), full), "counted two")

    everything, cycle = nodes("a", "b", "c"), CycleState()
    framework = framework_of(Follower())
    framework.pre_filter(cycle, POD, everything, Diagnosis(3))
    changes = Changes(everything.snapshot, 3, added=[(1, PodInfo(make_pod("x", uid="x")))])
    changed = Nodes(everything.snapshot, everything.row_numbers(), changes)
    assert framework.filter(cycle, POD, changed, Diagnosis(3)).names == ["a", "c"]
    assert framework.filter(cycle, POD, everything, Diagnosis(3)).names == ["a", "b", "c"]


# Post-filters


def test_what_post_filters_say_is_joined_until_one_succeeds() -> None:
    first = recorder("First", Log(), post_filter=unschedulable("one"))
    second = recorder("Second", Log(), post_filter=unschedulable("two"))
    answer = framework_of(first, second).post_filter(CycleState(), POD, nodes("a"), Diagnosis(1))
    assert (answer.status.message, answer.status.plugin) == ("one, two", "First")
    log = Log()
    winner = recorder("Winner", log, post_filter=PostFilterResult(nominated_node="a"))
    never = recorder("Never", log, post_filter=unschedulable("three"))
    answer = framework_of(first, winner, never).post_filter(CycleState(), POD, nodes("a"), Diagnosis(1))
    assert (answer.status.code, answer.nominated_node, log) == (Code.SUCCESS, "a", ["Winner.post_filter"])


@pytest.mark.parametrize("status", [unresolvable("never"), Status(Code.ERROR, ("not found",))])
def test_a_post_filter_can_end_the_search_and_keeps_what_was_arranged_before(status: Status) -> None:
    log = Log()
    effect = BindPod(POD, "a")
    first = recorder("First", log, post_filter=PostFilterResult(unschedulable("x"), "", (effect,)))
    last = recorder("Last", log, post_filter=status)
    never = recorder("Never", log, post_filter=unschedulable("y"))
    answer = framework_of(first, last, never).post_filter(CycleState(), POD, nodes("a"), Diagnosis(1))
    assert log == ["First.post_filter", "Last.post_filter"]
    assert (answer.status.message, answer.nominated_node, answer.effects) == (status.message, "", (effect,))


def test_post_filters_run_when_a_pre_filter_refused_all_nodes_too() -> None:
    refusing = recorder("Refusing", Log(), pre_filter=unschedulable("full"))
    saying = recorder("Saying", Log(), post_filter=unschedulable("no luck"))
    decision = Engine().decide(framework_of(refusing, saying), POD, nodes("a", "b").snapshot)
    assert decision.message == "0/2 nodes are available: full. no luck"


# Reserve, permit, bind


def test_unreserve_runs_for_all_plugins_in_reverse_order_whatever_they_do() -> None:
    log = Log()
    plugins = [
        recorder("One", log, reserve=None, unreserve=None),
        recorder("Two", log, reserve=unschedulable("taken"), unreserve=RuntimeError("oops")),
        recorder("Three", log, reserve=None, unreserve=None),
    ]
    framework = framework_of(*plugins)
    status = framework.reserve(CycleState(), POD, "a")
    assert (status.code, status.plugin) == (Code.UNSCHEDULABLE, "Two")
    assert log == ["One.reserve", "Two.reserve"]
    log.clear()
    failures = framework.unreserve(CycleState(), POD, "a")
    assert log == ["Three.unreserve", "Two.unreserve", "One.unreserve"]
    assert [failure.plugin for failure in failures] == ["Two"]


async def settled(framework: Framework, clock: VirtualClock, *steps: Any) -> Status:
    waiting = asyncio.ensure_future(framework.wait_on_permit(POD))
    await asyncio.sleep(0)
    for step in steps:
        step()
        await asyncio.sleep(0)
    return await asyncio.wait_for(waiting, 1)


def permitting(*timeouts: tuple[str, float]) -> tuple[Framework, VirtualClock]:
    clock = VirtualClock()
    plugins = [recorder(name, Log(), permit=wait(seconds)) for name, seconds in timeouts]
    return framework_of(*plugins, handle=Handle(clock=clock)), clock


def test_permit_waits_until_every_plugin_that_asked_allows() -> None:
    framework, clock = permitting(("A", 10), ("B", 20))

    async def run() -> Status:
        status = framework.permit(CycleState(), POD, "a")
        assert (status.code, status.timeout_seconds) == (Code.WAIT, 10)
        assert framework.handle.waiting is not None
        held = framework.handle.waiting.get("p")
        assert held is not None
        assert held.pending_plugins == {"A", "B"}
        return await settled(
            framework, clock, lambda: held.allow("A"), lambda: clock.advance(15), lambda: held.allow("B")
        )

    assert asyncio.run(run()).code is Code.SUCCESS
    assert list(framework.handle.waiting or ()) == []


def test_the_shortest_time_out_ends_the_wait() -> None:
    framework, clock = permitting(("A", 90), ("B", 30))

    async def run() -> Status:
        framework.permit(CycleState(), POD, "a")
        return await settled(framework, clock, lambda: clock.advance(29), lambda: clock.advance(1))

    status = asyncio.run(run())
    assert (status.code, status.plugin) == (Code.UNSCHEDULABLE, "B")
    assert status.message == "rejected due to timeout after waiting 30s at plugin B"


def test_no_wait_is_longer_than_a_quarter_of_an_hour() -> None:
    framework, clock = permitting(("A", 10_000.0))

    async def run() -> Status:
        framework.permit(CycleState(), POD, "a")
        return await settled(framework, clock, lambda: clock.advance(15 * 60))

    assert asyncio.run(run()).message == "rejected due to timeout after waiting 15m0s at plugin A"


def test_one_plugin_can_reject_for_all() -> None:
    framework, clock = permitting(("A", 10), ("B", 20))

    async def run() -> Status:
        framework.permit(CycleState(), POD, "a")
        assert framework.handle.waiting is not None
        held = framework.handle.waiting.get("p")
        assert held is not None
        return await settled(framework, clock, lambda: held.reject("B", "no"), lambda: held.allow("A"))

    status = asyncio.run(run())
    assert (status.message, status.plugin) == ("no", "B")


def test_a_refusal_is_final_even_if_another_plugin_wants_to_wait() -> None:
    plugins = [recorder("A", Log(), permit=wait(5)), recorder("B", Log(), permit=unschedulable("no"))]
    framework = framework_of(*plugins, handle=Handle(clock=VirtualClock()))
    assert framework.permit(CycleState(), POD, "a").message == "no"
    assert asyncio.run(framework.wait_on_permit(POD)).code is Code.SUCCESS


def test_without_permit_plugins_there_is_nothing_to_wait_for() -> None:
    framework = framework_of()
    assert framework.permit(CycleState(), POD, "a") is SUCCESS
    assert asyncio.run(framework.wait_on_permit(POD)) is SUCCESS


def test_binders_may_skip_and_the_first_that_does_not_binds() -> None:
    log = Log()
    binders = [recorder("A", log, bind=SKIP), recorder("B", log, bind=None), recorder("C", log, bind=None)]
    assert asyncio.run(framework_of(*binders).bind(CycleState(), POD, "a")).code is Code.SUCCESS
    assert log == ["A.bind", "B.bind"]
    assert (
        asyncio.run(framework_of(recorder("A", log, bind=SKIP)).bind(CycleState(), POD, "a")).code
        is Code.SKIP
    )


def test_the_default_binder_asks_for_the_binding() -> None:
    class Written:
        effects: list[Effect] = []

        async def perform(self, effect: Effect) -> None:
            self.effects.append(effect)

    written = Written()
    status = asyncio.run(framework_of(handle=Handle(effects=written)).bind(CycleState(), POD, "a"))
    assert status.code is Code.SUCCESS
    assert written.effects == [BindPod(POD, "a")]


def test_an_engine_that_only_decides_cannot_bind() -> None:
    with pytest.raises(PluginError, match="nowhere to write BindPod to"):
        asyncio.run(framework_of().bind(CycleState(), POD, "a"))


def test_pre_bind_may_be_async_and_stops_at_the_first_failure() -> None:
    log = Log()

    class Slow:
        name = "Slow"

        async def pre_bind(self, cycle: CycleState, pod: object, node_name: str) -> None:
            await asyncio.sleep(0)
            log.append("Slow.pre_bind")

    plugins = [
        Slow(),
        recorder("No", log, pre_bind=unschedulable("no")),
        recorder("Late", log, pre_bind=None),
    ]
    status = asyncio.run(framework_of(*plugins).pre_bind(CycleState(), POD, "a"))
    assert (status.message, log) == ("no", ["Slow.pre_bind", "No.pre_bind"])


def test_post_bind_tells_everybody() -> None:
    log = Log()
    framework = framework_of(recorder("A", log, post_bind=None), recorder("B", log, post_bind=None))
    asyncio.run(framework.post_bind(CycleState(), POD, "a"))
    assert log == ["A.post_bind", "B.post_bind"]


@pytest.mark.parametrize("point", ["pre_enqueue", "pre_score", "reserve", "permit", "pre_bind", "bind"])
@pytest.mark.parametrize("answer", ["no", False, 5])
def test_where_a_status_is_wanted_nothing_else_will_do(point: str, answer: object) -> None:
    plugin = recorder("Odd", Log(), **{point: answer}, **({"score": None} if point == "pre_score" else {}))
    framework, cycle = framework_of(plugin, handle=Handle(clock=VirtualClock())), CycleState()
    arguments = {"pre_enqueue": (POD,), "pre_score": (cycle, POD, nodes("a"))}.get(point, (cycle, POD, "a"))
    ask = getattr(framework, "score" if point == "pre_score" else point)

    async def asked() -> None:
        result = ask(*arguments)
        if asyncio.iscoroutine(result):
            await result

    with pytest.raises(PluginError, match="return None, or a status such as"):
        asyncio.run(asked())


def test_a_refusal_needs_words() -> None:
    for reason in (5, ""):
        with pytest.raises(TypeError, match="a refusal needs a reason in words"):
            refuse_where(np.array([True]), reason)  # type: ignore[arg-type]


# Queue


def test_pre_enqueue_and_queue_sort() -> None:
    framework = framework_of(recorder("Gate", Log(), pre_enqueue=unresolvable("closed")))
    status = framework.pre_enqueue(POD)
    assert status is not None
    assert (status.message, status.plugin) == ("closed", "Gate")

    class Queued:
        def __init__(self, priority: int, timestamp: float) -> None:
            self.pod = make_pod("q", priority=priority)
            self.timestamp = timestamp

    pods = [Queued(0, 1.0), Queued(5, 9.0), Queued(5, 2.0)]
    assert [p.timestamp for p in sorted(pods, key=framework.sort_key)] == [2.0, 9.0, 1.0]


# Registry and profiles


class Wants:
    name = "Wants"

    def __init__(self, something: int) -> None:
        raise AssertionError

    def filter(self, cycle: CycleState, pod: object, nodes: Nodes) -> Verdict:
        return ALL


class Fails:
    name = "Mine"

    def __init__(self) -> None:
        raise ValueError("no luck")


async def _async_filter(self: object, cycle: CycleState, pod: object, nodes: Nodes) -> Verdict:
    return ALL


@pytest.mark.parametrize(
    ("factory", "complaint"),
    [
        (
            lambda: recorder("Other", Log(), filter=ALL),
            "its class says name = 'Other'; make it name = \"Mine\"",
        ),
        (type("Mine", (), {"name": "Mine"}), "has none of the extension points"),
        (
            type("Mine", (), {"name": "Mine", "filter": lambda self, pod: ALL}),
            "write def filter(self, cycle, pod, nodes)",
        ),
        (Wants, "wants something; a plugin can be given args and handle only"),
        (5, "register its class, or a function that makes it"),
        (Fails, "plugin Mine cannot be made: ValueError: no luck"),
        (
            type("Mine", (), {"name": "Mine", "filter": lambda self, a, b, c: ALL, "filter_node": None}),
            "has both filter and filter_node; keep one of them",
        ),
        (type("Mine", (), {"name": "Mine", "filter": _async_filter}), "filter cannot be async"),
        (
            type("Mine", (), {"name": "Mine", "filter": lambda: ALL}),
            "write def filter(self, cycle, pod, nodes)",
        ),
    ],
)
def test_a_plugin_that_cannot_work_fails_at_start_with_a_sentence(factory: Any, complaint: str) -> None:
    registry = Registry()
    registry.register("Mine", factory)
    with pytest.raises(RegistryError) as error:
        registry.make("Mine", None, Handle())
    assert complaint in str(error.value)


def test_a_name_can_be_taken_once() -> None:
    with pytest.raises(RegistryError, match="exists already"):
        default_registry().register("NodeAffinity", Wants)


def test_arguments_for_a_plugin_without_any() -> None:
    registry = Registry({"Mine": type("Mine", (), {"name": "Mine", "filter": lambda self, a, b, c: ALL})})
    with pytest.raises(RegistryError, match="takes no arguments"):
        registry.make("Mine", {"colour": "red"}, Handle())


def test_an_unknown_plugin_is_named_with_those_there_are() -> None:
    profile = Profile(plugins=Plugins(filter=PluginSet(enabled=(PluginRef(name="Nope"),))))
    with pytest.raises(RegistryError, match="there is no plugin Nope; known are DefaultBinder"):
        Framework(default_profile(profile), default_registry())


def test_profiles_share_the_queue_so_they_must_sort_alike() -> None:
    registry = default_registry()
    registry.register("Newest", type("Newest", (), {"name": "Newest", "queue_sort": lambda self, queued: 0}))
    mine = {"multiPoint": {"disabled": [{"name": "PrioritySort"}], "enabled": [{"name": "Newest"}]}}
    config = parse_profiles([{"schedulerName": "a"}, {"schedulerName": "b", "plugins": mine}])
    with pytest.raises(RegistryError, match='different queue sort plugins for profile "b": "Newest"'):
        Profiles(config, registry)


def test_a_pod_belongs_to_the_profile_it_names() -> None:
    profiles = Profiles(parse_profiles([{"schedulerName": "a"}, {"schedulerName": "b"}]), default_registry())
    assert profiles.of(make_pod("p", scheduler_name="b")) is profiles["b"]
    assert profiles.of(make_pod("p", scheduler_name="other")) is None
    assert profiles["a"].handle.waiting is profiles["b"].handle.waiting


def test_typed_arguments_of_foreign_plugins_name_the_field_that_is_wrong() -> None:
    import msgspec

    class Args(msgspec.Struct):
        colour: str = "red"

    class Coloured:
        name = "Coloured"

        def __init__(self, args: Args) -> None:
            self.args = args

        def filter(self, cycle: CycleState, pod: object, nodes: Nodes) -> Verdict:
            return ALL

    # Annotations are looked up where the class was made.
    Coloured.__init__.__annotations__["args"] = Args
    registry = Registry({"Coloured": Coloured})
    made = registry.make("Coloured", {"colour": "blue"}, Handle())
    assert made.args.colour == "blue"  # type: ignore[attr-defined]
    assert registry.make("Coloured", None, Handle()).args.colour == "red"  # type: ignore[attr-defined]
    with pytest.raises(RegistryError, match=r"plugin Coloured: args\.colour: expected text, got 5"):
        registry.make("Coloured", {"colour": 5}, Handle())
    with pytest.raises(RegistryError, match=r"plugin Coloured: args.color.*did you mean"):
        registry.make("Coloured", {"color": "blue"}, Handle())
    assert PluginConfig(name="Coloured").args is None
