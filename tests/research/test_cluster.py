"""Clusters in Python: asked, changed and simulated, also where an event loop is running."""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

import moorage
from moorage import Cluster, Generator, InputError
from moorage.simulation.results import SimulationResult
from moorage.simulation.run import run_simulation
from moorage.simulation.scenario import Scenario
from tests.builders import make_pod, node
from tests.research.making import pod
from tests.simulation.simulating import nodes, settings

ROOT = Path(__file__).parent.parent.parent
EXAMPLE = ROOT / "examples" / "cluster.yaml"
SHOP = ROOT / "examples" / "pod.yaml"
RENDER = ROOT / "examples" / "pending.yaml"

BIG, SMALL = node("big"), node("small", allocatable={"cpu": "1", "memory": "1Gi", "pods": "3"})

URGENT = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "urgent"},
    "value": 1000,
}


def cluster(*manifests: dict[str, Any], **options: Any) -> Cluster:
    return Cluster.from_yaml([BIG, SMALL, *manifests], **options)


def test_a_cluster_is_read_from_text_files_and_python(tmp_path: Path) -> None:
    manifests = yaml.safe_load(EXAMPLE.read_text())
    dump = tmp_path / "cluster.json.gz"
    dump.write_bytes(gzip.compress(json.dumps(manifests).encode()))
    sources = [
        EXAMPLE,
        str(EXAMPLE),
        EXAMPLE.read_text(),
        json.dumps(manifests),
        manifests,
        manifests["items"],
    ]
    read = [
        *map(Cluster.from_yaml, sources),
        Cluster.from_dump(dump),
        Cluster.from_dump(str(EXAMPLE), RENDER),
    ]
    assert {repr(each) for each in read[:-1]} == {"cluster of 8 nodes with 3 pods, and 0 pending"}
    assert [each.key for each in read[-1].pending] == ["default/render-7"]
    assert [each.objects for each in read[1:6]] == [read[0].objects] * 5


def test_decisions_are_those_of_decide_and_change_nothing() -> None:
    there = Cluster.from_yaml(EXAMPLE)
    before = there.objects
    made = there.decide(SHOP)
    decision = moorage.decide(yaml.safe_load(SHOP.read_text()), yaml.safe_load(EXAMPLE.read_text())["items"])
    assert (made.node, made.message, made.tied) == (decision.node, "", 1)
    assert made.scores == {name: decision.scores_of(name) for name in decision.feasible.names}
    assert sorted(made.feasible) == sorted(decision.feasible.names)
    assert made.reasons["cadiz-3"] == "NodeResourcesFit: Insufficient cpu"
    assert len(made.feasible) + len(made.reasons) == 8
    assert repr(made) == "default/shop-3 goes to bergen-1 (4 of 8 nodes feasible)"
    assert there.decide("shop-1").node == "amsterdam-1"
    assert there.objects == before


def test_scheduled_pods_are_seen_by_the_next_ones() -> None:
    there = cluster()
    template = {**pod("", "1500m"), "metadata": {"generateName": "web-"}}
    made = [there.schedule(template) for _ in range(3)]
    assert [each.node for each in made] == ["big", "big", None]
    assert [each.pod for each in made] == [f"default/web-0000{number}" for number in range(3)]
    assert [each.key for each in there.pods] == ["default/web-00000", "default/web-00001"]
    assert [each.key for each in there.pending] == ["default/web-00002"]
    assert {each.name: each.free("cpu") for each in there.nodes} == {"big": 1000, "small": 1000}
    assert made[2].message.startswith("0/2 nodes are available: 2 Insufficient cpu.")
    there.schedule(pod("web-00002", "1"))
    assert (len(there.pods), there.pending) == (3, [])


def test_a_pod_that_is_scheduled_again_leaves_its_node() -> None:
    there = cluster(pod("web", "1", on="small"))
    assert there.schedule("web").node == "big"
    assert {each.name: each.pods for each in there.nodes} == {"big": ("default/web",), "small": ()}
    assert there.schedule(pod("web", "9")).node is None
    assert (there.pods, [each.key for each in there.pending]) == ([], ["default/web"])


def test_victims_of_preemption_are_named_and_stay() -> None:
    there = cluster(URGENT, pod("low", "3", on="big"))
    made = there.schedule(pod("high", "2", priority_class_name="urgent"))
    assert (made.node, made.nominated, made.victims) == (None, "big", ("default/low",))
    assert "evicting default/low would make room on big" in repr(made)
    assert [each.key for each in there.pods] == ["default/low"]
    result = there.simulate()
    assert [(each.name, each.node) for each in result.placements if each.name == "high"] == [("high", "big")]


def test_explanations_name_what_would_help() -> None:
    there = Cluster.from_yaml(EXAMPLE)
    explained = there.explain(RENDER)
    assert explained.verdict == "default/render-7 fits none of 8 nodes"
    assert str(explained.help[0]) == "request 1 less cpu (5 now, 4 then)"
    assert repr(explained).startswith("default/render-7 fits none of 8 nodes\n0/8 nodes are available: ")
    assert explained._repr_html_().startswith("<pre>default/render-7 fits none")
    assert explained.to_polars()["opens"][0] == "cadiz-1"
    assert set(explained.to_pandas("rejected")["plugin"]) >= {"NodeAffinity", "NodeResourcesFit"}
    bound = there.explain("default/shop-1")
    assert bound.node == "amsterdam-1"
    assert bound.to_polars("feasible")["node"][0] == "amsterdam-1"
    assert repr(there) == "cluster of 8 nodes with 3 pods, and 0 pending"


def test_a_simulation_is_that_of_the_command() -> None:
    generator = Generator(40, 1.0, 60.0)
    there = Cluster.from_shapes("count=3,cpu=4,memory=32Gi")
    expected = run_simulation(Scenario(nodes(3), generator.arrivals), settings(seed=7)).result
    for workload in (generator, {"count": 40, "interval_seconds": 1.0, "duration_seconds": 60.0}):
        result = there.simulate(workload, seed=7)
        fields = {name: getattr(result, name) for name in SimulationResult.__struct_fields__}
        assert msgspec.json.encode(SimulationResult(**fields)) == msgspec.json.encode(expected)
    assert there.simulate(generator, seed=8) != result
    assert repr(result) == (
        f"{moorage.Duration(result.seconds)} simulated: 40 pods, 40 completed; "
        f"they waited {result.waiting_seconds.mean if result.waiting_seconds else 0:,.1f} s on average"
    )


def test_workloads_are_manifests_pods_and_traces(tmp_path: Path) -> None:
    there = cluster(pod("waiting", "1"))
    trace = tmp_path / "trace.csv"
    trace.write_text("arrival,duration,cpu\n0,5,1\n2,5,2\n")
    web = pod("web", "2")
    made = [
        there.simulate(),
        there.simulate(web),
        there.simulate(yaml.safe_dump(web)),
        there.simulate([make_pod("web", requests={"cpu": "2"})]),
        there.simulate(trace),
        there.simulate(str(trace), until="3s"),
    ]
    names = [[each.name for each in result.placements] for result in made]
    assert names == [["waiting"], *[["waiting", "web"]] * 3, *[["waiting", "pod-2", "pod-3"]] * 2]
    assert [result.seconds for result in made[-2:]] == [pytest.approx(7 + 1), 3.0]


def test_nodes_follow_a_script_and_other_configurations_decide() -> None:
    there = cluster()
    web = pod("web", "1")
    drained = there.simulate(web, script=[{"at": "10s", "drain": "big"}], until=60)
    assert [(each.node, each.outcome) for each in drained.placements] == [
        ("big", "Evicted"),
        ("small", "Running"),
    ]
    once = there.simulate(web, script=[{"at": "10s", "drain": "big"}], until=60, restarts_pods=False)
    assert len(once.placements) == 1
    most_allocated = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - {name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}
  plugins: {score: {disabled: [{name: NodeResourcesBalancedAllocation}]}}
"""
    packed = there.simulate(web, config=most_allocated)
    assert [each.node for each in packed.placements] == ["small"]
    assert cluster(config=most_allocated).decide(web).node == "small"
    assert there.decide(web).node == "big"


class Small:
    """Everything goes to the small node."""

    name = "Small"

    def filter_node(self, cycle: Any, pod: Any, node: moorage.NodeView) -> str | None:
        return None if node.name == "small" else "node(s) were not small"


def test_plugins_decide_everywhere() -> None:
    there = cluster(plugins=[Small])
    web = pod("web", "1")
    assert there.decide(web).reasons == {"big": "Small: node(s) were not small"}
    assert there.copy().simulate(web).placements[0].node == "small"
    default = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    assert there.simulate(web, config=default).placements[0].node == "small"


def test_a_copy_is_a_cluster_of_its_own() -> None:
    there = cluster(version="1.36", seed=3)
    other = there.copy()
    other.schedule(pod("web"))
    assert (len(there.pods), len(other.pods)) == (0, 1)


def test_frames_have_a_row_for_each_pod() -> None:
    result = cluster().simulate([pod("web", "1"), pod("large", "8")])
    placements = result.to_pandas()
    assert list(placements["name"]) == ["web", "large"]
    assert list(placements["outcome"]) == ["Running", "Pending"]
    assert result.to_polars("nodes")["name"].to_list() == ["big", "small"]
    assert result.to_polars("pending")["pods"].to_list() == [1]
    assert "<th>waiting_seconds</th>" in result._repr_html_()
    assert result.to_polars("course").height == result.to_pandas("course").shape[0]
    decided = cluster().decide(pod("web"))
    assert set(decided.to_pandas()["node"]) == {"big", "small"}
    assert decided.to_polars()["NodeResourcesFit"].null_count() == 0
    with pytest.raises(KeyError, match="there is no table Placements; there is placements, course"):
        result.to_pandas("Placements")


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    made = cluster().decide(pod("web"))
    for name in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ImportError, match=f"^{name} is not installed: pip install {name}$"):
            getattr(made, f"to_{name}")()


def test_everything_works_where_a_loop_is_running() -> None:
    async def notebook() -> list[str | None]:
        there = cluster()
        with there.simulation(pod("web")) as simulation:
            simulation.step()
            simulation.place("small")
            stepped = simulation.run()
        return [
            there.schedule(pod("web")).node,
            there.decide(pod("other")).node,
            there.explain(pod("other")).node,
            there.simulate(pod("other")).placements[0].node,
            stepped.placements[0].node,
        ]

    assert asyncio.run(notebook()) == ["big", "big", "big", "big", "small"]


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: Cluster.from_yaml("nowhere.yaml"), "nowhere.yaml: No such file or directory"),
        (lambda: Cluster.from_yaml("kind: [\n"), "text: line 2: not YAML: .*"),
        (lambda: Cluster.from_yaml([pod("web")]), "there are no nodes in it"),
        (lambda: Cluster.from_shapes("count=1"), "shape 'count=1': cpu is missing"),
        (lambda: cluster(version="1.2"), "version: .*"),
        (lambda: cluster(config="x: 1\n"), "config: .*"),
        (lambda: cluster().decide("web"), "web: No such file or directory"),
        (lambda: cluster().decide([pod("a"), pod("b")]), "pod: expected the manifest of one Pod, .*"),
        (lambda: cluster().decide(BIG), "pod: expected manifests of Pods, .*"),
        (lambda: cluster().simulate({"number": 3}), "workload: unknown field number; expected count, .*"),
        (lambda: cluster().simulate({"seed": 3, "count": 1}), "workload: unknown field seed; .*"),
        (lambda: cluster().simulate({}), "workload: count is missing; .*"),
        (lambda: cluster().simulate(until="soon"), "until: .*"),
        (lambda: cluster().simulate(until=-1), "until: -1 is negative"),
        (lambda: cluster().simulate(script=[{"at": "1h"}]), "script: event 1: expected one action of .*"),
        (lambda: cluster().simulate(script=[{"at": "0s", "drain": "no"}]), "script: event 1: drain: .*"),
    ],
)
def test_bad_input_is_one_line(call: Any, line: str) -> None:
    with pytest.raises(InputError, match=f"^{line}$"):
        call()
