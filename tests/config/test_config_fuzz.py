"""Whatever a file says, loading and converting answer with a result or with problems, one line each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moorage.config.args import ARGS_BY_PLUGIN
from moorage.config.convert import convert_config
from moorage.config.load import OLD_API_VERSIONS, ConfigError, parse_config, read_document, to_manifest
from moorage.config.types import API_VERSION, KIND

T = TypeVar("T")
DATA = Path(__file__).parent / "data"
SAMPLES = [read_document(path) for path in sorted(DATA.iterdir())]
NEW = [convert_config(sample)[0] for sample in SAMPLES]

NAMES = [
    *ARGS_BY_PLUGIN,
    "*",
    "NodeLabel",
    "SelectorSpread",
    "NodeResourcesMostAllocated",
    "EBSLimits",
    "Mine",
]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=5),
    st.sampled_from([*NAMES, "15s", "-1s", "List", "DoesNotExist"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["name", "weight", "args", "x"]), inner)
    ),
    max_leaves=6,
)


@st.composite
def damaged(draw: st.DrawFn, samples: list[Any]) -> Any:
    """A good document of which one value, somewhere, is replaced by any other."""

    def damage(value: Any) -> Any:
        if isinstance(value, dict) and value and draw(st.integers(0, 9)):
            key = draw(st.sampled_from(sorted(value)))
            return {**value, key: damage(value[key])}
        if isinstance(value, list) and value and draw(st.integers(0, 9)):
            index = draw(st.integers(0, len(value) - 1))
            return [*value[:index], damage(value[index]), *value[index + 1 :]]
        return draw(VALUES)

    document = draw(st.sampled_from(samples))
    key = draw(st.sampled_from(sorted(set(document) - {"apiVersion", "kind"})))
    return {**document, key: damage(document[key])}


QUIET = settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.too_slow])


def outcome(act: Callable[[], T]) -> T | None:
    """What an action returns, or None where it fails as it should."""
    try:
        return act()
    except ConfigError as error:
        lines = error.problems
    assert lines
    assert all(line.startswith("file: ") and "\n" not in line for line in lines)
    return None


@QUIET
@given(damaged(NEW))
def test_loading_any_document(document: Any) -> None:
    config = outcome(lambda: parse_config(document, "file"))
    if config is not None:
        assert parse_config(to_manifest(config)) == config


@QUIET
@given(damaged(SAMPLES))
def test_converting_any_document(document: Any) -> None:
    result = outcome(lambda: convert_config(document, "file"))
    if result is not None:
        converted, notes = result
        assert parse_config(converted).profiles
        assert all("\n" not in note for note in notes)


@pytest.mark.parametrize("version", [*OLD_API_VERSIONS, API_VERSION])
def test_the_smallest_document_of_each_version(version: str) -> None:
    converted, _ = convert_config({"apiVersion": version, "kind": KIND})
    assert converted == {"apiVersion": API_VERSION, "kind": KIND}
