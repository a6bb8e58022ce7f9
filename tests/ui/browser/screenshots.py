"""Pictures of the page for the documents: `python -m tests.ui.browser.screenshots`, or `make screenshots`.

A view has a row in PICTURES: the picture's name, the address, and the theme. The cluster is always the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from moorage.api.files import load_json
from moorage.ui.documents import PodState
from moorage.ui.sources.recording import recording_source
from moorage.ui.sources.source import Source
from tests.ui.browser.launch import VIEWPORT, launched
from tests.ui.health_readings import example_history, health_of
from tests.ui.serving import GIB, Served, TableSource, example_nodes, example_pods
from tests.ui.what_if_cluster import ApiServer, evaluations, manifests

FOLDER = Path(__file__).parents[3] / "docs" / "images"
NOW = datetime.fromtimestamp(1_000_003_600, UTC)
WAITING = (
    (
        "train",
        "Unschedulable",
        "0/300 nodes are available: 294 Insufficient memory, 6 node(s) were unschedulable.",
    ),
    ("train", "Unschedulable", "0/300 nodes are available: 300 Insufficient nvidia.com/gpu."),
    ("report", "SchedulingGated", ""),
    ("import", "", ""),
)
PICTURES = (
    ("cluster", "#/cluster?node=node-108", "light"),
    ("cluster-dark", "#/cluster?fill=memory", "dark"),
    ("cluster-table", "#/cluster?as=table&sort=-share", "light"),
    ("queue", "#/queue", "light"),
    ("decision", "#/decision?pod=batch/train-0", "light"),
    (
        "what-if",
        '#/what-if?pod=batch/train-0&changes=[{"kind":"addNode","shape":{"allocatable":{"cpu":"64","memory":"256Gi"}}}]',
        "light",
    ),
    ("health", "#/health", "light"),
)
RECORDING = Path(__file__).parents[2] / "recordings" / "mixed-0.json.gz"
PICTURES_OF_RECORDING = (("time", "#/time?at=60", "light"),)


def example() -> TableSource:
    """A cluster of 300 nodes in three zones, some of whose pods wait."""
    nodes, pods = example_nodes(300), {**example_pods(300, 6), **dict(_waiting())}
    asked = evaluations(ApiServer(manifests(nodes, pods)))
    return TableSource(nodes, pods, [*asked, health_of(example_history())])


def _waiting() -> Iterator[tuple[str, PodState]]:
    for number in range(18):
        name, reason, message = WAITING[number % len(WAITING)]
        yield (
            f"batch/{name}-{number}",
            PodState(
                phase="Pending",
                requests={"cpu": 8000, "memory": 128 * GIB},
                scheduler="default-scheduler",
                reason=reason,
                message=message,
                created=1_000_000_000 + 97.0 * number,
            ),
        )


def main() -> None:
    """Write all pictures."""
    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = launched(playwright)
        _write(browser, example(), PICTURES)
        _write(browser, recording_source(load_json(RECORDING), RECORDING.name), PICTURES_OF_RECORDING)
        browser.close()


def _write(browser: Browser, source: Source, pictures: Iterable[tuple[str, str, str]]) -> None:
    with Served(source) as served:
        for name, address, theme in pictures:
            path = FOLDER / f"page-{name}.png"
            path.write_bytes(_picture(browser, served.at(address), theme))


def _picture(browser: Browser, address: str, theme: str) -> bytes:
    is_dark = theme == "dark"
    context = browser.new_context(viewport=VIEWPORT, color_scheme="dark" if is_dark else "light")
    # The clock stands: a picture does not say how long ago the cluster was made up.
    context.clock.set_fixed_time(NOW)
    page = context.new_page()
    page.goto(address)
    page.get_by_role("heading", level=1).wait_for()
    page.locator(".connection:is(.live, .ended)").wait_for()
    page.locator("[aria-busy=true]").wait_for(state="detached")
    picture = page.screenshot(animations="disabled")
    context.close()
    return picture


if __name__ == "__main__":
    main()
