"""The Cluster view in a browser."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from moorage.ui.documents import PodState
from moorage.ui.sources.source import Source
from tests.ui.browser.conditions import until
from tests.ui.serving import Served, TableSource, example_nodes, example_pods

Serve = Callable[[Source], Served]
# The number of colours in every 7th pixel of a canvas: tiles, fills and gaps are more than two.
COLOURS = """(canvas => {
  if (canvas === null || canvas.width === 0) return 0;
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d");
  copy.drawImage(canvas, 0, 0);
  const {data} = copy.getImageData(0, 0, canvas.width, canvas.height);
  const found = new Set();
  for (let at = 0; at < data.length; at += 28) found.add(`${data[at]} ${data[at + 1]} ${data[at + 2]}`);
  return found.size;
})(document.querySelector("canvas"))"""


def is_drawn(page: Page) -> None:
    until(page, f"{COLOURS} > 2")


def test_changes_are_shown_as_they_come(page: Page, serve: Serve) -> None:
    served = serve(TableSource(example_nodes(3), example_pods(3, 2)))
    page.goto(served.url)
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text("3 nodes, 6 pods")

    served.change(nodes={"node-2": None}, pods={"default/new": PodState(node="node-0")})

    expect(heading).to_have_text("2 nodes, 7 pods")
    expect(page.get_by_role("status")).to_have_text("live")


def test_5000_nodes_are_drawn_zoomed_and_scrolled(page: Page, serve: Serve) -> None:
    page.goto(serve(TableSource(example_nodes(5000), example_pods(5000, 4))).url)
    expect(page.get_by_role("heading", level=1)).to_have_text("5,000 nodes, 20,000 pods")
    is_drawn(page)

    for _ in range(3):
        page.get_by_role("button", name="Larger tiles").click()
    frame = page.locator(".node-map .frame")
    assert frame.evaluate("frame => frame.scrollHeight > 2 * frame.clientHeight")
    page.mouse.move(400, 500)
    page.mouse.wheel(0, 1000)

    until(page, "document.querySelector('.node-map .frame').scrollTop >= 1000")
    is_drawn(page)


def test_a_node_is_chosen_by_keyboard_and_by_click(page: Page, serve: Serve) -> None:
    page.goto(serve(TableSource(example_nodes(4, zones=1), example_pods(4, 2))).url)
    is_drawn(page)
    canvas = page.get_by_label("Map of all nodes")

    canvas.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    panel = page.get_by_role("complementary")
    expect(panel.get_by_role("heading", level=2)).to_have_text("node-1")
    expect(panel.get_by_role("link", name="default/web-2")).to_be_visible()

    canvas.click(position={"x": 20, "y": 20})
    expect(panel.get_by_role("heading", level=2)).to_have_text("node-0")
    panel.get_by_role("button", name="Close the details").click()
    expect(panel).to_have_count(0)


def test_an_address_has_all_that_is_shown(page: Page, serve: Serve) -> None:
    served = serve(TableSource(example_nodes(20), example_pods(20, 1)))
    page.goto(served.at("#/cluster?as=table&fill=memory&search=node-1&node=node-12"))

    expect(page.get_by_role("searchbox")).to_have_value("node-1")
    expect(page.get_by_label("Filled by")).to_have_value("memory")
    expect(page.get_by_role("complementary", name="Node node-12")).to_be_visible()
    expect(page.get_by_role("row")).to_have_count(1 + 11)  # the heading, node-1, node-10 … node-19
    assert "token" not in page.url


def test_the_table_sorts_by_any_column(page: Page, serve: Serve) -> None:
    pods = {f"default/web-{number}": PodState(node="node-2") for number in range(3)}
    page.goto(serve(TableSource(example_nodes(12), pods)).at("#/cluster?as=table"))
    first = page.locator("tbody tr:not([aria-hidden]) td").first
    expect(first).to_have_text("node-0")

    page.get_by_role("button", name="Pods").click()
    expect(first).to_have_text("node-2")
    expect(page.get_by_role("columnheader", name="Pods")).to_have_attribute("aria-sort", "descending")

    page.get_by_role("button", name="Node").click()
    page.get_by_role("button", name="Node").click()
    expect(first).to_have_text("node-11")


# Counts frames that the page asks for, and lets a test say whether it is visible.
INSTRUMENTED = """
window.frames_asked = 0;
const ask = requestAnimationFrame.bind(window);
window.requestAnimationFrame = (work) => { window.frames_asked += 1; return ask(work); };
window.is_hidden = false;
Object.defineProperty(Document.prototype, "hidden", {get: () => window.is_hidden});
"""
SHOWN = "window.is_hidden = %s; document.dispatchEvent(new Event('visibilitychange'))"


def landed(served: Served, batches: int) -> None:
    assert isinstance(served.source, TableSource)
    for number in range(batches):
        pods = {f"new/pod-{number}-{node}": PodState(node=f"node-{node}") for node in range(100)}
        served.source.change({}, pods)


def test_many_changes_are_drawn_in_few_frames(page: Page, serve: Serve) -> None:
    page.add_init_script(INSTRUMENTED)
    served = serve(TableSource(example_nodes(200), example_pods(200, 1)))
    page.goto(served.url)
    is_drawn(page)
    page.evaluate("window.frames_asked = 0")

    served.in_loop(lambda: landed(served, batches=100))

    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text("200 nodes, 10,200 pods")
    # One for the changes, and a few for flashes and numbers; flashes that fade would take dozens.
    assert page.evaluate("window.frames_asked") <= 10


def test_a_hidden_page_reads_nothing_until_it_is_shown(page: Page, serve: Serve) -> None:
    page.add_init_script(INSTRUMENTED)
    served = serve(TableSource(example_nodes(3), example_pods(3, 2)))
    page.goto(served.url)
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text("3 nodes, 6 pods")

    page.evaluate(SHOWN % "true")
    served.change(pods={"default/new": PodState(node="node-0")})
    other = page.context.new_page()
    other.goto(served.url)
    expect(other.get_by_role("heading", level=1)).to_have_text("3 nodes, 7 pods")
    expect(heading).to_have_text("3 nodes, 6 pods")

    page.evaluate(SHOWN % "false")
    expect(heading).to_have_text("3 nodes, 7 pods")
