"""Shapes, scripts and annotations: what is read, and what is wrong with bad ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.api.decode import InputError
from moorage.api.quantity import parse_quantity
from moorage.simulation.generator import Generator
from moorage.simulation.script import ScriptEvent, read_script
from moorage.simulation.shapes import PRICE, NodeShape, nodes_of, parse_shape
from moorage.simulation.workload import in_order
from tests.simulation.simulating import arrivals, manifest


def test_arrivals_must_be_in_order() -> None:
    early, late = arrivals(manifest("early", at="1m"), manifest("late", at="2m"))
    assert list(in_order([early, late])) == [early, late]
    with pytest.raises(
        InputError, match="pod default/early: arrives at 60 s, but the pod before it at 120 s"
    ):
        list(in_order([late, early]))


@pytest.mark.parametrize(
    ("annotation", "problem"), [("soon", "invalid duration"), ("-1s", "-1s is negative")]
)
def test_bad_annotations_are_named(annotation: str, problem: str) -> None:
    with pytest.raises(InputError, match=f"pod default/a: annotation moorage.io/arrival: {problem}"):
        arrivals(manifest("a", at=annotation))


def test_shapes_have_resources_zones_and_a_price() -> None:
    shape = parse_shape("name=gpu,count=2,cpu=8,memory=64Gi,nvidia.com/gpu=4,zones=2,price=1.5")
    first, second = shape.nodes()
    assert [first.name, second.name] == ["gpu-0", "gpu-1"]
    assert [each.labels["topology.kubernetes.io/zone"] for each in (first, second)] == ["zone-0", "zone-1"]
    assert first.status.allocatable["nvidia.com/gpu"] == parse_quantity("4")
    assert first.status.allocatable["pods"] == parse_quantity("110")
    assert first.metadata.annotations == {PRICE: "1.5"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("cpu", "'cpu' is not KEY=VALUE"),
        ("cpu=1", "memory is missing"),
        ("cpu=1,memory=1Gi,cpu=2", "cpu is given twice"),
        ("cpu=1,memory=1Gi,count=-1", "count=-1: expected a number of at least 0"),
        ("cpu=1,memory=1Gi,zones=0", "zones=0: expected a number of at least 1"),
        ("cpu=1,memory=1Gi,price=free", "price=free: expected a number of at least 0"),
        ("cpu=much,memory=1Gi", "resource cpu: "),
    ],
)
def test_bad_shapes_are_named(text: str, problem: str) -> None:
    with pytest.raises(InputError) as error:
        parse_shape(text)
    assert problem in str(error.value)


def test_shapes_need_names_of_their_own() -> None:
    shape = NodeShape(count=1, resources={"cpu": "1", "memory": "1Gi"})
    with pytest.raises(InputError, match="two shapes have the same name"):
        nodes_of([shape, shape])


def test_a_script_is_read_in_the_order_of_time(tmp_path: Path) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text("- {at: 2h, drain: node-3}\n- {at: 90s, fail: zone-0}\n")
    assert read_script(path) == [
        ScriptEvent(90, "fail", "zone-0", f"{path}: event 2"),
        ScriptEvent(7200, "drain", "node-3", f"{path}: event 1"),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("drain: node-3", "expected a list of events"),
        ("- drain: node-3", "event 1: expected an event such as"),
        ("- {at: 1h}", "event 1: expected one action of cordon, drain"),
        ("- {at: 1h, explode: node-3}", "expected one action of cordon, drain"),
        ("- {at: 1h, drain: 3}", "event 1: drain: expected a name, not 3"),
        ("- {at: soon, drain: a}", "event 1: at: "),
        ("- {at: -1h, drain: a}", "event 1: at: -1h is negative"),
        ("- {at: 1h, add: cpu=1}", "memory is missing"),
        ("- {at: 1h", "not YAML: "),
    ],
)
def test_bad_scripts_are_named(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_script(path)
    assert problem in str(error.value)


def test_generated_pods_have_the_means_that_were_asked_for() -> None:
    generated = list(Generator(4000, interval_seconds=2.0, duration_seconds=300.0).arrivals(seed=3))
    durations = [each.duration_seconds or 0.0 for each in generated]
    assert generated[-1].at_seconds / len(generated) == pytest.approx(2.0, rel=0.1)
    assert sum(durations) / len(durations) == pytest.approx(300, rel=0.1)
    assert [each.at_seconds for each in generated] == sorted(each.at_seconds for each in generated)


def test_generated_pods_may_all_arrive_at_the_start_and_stay() -> None:
    generated = list(Generator(3, interval_seconds=0, duration_seconds=0, cpu=["1"]).arrivals(seed=1))
    assert [(each.at_seconds, each.duration_seconds) for each in generated] == [(0, None)] * 3
