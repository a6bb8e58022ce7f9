"""What all views share: session, theme, keyboard, width, accessibility, and strings that are not markup."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from moorage.ui.documents import NodeState, PodState
from moorage.ui.sources.source import Source
from tests.ui.browser.conftest import Complaints
from tests.ui.serving import Served, TableSource, example_nodes, example_pods

Serve = Callable[[Source], Served]
VIEWS = ("cluster", "cluster?as=table&node=node-1", "queue")
PHONE = {"width": 390, "height": 844}
RIGHT_TO_LEFT = "\u202e\u200f"
HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "\"'><script>alert(1)</script>",
    "&lt;b&gt;javascript:alert(1)",
    f"{RIGHT_TO_LEFT}gpj.exe",
    "n" * 253,
)


@pytest.fixture
def served(serve: Serve) -> Served:
    return serve(TableSource(example_nodes(30), example_pods(30, 3, pending=4)))


def test_dark_and_light_are_remembered(page: Page, served: Served) -> None:
    page.goto(served.url)
    root = page.locator("html")
    expect(root).to_have_attribute("data-theme", "light")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)

    page.get_by_role("button", name="Change between light and dark").click()
    expect(root).to_have_attribute("data-theme", "dark")
    page.reload()

    expect(root).to_have_attribute("data-theme", "dark")
    assert page.evaluate(background) != light


def test_hostile_names_and_labels_are_text(page: Page, serve: Serve) -> None:
    nodes = {
        name: NodeState(labels={name: name}, taints=(f"{name}:NoSchedule",), allocatable={"cpu": 1000})
        for name in HOSTILE
    }
    pods = {f"{name}/{name}": PodState(node=name, labels={name: name}) for name in HOSTILE}
    pods |= {f"waiting/{name}": PodState(reason="Unschedulable", message=name) for name in HOSTILE}
    served = serve(TableSource(nodes, pods, title=HOSTILE[0]))
    page.goto(served.at("#/cluster?as=table"))
    for name in HOSTILE:
        page.get_by_role("cell", name=name, exact=True).first.click()
        panel = page.get_by_role("complementary")
        expect(panel.get_by_role("heading", level=2)).to_have_text(name)
        expect(panel.get_by_role("link")).to_have_text(f"{name}/{name}")
    page.goto(f"{served.origin}/#/queue")
    for name in HOSTILE:
        expect(page.get_by_role("link", name=f"waiting/{name}", exact=True)).to_be_visible()
    assert page.locator("main img, main script, header img").count() == 0


@pytest.mark.parametrize("given", ["", "?token=wrong", "?token=%C3%A9%00"])
def test_who_has_no_token_is_told_so(page: Page, complaints: Complaints, served: Served, given: str) -> None:
    page.goto(f"{served.origin}/{given}")

    expect(page.get_by_role("alert")).to_contain_text("This address has no valid token")
    complaints.expect("401")


def test_the_token_of_an_ended_server_is_not_that_of_the_next_on_its_port(
    page: Page, complaints: Complaints
) -> None:
    with Served(TableSource(example_nodes(2))) as first:
        page.goto(first.url)
        expect(page.get_by_role("status")).to_have_text("live")
    expect(page.get_by_role("status")).to_have_text("the connection is lost; trying again")

    with Served(TableSource(example_nodes(2)), port=first.server.port):
        page.reload()
        expect(page.get_by_role("alert")).to_contain_text("This address has no valid token")
    complaints.expect("401")
    complaints.allow("net::ERR")  # the page itself has tried to connect meanwhile


def test_keys_change_view_and_theme_and_search(page: Page, served: Served) -> None:
    page.goto(served.url)
    expect(page.get_by_role("heading", level=1)).to_be_visible()

    page.keyboard.press("2")
    expect(page.get_by_role("heading", level=1)).to_have_text("4 pods wait for a node")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("1")  # is searched, and no view
    expect(page.get_by_text("1 shown")).to_be_visible()
    page.get_by_role("searchbox").blur()
    page.keyboard.press("t")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.parametrize("view", VIEWS)
def test_views_fit_a_phone(page: Page, served: Served, view: str) -> None:
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    page.goto(served.at(f"#/{view}"))
    expect(page.get_by_role("heading", level=1)).to_be_visible()

    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


@pytest.mark.parametrize("view", VIEWS)
def test_views_are_accessible_in_both_themes(
    page: Page, served: Served, axe: Callable[[Page], None], view: str
) -> None:
    page.goto(served.at(f"#/{view}"))
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    axe(page)

    page.keyboard.press("t")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    axe(page)
