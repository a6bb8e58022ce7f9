"""Whatever a client leaves out, strategies complain; they do not break."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest

from moorage.api.manifests import Manifest, copy
from moorage.apimachinery.fields import FieldError
from moorage_cluster.apiserver import kinds
from moorage_cluster.apiserver.kinds.base import StatusStrategy
from moorage_cluster.apiserver.strategy import Strategy

STRATEGIES = sorted(
    {
        each
        for module in pkgutil.iter_modules(kinds.__path__, f"{kinds.__name__}.")
        if not module.ispkg and not module.name.endswith(".catalog")  # which is about the whole server
        for _, each in inspect.getmembers(importlib.import_module(module.name), inspect.isclass)
        if issubclass(each, Strategy)
        and each.__module__ == module.name
        and each not in (Strategy, StatusStrategy)
        and not each.__name__.startswith("_")
    },
    key=lambda each: each.__name__,
)
EMPTY: list[Manifest] = [
    {"metadata": {}},
    {"metadata": {"name": "a"}, "spec": {}, "status": {}},
    {"metadata": {"name": "a", "labels": {}, "annotations": {}}, "spec": {"template": {"spec": {}}}},
]


def test_all_kinds_are_here() -> None:
    assert len(STRATEGIES) >= 38


@pytest.mark.parametrize(
    "strategy", [each() for each in STRATEGIES], ids=[each.__name__ for each in STRATEGIES]
)
@pytest.mark.parametrize("sent", EMPTY, ids=["nothing", "empty parts", "an empty template"])
def test_nothing_breaks(strategy: Strategy, sent: Manifest) -> None:
    obj: Manifest = copy(sent)
    strategy.default(obj)
    strategy.prepare_create(obj)
    problems = strategy.validate(obj)
    again: Manifest = copy(obj)
    strategy.default(again)
    strategy.prepare_update(again, obj)
    problems += strategy.validate_update(again, obj)
    status: Manifest = copy(obj)
    strategy.prepare_status(status, obj)
    problems += strategy.validate_status(status, obj)
    assert all(isinstance(each, FieldError) and str(each) for each in problems)
    assert strategy.selectable({"metadata": {}}).keys() == strategy.selectable(obj).keys()
    assert all(isinstance(value, str) for value in strategy.selectable(obj).values())
    assert isinstance(strategy.warnings(obj, None), list)
