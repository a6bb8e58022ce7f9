"""The costs of evaluating expressions, compared with those of Kubernetes v1.36.4.

`facts.json` has, for each expression, what kube-apiserver answered to a claim with it (None: accepted), what
its CEL environment estimated, and what evaluating it cost for the device of `test_cel`: "cancelled" past the
limit, None where the expression fails.
"""

from __future__ import annotations

import json
from pathlib import Path

from moorage.cel.budget import Budget, CostLimitError, WorkBudget
from moorage.cel.logic import BUDGET
from moorage.cel.program import CompileError, compile_selector
from tests.cel.test_device_selectors import FACTS

ROWS = json.loads((Path(__file__).parent / "facts.json").read_text())
"""Known differences are left out: `NOT_SUPPORTED`, and `UNORDERED`, which end a loop over a map early."""

NOT_SUPPORTED = {
    "has(device.driver)",
    "1 < 1.5",
    "google.protobuf.Int32Value{value: 1} == 1",
    "(" * 249 + "true" + ")" * 249,
}
UNORDERED = ".exists(n"
NO_TIMES = 'timestamp("2020-01-01T00:00:00Z").getFullYear() == 2020'
FEW = 50_000
"""Loops that cost more are left out here: they take their time."""


def test_what_is_not_supported_is_refused_when_it_is_compiled() -> None:
    for expression in NOT_SUPPORTED:
        try:
            compile_selector(expression)
        except CompileError:
            continue
        raise AssertionError(expression)


def test_costs_are_kubernetes() -> None:
    for row in ROWS:
        expression = row["expression"]
        if row["cost"] is None or expression in {*NOT_SUPPORTED, NO_TIMES} or UNORDERED in expression:
            continue
        if "all(" not in expression or (row["cost"] != "cancelled" and row["cost"] < FEW):
            assert cost(expression) == row["cost"], row


def cost(expression: str) -> int | str:
    budget = Budget(WorkBudget(10**9))
    try:
        compile_selector(expression)._evaluate({**FACTS.variables(), BUDGET: budget})
    except CostLimitError:
        return "cancelled"
    return budget.cost
