"""The arguments of NodeRequest: what is refused, and the rules for plugins."""

from __future__ import annotations

from typing import Any

import pytest

from moorage import Handle, RegistryError, default_registry
from moorage.testing import check_plugin

SMALL = {"name": "small", "pricePerHour": 1, "resources": {"cpu": "4", "memory": "8Gi"}}


@pytest.mark.parametrize(
    ("args", "error"),
    [
        pytest.param({}, "args.shapes: Required value", id="no shapes"),
        pytest.param({"shapes": []}, "args: shapes: there are none", id="an empty catalogue"),
        pytest.param(
            {"shapes": [{**SMALL, "pricePerHour": 0}]},
            r"args: shapes\[0\]: pricePerHour: 0: expected a number above 0",
            id="a price of nothing",
        ),
        pytest.param({"shapes": [{**SMALL, "resources": {"cpu": "much"}}]}, "args.shapes", id="no quantity"),
        pytest.param({"shapes": [SMALL], "choice": "Best"}, "args.choice", id="no rule"),
        pytest.param({"shapes": [SMALL], "maxNodes": -1}, "args: maxNodes: -1: expected", id="maxNodes"),
        pytest.param(
            {"shapes": [SMALL], "batchWindow": "-1s"}, "args: batchWindow: .* negative", id="window"
        ),
        pytest.param({"shapes": [SMALL], "coolDown": "-1s"}, "args: coolDown: .* negative", id="cool-down"),
        pytest.param(
            {"shapes": [SMALL], "initialBackoff": "0s"},
            "args: initialBackoff: .* expected a duration above 0",
            id="no backoff",
        ),
        pytest.param(
            {"shapes": [SMALL], "initialBackoff": "10s", "maxBackoff": "5s"},
            "args: maxBackoff: shorter than initialBackoff",
            id="backoffs in the wrong order",
        ),
        pytest.param({"shapes": [SMALL], "webhook": {}}, "args.webhook", id="a webhook without a URL"),
        pytest.param(
            {"shapes": [SMALL], "webhook": {"url": "nodes"}},
            "args.webhook: 'nodes' is not a URL",
            id="no URL",
        ),
        pytest.param(
            {"shapes": [SMALL], "webhook": {"url": "http://a/", "timeout": "0s"}},
            "args: webhook.timeout: .* above 0",
            id="no time",
        ),
        pytest.param(
            {"shapes": [SMALL], "webhook": {"url": "http://a/", "timeuot": "1s"}}, "timeuot", id="a typo"
        ),
    ],
)
def test_wrong_arguments(args: Any, error: str) -> None:
    with pytest.raises(RegistryError, match=error):
        default_registry().make("NodeRequest", args, Handle())


def test_it_keeps_the_rules_for_plugins() -> None:
    report = check_plugin(default_registry()["NodeRequest"], args={"shapes": [SMALL]})
    assert report.ok, report
