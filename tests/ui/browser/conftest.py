"""A real browser, whose pages must have nothing to complain of, and pages to open in it.

serve      serves a Source for the length of a test: `served = serve(TableSource(nodes, pods))`
page       a page of a new session; fails the test at its end for any complaint
complaints what `page` complains of; a test that provokes one removes it (`Complaints.expect`)
axe        asserts that a page is accessible
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, sync_playwright

from moorage.ui.sources.source import Source
from tests.ui.browser.launch import VIEWPORT, launched
from tests.ui.serving import Served
from tools.browser import BrowserError

AXE = Path(__file__).with_name("axe.min.js")
WITHIN_MILLISECONDS = 30_000


# Playwright keeps an event loop running in this thread: other packages' tests could run none beside it.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        try:
            browser = launched(playwright)
        except BrowserError as error:
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        yield browser
        browser.close()


@pytest.fixture
def serve() -> Iterator[Callable[[Source], Served]]:
    """Serves sources until the end of the test."""
    with ExitStack() as stack:
        yield lambda source: stack.enter_context(Served(source))


class Complaints:
    """What pages of a browser context have complained of."""

    def __init__(self, context: BrowserContext) -> None:
        self.lines: list[str] = []
        self._origin = ""
        context.on("console", self._console)
        context.on("weberror", lambda error: self.lines.append(f"page error: {error.error}"))
        context.on("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.lines.append(f"console {message.type}: {message.text}")

    def _request(self, request: Request) -> None:
        """The first request says where the page is from; all others have to go there."""
        if request.url.startswith(("data:", "blob:")):
            return
        origin = "/".join(request.url.split("/")[:3])
        self._origin = self._origin or origin
        if origin != self._origin or not origin.startswith("http://127.0.0.1:"):
            self.lines.append(f"request to another origin: {request.url}")

    def expect(self, text: str) -> None:
        """There are complaints with a text, which the test provoked."""
        assert any(text in line for line in self.lines), f"no complaint has {text!r}: {self.lines}"
        self.allow(text)

    def allow(self, text: str) -> None:
        """There may be complaints with a text: it depends on who was faster."""
        self.lines = [line for line in self.lines if text not in line]


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(viewport=VIEWPORT, color_scheme="light", reduced_motion="reduce")
    context.set_default_timeout(WITHIN_MILLISECONDS)
    yield context
    context.close()


# After `serve`, so that it is torn down before: a page whose server has ended complains of that.
@pytest.fixture
def complaints(serve: object, context: BrowserContext) -> Iterator[Complaints]:
    complaints = Complaints(context)
    yield complaints
    for page in context.pages:
        page.evaluate("0")  # what it has said until now has come then
    assert complaints.lines == []


@pytest.fixture
def page(context: BrowserContext, complaints: Complaints) -> Page:
    return context.new_page()


@pytest.fixture
def axe() -> Callable[[Page], None]:
    """Asserts that axe finds nothing on a page as it is now."""
    return assert_accessible


def assert_accessible(page: Page) -> None:
    # By the debugger's protocol: the page's policy forbids scripts in it.
    page.evaluate(AXE.read_text())
    found: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    lines = [
        f"{each['id']} ({each['help']}): {place['html']} {place['failureSummary']}"
        for each in found["violations"]
        for place in each["nodes"]
    ]
    assert lines == [], "\n".join(lines)
