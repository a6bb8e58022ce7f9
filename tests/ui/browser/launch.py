"""Starting the browser, as it is for tests and for pictures."""

from __future__ import annotations

import os

from playwright.sync_api import Browser, Playwright, ViewportSize

from tools.browser import find_browser

VIEWPORT: ViewportSize = {"width": 1280, "height": 800}
# A container has neither a sandbox nor a GPU, and a browser under test asks nobody for updates.
_OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


def launched(playwright: Playwright) -> Browser:
    """The browser; BrowserError if there is none."""
    found = find_browser()
    environment: dict[str, str | float | bool] = {**os.environ, **found.environment}
    return playwright.chromium.launch(executable_path=found.program, args=_OPTIONS, env=environment)
