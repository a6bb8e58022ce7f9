"""The Cluster view in a browser."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from moorage.ui.documents import PodState
from moorage.ui.sources.source import Source
from tests.ui.serving import Served, TableSource, example_nodes, example_pods

Serve = Callable[[Source], Served]


def test_changes_are_shown_as_they_come(page: Page, serve: Serve) -> None:
    served = serve(TableSource(example_nodes(3), example_pods(3, 2)))
    page.goto(served.url)
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text("3 nodes, 6 pods")

    served.change(nodes={"node-2": None}, pods={"default/new": PodState(node="node-0")})

    expect(heading).to_have_text("2 nodes, 7 pods")
