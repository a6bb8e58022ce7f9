"""Studies that cannot be used, and what a study is made into."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from moorage.api.decode import InputError
from moorage.simulation.generator import Generator
from moorage.simulation.run import run_simulation
from moorage.simulation.scenario import ScenarioSource, read_scenario
from moorage.simulation.settings import load_settings
from moorage.simulation.shapes import parse_shape
from moorage.sweep.figures import FIGURE_NAMES, figures_of
from moorage.sweep.plan import read_plan
from moorage.sweep.study_file import load_study
from tests.sweep.studies import STRATEGY, WEIGHT, parameter, planned, study, written


def with_parameter(**choice: Any) -> dict[str, Any]:
    return {"configurations": [{"name": "a", "parameters": [{"name": "p", "path": WEIGHT, **choice}]}]}


def scenario(**fields: Any) -> dict[str, Any]:
    return {"scenarios": [{**study()["scenarios"][0], **fields}]}


BAD: list[tuple[dict[str, Any], str]] = [
    ({"kind": "Sweep"}, "expected apiVersion moorage.io/v1alpha1 and kind Study"),
    ({"seed": 3}, "seed: unknown field; did you mean seeds?"),
    ({"seeds": 0}, "seeds: expected a number from 1 to 100000, got 0"),
    ({"seeds": "many"}, 'seeds: expected a whole number or a list of them, got "many"'),
    ({"seeds": [1, 1]}, "seeds: one is given twice"),
    ({"versions": ["1.12"]}, "versions[0]: 1.12: only 1.36 or 1.37 is possible"),
    ({"versions": [1.37]}, "versions[0]: expected text, got 1.37"),
    ({"featureGates": {"NoSuchGate": True}}, "featureGates: "),
    ({"objectives": [{"figure": "speed"}]}, 'objectives[0].figure: Unsupported value: "speed"'),
    ({"objectives": [{"figure": "cost", "goal": "up"}]}, 'objectives[0].goal: Unsupported value: "up"'),
    ({"objectives": []}, "objectives: Required value: at least one is needed"),
    ({"objectives": [{"figure": "cost"}] * 2}, 'objectives: 2 have the figure "cost"'),
    ({"configurations": [{"name": "a"}] * 2}, 'configurations: 2 have the name "a"'),
    ({"configurations": [{"file": "a"}]}, "configurations[0].name: Required value"),
    ({"configurations": [{"name": "a", "file": "no.yaml"}]}, "configurations[0]: "),
    ({"configurations": [{"name": "a", "plugins": ["no.py"]}]}, "configurations[0]: "),
    ({"search": {"type": "annealing"}}, 'search.type: Unsupported value: "annealing"'),
    ({"search": {"type": "random"}}, "search.samples: expected a whole number from 1 to 100000, got 0"),
    ({"search": {"samples": 3}}, "search.samples: a search of type grid has none; use type random"),
    (with_parameter(), "configurations[0].parameters[0]: expected either values or a range"),
    (
        with_parameter(range={"from": 1, "to": 2}),
        "configurations[0].parameters[0].range: a search of type grid needs values; use type random",
    ),
    (
        {**with_parameter(range={"from": 3, "to": 2}), "search": {"type": "random", "samples": 1}},
        "configurations[0].parameters[0].range: to is less than from",
    ),
    (
        with_parameter(values=["heavy"]),
        "configurations[0]: profiles[0].plugins.multiPoint.enabled[7].weight: expected a whole number",
    ),
    (
        {"configurations": [{"name": "a", "parameters": [parameter("p", "weights", values=[1])]}]},
        "configurations[0]: weights: unknown field",
    ),
    (scenario(cluster={"shapes": ["cpu=1"]}), "scenarios[0]: shape 'cpu=1': memory is missing"),
    (scenario(cluster={"shapes": []}), "scenarios[0]: there are no nodes"),
    (scenario(cluster={"files": ["no.yaml"]}), "scenarios[0]: "),
    (scenario(script="no.yaml"), "scenarios[0]: "),
    (scenario(workload={"generate": {"pods": 0}}), "scenarios[0].workload.generate.pods: "),
    (scenario(workload={"generate": {"pods": 1, "cpu": ["x"]}}), "scenarios[0].workload.generate.cpu[0]: "),
    (
        scenario(workload={"generate": {"pods": 1, "meanInterval": "soon"}}),
        "scenarios[0].workload.generate.meanInterval: ",
    ),
    (
        scenario(workload={"generate": {"pods": 1, "arrivals": "often"}}),
        "scenarios[0].workload.generate.arrivals: expected one of poisson, steady, bursts, diurnal, got ",
    ),
    (
        scenario(workload={"generate": {"pods": 1, "gangSize": 1}}),
        "scenarios[0].workload.generate.gangSize: expected a number of at least 2, got 1",
    ),
    (
        scenario(workload={"generate": {"pods": 1, "resources": {"example.com/gpu": ["many"]}}}),
        "scenarios[0].workload.generate.resources[example.com/gpu][0]: ",
    ),
    (scenario(workload={"files": [], "traceUnit": "cpu=x"}), "scenarios[0]: "),
    ({"seeds": 100000, "versions": ["1.36", "1.37"]}, "more than 100,000 simulations"),
]


@pytest.mark.parametrize(("fields", "problem"), BAD)
def test_a_bad_study_is_one_line_with_file_and_field(
    fields: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    file = written(tmp_path, study(**fields))
    with pytest.raises(InputError) as caught:
        read_plan(file)
    assert str(caught.value).startswith(f"{file}: {problem}")
    assert "\n" not in str(caught.value)


def test_what_is_no_study_is_an_error(tmp_path: Path) -> None:
    for text, problem in (
        ("[]", "expected one object"),
        ("a: [", "line 2: not YAML"),
        ("", "expected one object"),
    ):
        file = tmp_path / "study.yaml"
        file.write_text(text)
        with pytest.raises(InputError, match=re.escape(f"{file}: {problem}")):
            load_study(file)


def test_everything_is_combined_with_everything(tmp_path: Path) -> None:
    plan = planned(
        tmp_path,
        configurations=[
            {"name": "default"},
            {
                "name": "packed",
                "parameters": [parameter("s", STRATEGY, values=["LeastAllocated", "MostAllocated"])],
            },
        ],
        versions=["1.36", "1.37"],
        seeds=[5, 7],
    )
    assert [(row.configuration, row.values, row.kubernetes) for row in plan.rows] == [
        (name, values, version)
        for name, values in (
            ("default", {}),
            ("packed", {"s": "LeastAllocated"}),
            ("packed", {"s": "MostAllocated"}),
        )
        for version in ("1.36", "1.37")
    ]
    assert all(list(row.keys) == [5, 7] for row in plan.rows)
    assert plan.rows[0].keys == plan.rows[2].keys, "what is equal has the same keys, whatever it is called"
    assert len(plan.tasks) == 2 * 2 * 2


def test_keys_change_with_content_and_not_with_names(tmp_path: Path) -> None:
    pods, plugin, helper = tmp_path / "pods.csv", tmp_path / "mine.py", tmp_path / "amounts.py"
    pods.write_text("arrival,duration,cpu\n0,10,1\n")
    helper.write_text("AMOUNT = 5\n")
    plugin.write_text(
        "from amounts import AMOUNT\nclass Mine:\n    name = 'Mine'\n"
        "    def score(self, cycle, pod, nodes):\n        return nodes.label('a').as_int(default=AMOUNT)\n"
    )
    scenario = {**study()["scenarios"][0], "workload": {"files": ["pods.csv"]}}
    fields: dict[str, Any] = {
        "configurations": [{"name": "mine", "plugins": ["mine.py"]}],
        "scenarios": [scenario],
        "seeds": [1],
    }

    def keys(**changed: Any) -> list[str]:
        return list(planned(tmp_path, **{**fields, **changed}).tasks)

    first = keys()
    assert keys() == first
    assert keys(configurations=[{"name": "yours", "plugins": ["mine.py"]}]) == first
    assert keys(scenarios=[{**scenario, "name": "other"}]) == first
    assert keys(objectives=[{"figure": "pods.Pending"}]) == first
    seen = [first]
    changes: list[dict[str, Any]] = [
        {"seeds": [2]},
        {"versions": ["1.36"]},
        {"featureGates": {"GenericWorkload": True}},
        {"configurations": [{"name": "mine"}]},
        {"scenarios": [{**scenario, "until": "1h"}]},
        {"scenarios": [{**scenario, "restarts": False}]},
        {"scenarios": [{**scenario, "workload": {"generate": {"pods": 5}}}]},
        {"scenarios": [{**scenario, "workload": {"generate": {"pods": 5, "arrivals": "bursts"}}}]},
        {"scenarios": [{**scenario, "cluster": {"shapes": ["count=3,cpu=4,memory=8Gi"]}}]},
    ]
    for change in changes:
        seen.append(keys(**change))
    for file in (pods, plugin, helper):
        file.write_text(file.read_text().replace("0,10,1", "0,10,2").replace("5", "6").replace("'a'", "'b'"))
        seen.append(keys())
    assert len({each for (each,) in seen}) == len(seen) == 13


def test_every_figure_is_there_if_pods_were_bound() -> None:
    shapes = [parse_shape("cpu=4,memory=8Gi")]
    pending = ScenarioSource(shapes=shapes, generated=Generator(2, cpu=["64"]))
    running = ScenarioSource(shapes=shapes, generated=Generator(2, cpu=["1"]))
    settings = load_settings()
    found = figures_of(run_simulation(read_scenario(running), settings).result)
    assert tuple(found) == FIGURE_NAMES
    assert found["pods.Completed"] == 2
    none = figures_of(run_simulation(read_scenario(pending), settings).result)
    assert set(FIGURE_NAMES) - set(none) == {each for each in FIGURE_NAMES if each.startswith("waiting")}
    assert none["pods.Pending"] == 2
