"""What the other tests would fail for is seen."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from tests.ui.browser.conftest import Complaints
from tests.ui.serving import Served, TableSource, example_nodes

INLINE = "document.body.appendChild(document.createElement('script')).textContent = 'void 0'"


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("console.error('wrong')", "console error: wrong"),
        ("console.warn('odd')", "console warning: odd"),
        ("setTimeout(() => { throw new Error('uncaught'); }); null", "page error: uncaught"),
        ("fetch('http://192.0.2.1/').catch(() => null)", "Content Security Policy"),
        (INLINE, "Content Security Policy"),
        ("document.body.appendChild(new Image()).src = 'http://192.0.2.1/a.png'", "http://192.0.2.1/a.png"),
    ],
)
def test_what_a_page_does_wrong_is_seen(
    page: Page, complaints: Complaints, serve: Callable[[TableSource], Served], script: str, complaint: str
) -> None:
    page.goto(serve(TableSource(example_nodes(1))).url)
    page.evaluate(script)
    page.evaluate("new Promise((done) => setTimeout(done))")  # what was put off is done then

    complaints.expect(complaint)


def test_a_request_that_no_policy_forbids_is_seen(page: Page, complaints: Complaints) -> None:
    page.goto("data:text/html,<img src='http://127.0.0.1:1/'><img src='http://127.0.0.2:1/'>")

    complaints.expect("request to another origin: http://127.0.0.2:1/")
    complaints.allow("net::ERR")


def test_what_is_not_accessible_is_seen(page: Page, axe: Callable[[Page], None]) -> None:
    page.set_content("<html lang=en><title>A title</title><main><h1>A heading</h1><img src='data:,'></main>")

    with pytest.raises(AssertionError, match="image-alt"):
        axe(page)
