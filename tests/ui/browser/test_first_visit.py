"""The first visit to a running cluster: `moorage up`, and `moorage ui` in another process."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect

from tests.apiserver.running import Kubectl
from tests.scheduler.running import pod
from tests.ui.running import RunningPage
from tests.up.running import start_cluster


def test_the_printed_address_shows_pods_as_they_land_and_why_one_waits(page: Page, tmp_path: Path) -> None:
    with start_cluster(tmp_path, "--nodes", "3") as cluster, RunningPage(cluster.kubeconfig) as served:
        page.goto(served.url)
        expect(page.get_by_role("heading", level=1)).to_contain_text("3 nodes")
        kubectl = Kubectl(cluster, tmp_path)
        kubectl.create(pod("lands", cpu="100m"), pod("waits", cpu="999"))
        expect(page.get_by_role("link", name="1 pending")).to_be_visible()
        page.get_by_label("Search").fill("default/lands")
        page.get_by_role("combobox", name="As", exact=True).select_option("table")
        expect(page.locator("tbody tr:not([aria-hidden])")).to_have_count(1)

        page.get_by_role("link", name="Queue").click()
        expect(page.get_by_role("link", name="default/waits")).to_be_visible()
        expect(page.get_by_role("button", name="Insufficient cpu")).to_be_visible()
        page.get_by_role("link", name="default/waits").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("default/waits")
        expect(page.get_by_text("0/3 nodes are available: 3 Insufficient cpu.").first).to_be_visible()
        page.goto("about:blank")  # a page that is open would complain of its server's end
