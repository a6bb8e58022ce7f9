"""LoadAware is as the same rule in plain Python, and what is remembered is as what would be worked out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from moorage import CycleState, Engine, Handle, Nodes, NodeView, Object, Pod, default_registry, parse_config
from moorage.cluster.cache import Cache
from moorage.engine.decision import Decision
from moorage.framework.runtime.framework import Framework
from moorage.optional_plugins.load_aware.readings import NodeUsage, put_reading, usage_of
from tests.builders import make_node, make_pod
from tests.optional_plugins.load_aware.measuring import (
    GIB,
    NOW,
    Scene,
    configuration,
    metrics,
    running,
)
from tests.strategies import examples, one_of

ARGS = {"thresholds": {"cpu": 70, "memory": 80}, "weights": {"cpu": 2, "memory": 1}, "warmUp": "20s"}
NAMES = ("a", "b", "c", "d")
CPU = one_of("0", "500m", "3", "7", "12")
MEMORY = one_of("0", "1Gi", "7Gi", "20Gi")
NODE = st.fixed_dictionaries({"cpu": one_of("0", "4", "10"), "memory": one_of("8Gi", "10Gi")})
STARTED = one_of(-3600.0, -31.0, -30.0, -29.0, 0.0, None)
REQUESTS = st.dictionaries(one_of("cpu", "memory"), one_of("1", "2", "0"), max_size=2)


@st.composite
def objects(draw: Any) -> list[Object]:
    """A few nodes; of some of them there is usage."""
    found: list[Object] = []
    for name in NAMES[: draw(st.integers(1, 4))]:
        found.append(make_node(name, allocatable={**draw(NODE), "pods": "10"}))
        if draw(st.booleans()):
            found.append(metrics(name, draw(CPU), draw(MEMORY)))
        for number in range(draw(st.integers(0, 3))):
            requests = {key: f"{text}Gi" if key == "memory" else text for key, text in draw(REQUESTS).items()}
            found.append(running(f"{name}-{number}", name, draw(STARTED), **requests))
    return found


def expected_use(view: NodeView, used: NodeUsage | None) -> tuple[int, int]:
    """What a node will use without the new pod."""
    cpu, memory = (0, 0) if used is None else (used.cpu, used.memory)
    for info in view.pods:
        start = info.pod.status.start_time
        is_old = start is not None and (start - NOW).total_seconds() <= -10 - 20
        if used is None or not is_old:
            more = expected_estimate(info.pod)
            cpu, memory = cpu + more[0], memory + more[1]
    return cpu, memory


def expected_estimate(pod: Pod) -> tuple[int, int]:
    requests = pod.spec.containers[0].resources.requests
    cpu = requests["cpu"] // 10**6 if "cpu" in requests else 100
    memory = requests["memory"] // 10**9 if "memory" in requests else 200 << 20
    return cpu * 85 // 100, memory * 70 // 100


def expected_score(view: NodeView, used: NodeUsage | None, pod: Pod) -> int:
    total = 0
    for use, more, name, weight in zip(
        expected_use(view, used), expected_estimate(pod), ("cpu", "memory"), (2, 1), strict=True
    ):
        there = view.allocatable(name)
        percent = min((use + more) * 100 // there, 100) if there else 100
        total += weight * (100 - percent)
    return total // 3


def expected_reasons(view: NodeView, used: NodeUsage | None) -> list[str]:
    limits = (("cpu", 70), ("memory", 80))
    if used is None:
        return []
    return [
        f"node(s) had a high {name} usage"
        for use, (name, limit) in zip(expected_use(view, used), limits, strict=True)
        if view.allocatable(name) and use / view.allocatable(name) >= limit / 100
    ]


@given(objects(), one_of("0", "1", "2"))
@examples(80)
def test_it_is_as_in_plain_python(there: list[Object], cpu: str) -> None:
    scene = Scene(there, ARGS)
    pod = make_pod("p", uid="p", requests={"cpu": cpu, "memory": "1Gi"})
    usage = {each.name: usage_of(each) for each in there if each.__class__.__name__ == "NodeMetrics"}  # type: ignore[arg-type]
    nodes, plugin = scene.nodes, scene.plugin
    result = plugin.filter(CycleState(), pod, nodes)
    scores = plugin.score(CycleState(), pod, nodes)
    for row, view in enumerate(nodes):
        used = usage.get(view.name)
        code = 0 if result.codes is None else int(result.codes[row])
        texts = list(result.reasons[code - 1].texts) if code else []
        assert texts == expected_reasons(view, used), view.name
        assert int(scores[row]) == expected_score(view, used, pod), view.name


UIDS = one_of(*(f"u{number}" for number in range(8)))
TEMPLATES: tuple[dict[str, str], ...] = ({"cpu": "1"}, {"cpu": "2", "memory": "2Gi"}, {})


class MeasuredCluster(RuleBasedStateMachine):
    """Pods come, start and go, nodes too, and usage is read and gets lost: two engines are asked."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = Cache()
        self.remembering, self.plain = Engine(seed=1), Engine(seed=1, remembers=False)
        (profile,) = parse_config(configuration(ARGS, "NodeResourcesFit"), "test").profiles
        handle = Handle(self.cache.objects, snapshot=self.cache.latest_snapshot)
        self.framework, self.other = (Framework(profile, default_registry(), handle) for _ in range(2))
        self.placed: dict[str, Pod] = {}
        for name in NAMES:
            self.put_node(name, {"cpu": "10", "memory": "10Gi"})

    @rule(name=one_of(*NAMES), room=NODE)
    def put_node(self, name: str, room: dict[str, str]) -> None:
        self.cache.put_node(make_node(name, allocatable={**room, "pods": "5"}))

    @rule(name=one_of(*NAMES))
    def remove_node(self, name: str) -> None:
        self.cache.remove_node(name)

    @rule(used=st.dictionaries(one_of(*NAMES), st.integers(0, 9), max_size=4), age=one_of(-3600, 0, 60))
    def usage_is_read(self, used: dict[str, int], age: int) -> None:
        end = round(NOW.timestamp() + age) * 10**6
        reading = {
            name: NodeUsage(cpu=1000 * cores, memory=cores * GIB, begin=end - 10**7, end=end)
            for name, cores in used.items()
        }
        put_reading(self.cache.objects, "default-scheduler", reading)

    @rule(uid=UIDS, template=st.integers(0, 2))
    def pod_is_placed(self, uid: str, template: int) -> None:
        pod = make_pod(uid, uid=uid, requests=TEMPLATES[template])
        if uid not in self.placed and (found := self._both(pod).node) is not None:
            self.placed[uid] = self.cache.assume_pod(pod, found)

    @rule(uid=UIDS, started=STARTED)
    def pod_starts(self, uid: str, started: float | None) -> None:
        if (pod := self.placed.get(uid)) is not None:
            later = running(uid, pod.spec.node_name, started)
            self.placed[uid] = type(pod)(metadata=pod.metadata, spec=pod.spec, status=later.status)
            self.cache.put_pod(self.placed[uid])

    @rule(uid=UIDS)
    def pod_goes(self, uid: str) -> None:
        if (pod := self.placed.pop(uid, None)) is not None:
            self.cache.remove_pod(pod)

    @rule(uid=UIDS, name=one_of(*NAMES))
    def pod_is_nominated(self, uid: str, name: str) -> None:
        if uid not in self.placed:
            self.cache.nominations.put(make_pod(uid, uid=uid, requests=TEMPLATES[0], priority=5), name)

    @invariant()
    def both_engines_agree(self) -> None:
        for template in TEMPLATES:
            self._both(make_pod("new", uid="new", requests=template))

    def _both(self, pod: Pod) -> Decision:
        snapshot = self.cache.snapshot()
        decision = self.remembering.decide(self.framework, pod, snapshot)
        plain = self.plain.decide(self.other, pod, snapshot)
        assert _shown(decision) == _shown(plain)
        return decision


def _shown(decision: Decision) -> Any:
    names = decision.feasible.names
    scores = None if decision.scores is None else decision.scores.by_plugin["LoadAware"].tolist()
    return sorted(zip(names, scores or [0] * len(names), strict=True)), decision.message


@pytest.mark.slow
def test_what_is_remembered_is_what_would_be_worked_out() -> None:
    run_state_machine_as_test(MeasuredCluster, settings=examples(40, stateful_step_count=20))


def test_the_columns_follow_what_changes_and_look_at_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene([make_node(name) for name in NAMES] + [metrics("a"), metrics("b")])
    scene.plugin.score(CycleState(), make_pod("p"), scene.nodes)
    looked_at: list[int] = []
    columns = scene.plugin._columns
    estimated = columns._estimated
    monkeypatch.setattr(columns, "measure", None)
    monkeypatch.setattr(
        columns, "_estimated", lambda infos, cutoff: looked_at.append(len(infos)) or estimated(infos, cutoff)
    )
    scene.cache.put_pod(running("x", "b"))
    scene.plugin.score(CycleState(), make_pod("p"), Nodes(scene.cache.snapshot()))
    scene.plugin.score(CycleState(), make_pod("q"), scene.nodes)
    assert looked_at == [1]
