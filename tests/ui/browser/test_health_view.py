"""The Health view in a browser."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from moorage.ui.health import HealthHistory
from moorage.ui.metric_readings import (
    ATTEMPT_DURATION,
    ATTEMPTS,
    PENDING_PODS,
    REQUEST_DURATION,
    read_metrics,
)
from moorage.ui.sources.source import Source
from tests.ui.health_readings import START_SECONDS, health_of
from tests.ui.serving import Served, TableSource

Serve = Callable[[Source], Served]
HOSTILE = "<img src=x onerror=alert(1)>"


def add(history: HealthHistory, second: int, scheduled: int) -> None:
    """The reading of a second. scheduled: the number of attempts so far, each of less than 20 ms."""
    duration = f'{ATTEMPT_DURATION}_bucket{{result="scheduled",'
    text = [
        f'{ATTEMPTS}{{result="scheduled",profile="a"}} {scheduled}',
        f'{duration}le="0.02"}} {scheduled}',
        f'{duration}le="+Inf"}} {scheduled}',
        f'{PENDING_PODS}{{queue="{HOSTILE}"}} 7',
        f'{REQUEST_DURATION}_count{{verb="POST"}} {2 * scheduled}',
    ]
    history.add(START_SECONDS + second, second, read_metrics("\n".join(text)))


def source_of(history: HealthHistory) -> TableSource:
    return TableSource(features=[health_of(history)])


def test_plots_and_their_latest_values(page: Page, serve: Serve, axe: Callable[[Page], None]) -> None:
    history = HealthHistory()
    for second in range(30):
        add(history, second, 12 * second)
    page.goto(serve(source_of(history)).at("#/health"))

    rows = page.get_by_role("row")
    expect(rows.filter(has_text="scheduled").get_by_role("cell").last).to_have_text("12")
    expect(rows.filter(has_text="99th percentile").get_by_role("cell").last).to_have_text("19.8")
    expect(rows.filter(has_text=HOSTILE).get_by_role("cell").last).to_have_text("7")
    expect(rows.filter(has_text="POST").get_by_role("cell").last).to_have_text("24")
    # There are none of extension points, and of the time of requests.
    expect(page.locator(".plot canvas")).to_have_count(4)
    axe(page)

    page.get_by_role("button", name="Change between light and dark").click()
    expect(page.locator(".plot canvas")).to_have_count(4)
    axe(page)


def test_newer_values_come_by_themselves_and_the_plots_fit_a_phone(page: Page, serve: Serve) -> None:
    history = HealthHistory()
    page.set_viewport_size({"width": 390, "height": 844})
    served = serve(source_of(history))
    page.goto(served.at("#/health"))
    expect(page.get_by_role("status").filter(has_text="first values")).to_be_visible()

    served.in_loop(lambda: add(history, 0, 0))
    served.in_loop(lambda: add(history, 1, 12))
    latest = page.get_by_role("row").filter(has_text="scheduled").get_by_role("cell").last
    expect(latest).to_have_text("12")
    served.in_loop(lambda: add(history, 3, 18))
    expect(latest).to_have_text("3")

    assert page.evaluate("document.documentElement.scrollWidth") == 390
    width = page.locator(".plot canvas").first.bounding_box()
    assert width is not None
    assert 200 < width["width"] < 390


def test_without_a_scheduler_the_view_is_not_offered(page: Page, serve: Serve) -> None:
    page.goto(serve(TableSource()).at("#/health"))
    expect(page.get_by_text("Health needs a running moorage scheduler")).to_be_visible()
    expect(page.get_by_role("link", name="Health")).to_have_count(0)
