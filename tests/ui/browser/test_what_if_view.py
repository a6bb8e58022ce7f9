"""The What-if view in a browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import quote

from playwright.sync_api import Page, expect

from moorage.ui.sources.source import Source
from tests.builders import HOSTNAME, Manifest, container, node, pod
from tests.ui.browser.test_cluster_view import Serve
from tests.ui.serving import Served
from tests.ui.what_if_cluster import ApiServer, page_of

HOSTILE = "<img src=x onerror=alert(1)>"
ROOM = {"cpu": "8", "memory": "16Gi", "pods": "10"}


def waiting(**spec: object) -> Manifest:
    main = container({"cpu": "2"}, image="registry.example/app:1")
    return pod("waiting", uid="waiting", containers=[main], **spec)  # type: ignore[arg-type]


def opened(page: Page, serve: Callable[[Source], Served], objects: list[Manifest], more: str = "") -> None:
    served = serve(page_of(ApiServer(objects)))
    page.goto(served.at(f"#/what-if?pod=default/waiting{more}"))


def test_a_suggestion_is_tried(page: Page, serve: Serve, axe: Callable[[Page], None]) -> None:
    opened(page, serve, [node("a", taints=["team=x:NoSchedule"], allocatable=ROOM), waiting()])
    result = page.get_by_role("region", name="What follows")
    expect(result.get_by_text("It fits nowhere, as now.")).to_be_visible()

    result.get_by_role("button", name="Try: tolerate team=x:NoSchedule", exact=True).click()

    expect(result.get_by_text("It fits nowhere now, and would be placed on a.")).to_be_visible()
    axe(page)
    page.get_by_role("button", name="Remove: tolerate team=x:NoSchedule").click()
    expect(result.get_by_text("It fits nowhere, as now.")).to_be_visible()


def test_problems_of_a_pasted_pod_are_shown(page: Page, serve: Serve, axe: Callable[[Page], None]) -> None:
    opened(page, serve, [node("a", allocatable=ROOM), waiting()])
    editor = page.get_by_role("textbox", name="Pod")
    expect(editor).to_have_value(re.compile("name: waiting"))
    result = page.get_by_role("region", name="What follows")

    editor.fill(f"apiVersion: v1\nkind: Pod\nmetadata: {{name: pasted}}\nspec:\n  '{HOSTILE}': 1\n")

    expect(page.get_by_role("listitem").filter(has_text="unknown field")).to_contain_text(HOSTILE)
    expect(result.get_by_role("status").first).to_contain_text("A text has a problem")
    axe(page)
    page.get_by_role("button", name="Take back all edits").click()
    expect(page.get_by_text("unknown field")).to_have_count(0)
    expect(result.get_by_text("It would be placed on a, as now.")).to_be_visible()


def test_another_weight_moves_a_pod(page: Page, serve: Serve) -> None:
    ssd = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    preferred = [{"weight": 1, "preference": ssd}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    nodes = [
        node("a", labels={HOSTNAME: "a"}, allocatable=ROOM),
        node("b", labels={"disk": "ssd"}, taints=["soft:PreferNoSchedule"], allocatable=ROOM),
    ]
    opened(page, serve, [*nodes, waiting(affinity=affinity)])
    page.get_by_role("button", name="Cluster changes").click()

    page.get_by_role("combobox", name="Change", exact=True).select_option("weight")
    page.get_by_label("Plugin", exact=True).fill("NodeAffinity")
    page.get_by_label("Weight", exact=True).fill("9")
    page.get_by_role("button", name="Add this change").click()

    expect(page.get_by_text("It would be placed on b instead of a.")).to_be_visible()
    change = quote('[{"kind":"weight","plugin":"NodeAffinity","weight":9}]', safe="")
    assert page.evaluate("location.hash").count(change) == 1
    page.reload()
    expect(page.get_by_text("It would be placed on b instead of a.")).to_be_visible()
