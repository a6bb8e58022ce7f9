"""Combinations of parameters, and their values in configurations."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.decode import InputError
from moorage.config.load import default_config, to_manifest
from moorage.sweep.parameters import combinations, label, with_values
from moorage.sweep.study import Parameter, Range, Search, StudyConfiguration
from tests.sweep.studies import WEIGHT

GRID = Search()
MANY = 1000


def configuration(*parameters: Parameter, name: str = "a") -> StudyConfiguration:
    return StudyConfiguration(name=name, parameters=parameters)


def values(name: str, *choices: Any) -> Parameter:
    return Parameter(name=name, path=WEIGHT, values=choices)


def drawn(name: str, start: float, to: float, **how: bool) -> Parameter:
    return Parameter(name=name, path=WEIGHT, range=Range(start=start, to=to, **how))


def random_search(samples: int, seed: int = 0) -> Search:
    return Search(type="random", samples=samples, seed=seed)


def test_a_grid_has_every_combination_once() -> None:
    found = combinations(configuration(values("a", 1, 2, 2), values("b", "x", "y")), GRID, MANY)
    assert found == [{"a": a, "b": b} for a in (1, 2) for b in ("x", "y")]


def test_a_configuration_without_parameters_is_one() -> None:
    assert combinations(configuration(), GRID, MANY) == [{}]
    assert combinations(configuration(), random_search(5), MANY) == [{}]


def test_samples_are_the_same_again_and_begin_alike_if_there_are_more() -> None:
    wanted = configuration(values("a", *range(50)), drawn("b", 0, 1))
    few, more = (combinations(wanted, random_search(samples), MANY) for samples in (5, 20))
    assert more[:5] == few == combinations(wanted, random_search(5), MANY)
    assert combinations(wanted, random_search(5, seed=1), MANY) != few
    other = configuration(*wanted.parameters, name="b")
    assert combinations(other, random_search(5), MANY) != few


def test_equal_samples_count_once_and_numbers_have_a_limit() -> None:
    assert len(combinations(configuration(values("a", 1, 2)), random_search(100), MANY)) == 2
    assert len(combinations(configuration(drawn("a", 0, 1)), random_search(100), 7)) == 7


@given(st.integers(0, 100), st.integers(0, 1000), st.booleans(), st.booleans(), st.integers(0, 9))
def test_samples_are_within_their_range(
    start: int, extent: int, is_whole: bool, is_logarithmic: bool, seed: int
) -> None:
    start += is_logarithmic
    parameter = drawn("a", start, start + extent, whole=is_whole, logarithmic=is_logarithmic)
    for sample in combinations(configuration(parameter), random_search(20, seed), MANY):
        assert start <= sample["a"] <= start + extent
        assert isinstance(sample["a"], int if is_whole else float)


def test_whole_numbers_are_drawn_alike_and_orders_of_magnitude_too() -> None:
    dice = configuration(drawn("a", 1, 6, whole=True), values("b", *range(10**6)))
    faces = [each["a"] for each in combinations(dice, random_search(6000), 6000)]
    assert all(850 < faces.count(face) < 1150 for face in range(1, 7))
    wide = configuration(drawn("a", 1, 10_000, logarithmic=True))
    sizes = [each["a"] for each in combinations(wide, random_search(1000), MANY)]
    assert 400 < sum(each < 100 for each in sizes) < 600


def test_values_are_put_where_their_paths_say() -> None:
    manifest = to_manifest(default_config())
    paths = {
        "weight": WEIGHT,
        "strategy": "profiles[default-scheduler].pluginConfig[NodeResourcesFit].args.scoringStrategy.type",
        "share": "percentageOfNodesToScore",
        "first": "profiles[0].plugins.multiPoint.enabled[0].name",
        "new": "profiles[0].pluginConfig[NodeResourcesFit].args.more",
    }
    given = {"weight": 7, "strategy": "MostAllocated", "share": 50, "first": "Mine", "new": {"a": 1}}
    changed = with_values(manifest, [Parameter(name=each, path=paths[each]) for each in paths], given)
    profile = changed["profiles"][0]
    enabled = profile["plugins"]["multiPoint"]["enabled"]
    args = next(each["args"] for each in profile["pluginConfig"] if each["name"] == "NodeResourcesFit")
    assert {"name": "NodeResourcesFit", "weight": 7} in enabled
    assert (args["scoringStrategy"]["type"], args["more"]) == ("MostAllocated", {"a": 1})
    assert (changed["percentageOfNodesToScore"], enabled[0]["name"]) == (50, "Mine")
    assert manifest == to_manifest(default_config())


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("profiles[1].schedulerName", "has no profiles[1]; the items there are default-scheduler"),
        ("profiles.0", "has no profiles.0"),
        ("profile[0]", "has no profile"),
        ("profiles[0].plugins.score.enabled", "has no profiles[0].plugins.score"),
        ("percentageOfNodesToScore[0]", "percentageOfNodesToScore is no list"),
        ("profiles[0", "expected a path such as"),
        ("", "expected a path such as"),
    ],
)
def test_a_place_that_is_not_there_is_an_error(path: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        with_values(to_manifest(default_config()), [Parameter(name="a", path=path)], {"a": 1})
    assert problem in str(caught.value)


def test_a_label_has_names_and_values() -> None:
    assert label({"weight": 3, "type": "MostAllocated", "on": True}) == "weight=3 type=MostAllocated on=true"
