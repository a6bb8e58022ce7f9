"""The Queue view in a browser: how it reads the reasons that schedulers write."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from moorage.ui.sources.source import Source
from tests.ui.serving import Served, TableSource, example_nodes, example_pods


@pytest.mark.parametrize(
    ("message", "reasons"),
    [
        (
            "0/5 nodes are available: 2 Insufficient cpu, 3 node(s) were unschedulable. preemption: no",
            ["Insufficient cpu", "node(s) were unschedulable"],
        ),
        (
            "0/5 nodes are available: 5 quota a would be exceeded: cpu, memory.",
            ["quota a would be exceeded: cpu, memory"],
        ),
        ("waiting for a, b", ["waiting for a, b"]),
    ],
)
def test_a_message_is_divided_into_its_reasons(
    message: str, reasons: list[str], page: Page, serve: Callable[[Source], Served]
) -> None:
    page.goto(serve(TableSource(example_nodes(1), example_pods(1, 1))).at("#/queue"))
    reading = "(message) => import('/views/queue.js').then((queue) => queue.reasonsOf({ message }))"

    assert page.evaluate(reading, message) == reasons
