"""How fast the page is at 5,000 nodes and 20,000 pods, measured in the browser: `python -m bench.page`.

    --nodes N        how many nodes [5000]
    --pods-per-node  how many pods each has [4]
    --rounds N       how often each action is done [10]
    --burst          what watching pages cost a scheduler instead: see bench/page_burst.py
    --pods N         of a burst [10000]
    --pages N        that watch it [3]

A time is from an action to the second frame after it: what it changed is painted then.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from statistics import median

from playwright.sync_api import Page, sync_playwright

from bench.page_burst import table
from moorage.ui.documents import PodState
from tests.ui.browser.conditions import until
from tests.ui.browser.launch import VIEWPORT, launched
from tests.ui.serving import Served, TableSource, example_nodes, example_pods

# Runs before the page's scripts: notes when the map of nodes has been painted, and every long task.
OBSERVER = """
window.measured = {drawn: 0, tasks: []};
new PerformanceObserver((list) => {
  for (const task of list.getEntries()) window.measured.tasks.push(task.duration);
}).observe({entryTypes: ["longtask"]});
const look = () => {
  if (!(document.querySelector("canvas")?.width > 0)) return requestAnimationFrame(look);
  requestAnimationFrame(() => requestAnimationFrame(() => (window.measured.drawn = performance.now())));
};
requestAnimationFrame(look);
"""
TIMED = """async () => {
  const begin = performance.now();
  %s;
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  return performance.now() - begin;
}"""
FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
KEY = (
    "document.querySelector('canvas').dispatchEvent(new KeyboardEvent('keydown', {key: '%s', bubbles: true}))"
)
FILL = """
const choice = document.querySelectorAll("form.tools select")[0];
choice.value = choice.options[(choice.selectedIndex + 1) % 2].value;
choice.dispatchEvent(new Event("change", {bubbles: true}))
"""
SEARCH = """
const search = document.querySelector("[data-search]");
search.value = `node-${Math.floor(1000 * Math.random())}`;
search.dispatchEvent(new Event("input", {bubbles: true}))
"""
MAP_ACTIONS = {
    "choose the next node": KEY % "ArrowRight",
    "choose the node below": KEY % "ArrowDown",
    "larger or smaller tiles": "document.querySelector('.zoom button:last-child').click()",
    "scroll": "document.querySelector('.frame').scrollTop += 200",
    "search": SEARCH,
    "fill by another resource": FILL,
    "light or dark": "dispatchEvent(new KeyboardEvent('keydown', {key: 't'}))",
}
TABLE_ACTIONS = {
    "sort the table": "document.querySelectorAll('button.sort')[1].click()",
    "scroll the table": "document.querySelector('.virtual-table').scrollTop += 3000",
}


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description="Measure the page in a browser.")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods-per-node", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--burst", action="store_true")
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--pages", type=int, default=3)
    chosen = parser.parse_args()
    if chosen.burst:
        measure_bursts(chosen.nodes, chosen.pods, chosen.pages, chosen.rounds)
        return
    pods = example_pods(chosen.nodes, chosen.pods_per_node)
    print(f"{chosen.nodes:,} nodes, {len(pods):,} pods, {chosen.rounds} rounds; milliseconds")
    print(f"{'':<34}{'median':>8}{'most':>8}")
    with Served(TableSource(example_nodes(chosen.nodes), pods)) as served, sync_playwright() as playwright:
        browser = launched(playwright)
        for name, times in measured(browser.new_page(viewport=VIEWPORT), served, chosen.rounds):
            print(f"{name:<34}{median(times):>8.0f}{max(times):>8.0f}")
        browser.close()


def measure_bursts(nodes: int, pods: int, pages: int, rounds: int) -> None:
    """Print what watching pages cost a scheduler."""
    with sync_playwright() as playwright:
        browser = launched(playwright)
        for each in table(browser, nodes, pods, pages, rounds):
            print(each, flush=True)
        browser.close()


def measured(page: Page, served: Served, rounds: int) -> Iterator[tuple[str, list[float]]]:
    """The times of each action."""
    page.add_init_script(OBSERVER)
    paints, drawings = [], []
    for _ in range(rounds):
        page.goto(served.url)
        until(page, "window.measured.drawn > 0")
        paints.append(page.evaluate(FIRST_PAINT))
        drawings.append(page.evaluate("window.measured.drawn"))
    yield "first paint", paints
    yield "all nodes drawn", drawings
    for name, action in MAP_ACTIONS.items():
        yield name, [page.evaluate(TIMED % action) for _ in range(rounds)]
    yield "longest task, as 1,000 pods land", [_landing(page, served, number) for number in range(rounds)]
    page.goto(served.at("#/cluster?as=table"))
    page.get_by_role("table").wait_for()
    for name, action in TABLE_ACTIONS.items():
        yield name, [page.evaluate(TIMED % action) for _ in range(rounds)]


def _landing(page: Page, served: Served, number: int) -> float:
    """The longest task of the page while it hears of many pods at once; 50 ms are the least that is seen."""
    page.evaluate("window.measured.tasks = []")
    known = len(served.source.timeline.pods)
    pods = {f"new/pod-{number}-{place}": PodState(node=f"node-{place}") for place in range(1000)}
    served.change(pods=pods)
    until(page, f"document.querySelector('h1').textContent.includes('{known + 1000:,} pods')")
    return float(page.evaluate("Math.max(0, ...window.measured.tasks)"))


if __name__ == "__main__":
    main()
