"""Waiting for what a page has no element for."""

from __future__ import annotations

from playwright.sync_api import Page

_WITHIN_MILLISECONDS = 30_000


def until(page: Page, condition: str) -> None:
    """Returns when a JavaScript expression is true.

    Playwright's own `wait_for_function` evaluates a string in the page, which the page's policy forbids.
    """
    page.evaluate(f"""() => new Promise((resolve, reject) => {{
        const end = performance.now() + {_WITHIN_MILLISECONDS};
        const look = () => {{
            if ({condition}) resolve();
            else if (performance.now() > end) reject(new Error("it does not come true"));
            else requestAnimationFrame(look);
        }};
        look();
    }})""")
