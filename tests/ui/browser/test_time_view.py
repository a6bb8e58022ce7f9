"""The Time view in a browser: recordings, simulations and live clusters."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from moorage.ui.documents import PodState
from moorage.ui.second_run import second_run_feature
from moorage.ui.sources.files import open_file
from moorage.ui.sources.source import Source
from tests.ui.example_files import shadow_file, simulation_file, simulation_result
from tests.ui.serving import Served, TableSource, example_nodes, example_pods

Serve = Callable[[Source], Served]
RECORDING = Path(__file__).parents[2] / "recordings" / "preemption-0.json.gz"


def simulated(path: Path, nodes: int) -> Path:
    """In a thread, because the browser's event loop runs in this one."""
    with ThreadPoolExecutor(1) as pool:
        return simulation_file(path, pool.submit(simulation_result, nodes, cpu="2").result())


def test_a_recording_is_scrubbed_and_played(page: Page, serve: Serve, axe: Callable[[Page], None]) -> None:
    page.goto(serve(open_file(RECORDING)).at("#/time"))
    slider, moment = page.get_by_role("slider", name="Moment"), page.locator("output")
    expect(moment).to_have_text("step 0")
    expect(page.locator(".run .moment")).to_have_text("step 0: the beginning")

    slider.press("ArrowRight")
    expect(moment).to_have_text("step 1")
    events = page.locator(".events li")
    expect(events).to_have_text(
        [
            "default/old-3-1 left node-03",
            "default/old-3-3 left node-03",
            "default/boss-0 placed on node-03",
        ]
    )
    expect(page).to_have_url(re.compile(r"#/time\?at=1$"))
    axe(page)

    page.get_by_role("button", name="To the next change").click()
    expect(events.last).to_have_text("default/boss-1 placed on node-01")
    page.get_by_role("button", name="To the change before").click()
    expect(events.last).to_have_text("default/boss-0 placed on node-03")

    page.get_by_label("Speed").select_option("10")
    page.get_by_role("button", name="Play").click()
    expect(moment).to_have_text("step 6")
    expect(page.get_by_role("button", name="Play")).to_have_attribute("aria-pressed", "false")

    slider.press("Home")
    expect(moment).to_have_text("step 0")
    expect(page.locator(".run .moment")).to_have_text("step 0: the beginning")


def test_an_attempt_of_a_recording_is_shown(page: Page, serve: Serve) -> None:
    page.goto(serve(open_file(RECORDING)).at("#/time?at=1"))
    page.get_by_role("link", name="default/boss-0").click()
    expect(page.locator(".verdict")).to_have_text("Scheduled: node-03 (1 of 6 nodes feasible)")
    page.get_by_role("button", name="1: step 1 Unschedulable").click()
    expect(page.locator(".message")).to_contain_text("0/6 nodes are available: 3 Insufficient cpu")
    expect(
        page.get_by_text("Preemption makes room on node-03: default/old-3-1, default/old-3-3.")
    ).to_be_visible()


def test_a_simulation_is_compared_with_another_at_a_moment(
    page: Page, serve: Serve, tmp_path: Path, axe: Callable[[Page], None]
) -> None:
    small, large = (
        open_file(simulated(tmp_path / name, count)) for name, count in (("small", 1), ("large", 3))
    )
    small.add(second_run_feature(large))
    served = serve(small)

    page.goto(served.at("#/time?at=25.5"))
    expect(page.locator("output")).to_have_text("00:00:25")
    expect(page.locator(".run .figures")).to_have_text(
        ["1 nodes, 2 pods, 1 pending", "3 nodes, 3 pods, 0 pending"]
    )
    rows = page.get_by_role("region", name=re.compile("Pods on different nodes")).locator("tbody tr")
    shown = {row[0]: (row[1], row[2]) for row in (each.split("\t") for each in rows.all_inner_texts())}
    assert shown == differences(small, large, 25.5)
    assert shown["default/pod-2"][0] == "pending"
    axe(page)

    page.get_by_role("button", name="To the next change").click()
    expect(page.locator("output")).to_have_text("00:00:30")


def differences(one: Source, other: Source, time: float) -> dict[str, tuple[str, str]]:
    first, second = (placed(each, time) for each in (one, other))
    texts = {key: (first[key] or "pending", second[key] or "pending") for key in first}
    return {key: nodes for key, nodes in texts.items() if nodes[0] != nodes[1]}


def placed(source: Source, time: float) -> dict[str, str]:
    nodes: dict[str, str] = {}
    for batch in source.timeline.history().changes:
        for key, pod in batch.pods.items():
            if batch.time <= time and pod is not None:
                nodes[key] = pod.node
    return nodes


@pytest.mark.parametrize("forward", [True, False])
def test_far_jumps_show_the_same_as_small_steps(page: Page, serve: Serve, *, forward: bool) -> None:
    """In a history that is long enough for several states to be kept."""
    source = TableSource(example_nodes(4), live=False, kind="recording")
    pods: dict[str, PodState | None] = {}
    for number in range(9000):
        key = f"default/pod-{number % 1000}"
        pods[key] = None if pods.get(key) else PodState(node=f"node-{number % 5}" if number % 5 < 4 else "")
        source.timeline.put_pod(key, pods[key])
        source.timeline.close_batch(1_000_000_000.0 + number + 1)
    served = serve(source)
    wanted = 1_000_000_000 + (8500 if forward else 3210)
    page.goto(served.at(f"#/time?at={wanted if forward else wanted + 5000}"))
    page.locator(".run .figures").wait_for()
    if not forward:
        page.goto(f"{served.origin}/#/time?at={wanted}")
    there = [pod for pod in state_after(source, wanted).values() if pod is not None]
    pending = sum(not pod.node for pod in there)
    expect(page.locator(".run .figures")).to_have_text(
        f"4 nodes, {len(there) - pending} pods, {pending} pending"
    )


def state_after(source: Source, time: float) -> dict[str, PodState | None]:
    pods: dict[str, PodState | None] = {}
    for batch in source.timeline.history().changes:
        if batch.time <= time:
            pods |= batch.pods
    return pods


def test_a_live_cluster_is_followed(page: Page, serve: Serve) -> None:
    served = serve(TableSource(example_nodes(3), example_pods(3, 2)))
    page.goto(served.at("#/time"))
    shown = page.locator(".run .figures")
    expect(shown).to_have_text("3 nodes, 6 pods, 0 pending")
    served.change(pods={"default/new": PodState(node="node-0")})
    expect(shown).to_have_text("3 nodes, 7 pods, 0 pending")
    expect(page.get_by_role("button", name="Live")).to_have_attribute("aria-pressed", "true")


def test_a_report_of_shadow_mode_is_a_table_and_two_runs(
    page: Page, serve: Serve, tmp_path: Path, axe: Callable[[Page], None]
) -> None:
    page.goto(serve(open_file(shadow_file(tmp_path / "shadow.jsonl"))).at("#/shadow?result=different"))
    rows = page.locator(".virtual-table tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.first).to_contain_text("has weight 6 or more there, and 1 here")
    axe(page)
    rows.last.get_by_role("link").click()
    expect(page.get_by_role("heading", name="Pods on different nodes at this moment: 2")).to_be_visible()


def test_a_file_has_the_pods_that_waited_at_its_end(page: Page, serve: Serve) -> None:
    page.goto(serve(open_file(RECORDING)).at("#/queue"))

    expect(page.get_by_role("heading", level=1)).to_have_text("3 pods wait for a node")
    expect(page.get_by_text("at the end of the file")).to_be_visible()
    expect(page.get_by_role("columnheader", name="Since")).to_have_count(0)


def test_a_report_says_why_it_has_no_queue(tmp_path: Path, page: Page, serve: Serve) -> None:
    page.goto(serve(open_file(shadow_file(tmp_path / "report.jsonl"))).at("#/queue"))

    expect(page.locator("main .notice")).to_have_text(re.compile("^A report of shadow mode has no queue"))
