"""The Decision view in a browser: a pending pod, and one that fits."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.builders import Manifest, container, node, pod
from tests.ui.browser.test_cluster_view import Serve
from tests.ui.what_if_cluster import ApiServer, page_of

ROOM = {"cpu": "8", "memory": "16Gi", "pods": "10"}
LITTLE = {"cpu": "1", "memory": "16Gi", "pods": "10"}


def opened(page: Page, serve: Serve, *nodes: Manifest) -> None:
    waiting = pod("waiting", uid="waiting", containers=[container({"cpu": "2"})])
    page.goto(serve(page_of(ApiServer([*nodes, waiting]))).at("#/decision?pod=default/waiting"))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_pending_pod_is_explained(
    page: Page, serve: Serve, axe: Callable[[Page], None], theme: str
) -> None:
    opened(page, serve, node("full", allocatable=LITTLE), node("kept", taints=["a=b:NoSchedule"]))
    expect(page.get_by_text("default/waiting fits none of 2 nodes")).to_be_visible()
    if page.evaluate("document.documentElement.dataset.theme") != theme:
        page.keyboard.press("t")

    rejected = page.get_by_role("row").filter(has_text="NodeResourcesFit")
    expect(rejected).to_contain_text("Insufficient cpu")
    expect(rejected.get_by_role("link", name="full")).to_have_attribute("href", "#/cluster?node=full")
    expect(page.get_by_role("row").filter(has_text="tolerate a=b:NoSchedule")).to_contain_text("kept")
    axe(page)

    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_scores_are_sorted_and_shown_in_each_form(page: Page, serve: Serve) -> None:
    opened(page, serve, node("large", allocatable=ROOM), node("small", allocatable={**ROOM, "cpu": "4"}))
    scores = page.get_by_role("region", name="Scores of the nodes that pass all filters")
    expect(scores.get_by_role("row").nth(1)).to_contain_text("large chosen")

    page.get_by_role("button", name="raw").click()
    scores.get_by_role("button", name="Node", exact=True).click()
    scores.get_by_role("button", name="Node ▲").click()

    expect(scores.get_by_role("row").nth(1)).to_contain_text("small")
    assert "scores=raw" in page.evaluate("location.hash")
    expect(page.get_by_role("heading", name="Why large: it leads small by")).to_be_visible()


def test_a_suggestion_leads_to_what_if(page: Page, serve: Serve) -> None:
    opened(page, serve, node("kept", taints=["a=b:NoSchedule"], allocatable=ROOM))

    page.get_by_role("link", name="Try: tolerate a=b:NoSchedule").click()

    expect(page.get_by_text("It fits nowhere now, and would be placed on kept.")).to_be_visible()
