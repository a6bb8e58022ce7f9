"""The arguments of LoadAware: what is allowed, and what an error says."""

from __future__ import annotations

from typing import Any

import pytest

from moorage import Handle, RegistryError, default_registry, parse_config
from moorage.framework.runtime.framework import Framework
from tests.optional_plugins.load_aware.measuring import configuration

PROMETHEUS = {"url": "https://prometheus:9090"}


def made(args: Any) -> Framework:
    (profile,) = parse_config(configuration(args), "test").profiles
    return Framework(profile, default_registry(), Handle())


ALLOWED = {
    "nothing": {},
    "no threshold": {"thresholds": {"cpu": None, "memory": None}},
    "one resource": {"weights": {"memory": 0}},
    "a curve with its top in the middle": {
        "shape": [
            {"utilization": 0, "score": 4},
            {"utilization": 40, "score": 10},
            {"utilization": 100, "score": 0},
        ]
    },
    "Prometheus": {"prometheus": {**PROMETHEUS, "caFile": "/ca", "window": "2m"}},
}


@pytest.mark.parametrize("args", ALLOWED.values(), ids=ALLOWED)
def test_allowed(args: Any) -> None:
    assert "LoadAware" in made(args).plugins


WRONG: dict[str, tuple[Any, str]] = {
    "a threshold of more than all": (
        {"thresholds": {"cpu": 101}},
        "thresholds.cpu: 101 is not in the range [1, 100]",
    ),
    "a threshold of nothing": (
        {"thresholds": {"memory": 0}},
        "thresholds.memory: 0 is not in the range [1, 100]",
    ),
    "another resource": ({"thresholds": {"gpu": 50}}, "args.thresholds: object contains unknown field `gpu`"),
    "no weight": ({"weights": {"cpu": 0, "memory": 0}}, "weights: all are 0"),
    "a negative estimate": (
        {"estimates": {"cpu": -1}},
        "estimates.cpu: -1 is not in the range [0, 1000]",
    ),
    "a short interval": ({"interval": "10ms"}, "interval: 10ms is shorter than 1s"),
    "no timeout": ({"timeout": "0s"}, "timeout: 0s is not longer than 0s"),
    "an age below the interval": (
        {"maxAge": "5s"},
        "maxAge: 5s is shorter than interval, 15s",
    ),
    "a negative warm-up": ({"warmUp": "-1s"}, "warmUp: -1s is negative"),
    "no duration": (
        {"interval": 15},
        "args.interval: expected a duration (like 15s, 1m30s",
    ),
    "an empty shape": ({"shape": []}, "shape: at least one point is needed"),
    "a shape that goes back": (
        {"shape": [{"utilization": 50, "score": 1}, {"utilization": 50, "score": 11}]},
        "shape[1].score: 11 is not in the range [0, 10]; "
        "shape[1].utilization: 50 is not larger than the one before",
    ),
    "Prometheus without a URL": ({"prometheus": {}}, "args.prometheus: object missing required field `url`"),
    "an address that is none": (
        {"prometheus": {"url": "prometheus:9090"}},
        "prometheus: 'prometheus:9090' is not a URL such as",
    ),
    "an empty query": ({"prometheus": {**PROMETHEUS, "cpuQuery": ""}}, "prometheus.cpuQuery: it is empty"),
    "a CA for plain HTTP": (
        {"prometheus": {"url": "http://prometheus", "caFile": "/ca"}},
        "prometheus: a CA file (/ca) is of no use for a URL with http",
    ),
    "no window": (
        {"prometheus": {**PROMETHEUS, "window": "0s"}},
        "prometheus.window: 0s is shorter than 1s",
    ),
}


@pytest.mark.parametrize(("args", "message"), WRONG.values(), ids=WRONG)
def test_wrong(args: Any, message: str) -> None:
    with pytest.raises(RegistryError) as raised:
        made(args)
    assert str(raised.value).startswith("plugin LoadAware: args")
    assert message in str(raised.value)


def test_the_default_arguments_are_allowed() -> None:
    made({})
