"""What watching pages cost a scheduler on the same machine as the browser: `python -m bench.page --burst`.

A round is a new cluster: `moorage apiserver` with nodes, and `moorage run --ui-port` for one burst of pods.
Rounds without pages and with them take turns. All pages are visible, each in a window of its own, and drawn
by software.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple, TypeVar

from playwright.sync_api import Browser, Page

from bench.real import LABELS, NAMESPACE, cpu_seconds, create, make_node, make_pod
from moorage.bench.cluster_target import ClusterTarget
from moorage.bench.pod_watch import SCHEDULED, PodSelection
from moorage.client.connect import connected
from moorage.client.credentials import find_access
from moorage.clock import LoopClock
from tests.ui.browser.conditions import until
from tests.ui.browser.launch import VIEWPORT

PODS_BEFORE: Final = 5000
"""Number of pods before the burst, with which all parts are warm."""
START_SECONDS: Final = 60.0
PAUSE_SECONDS: Final = 0.05
SETTLE_SECONDS: Final = 3.0
PARTS: Final = ("scheduler", "server", "page's process", "browser", "generator")
REQUESTS_PER_SECOND: Final = 5000
# Notes from now on when the numbers of the Cluster view change.
UPDATES: Final = """() => {
  window.updates = [];
  const observer = new MutationObserver(() => window.updates.push(performance.now()));
  observer.observe(document.querySelector("h1"), {subtree: true, characterData: true, childList: true});
}"""
LONGEST_PAUSE: Final = (
    "Math.max(0, ...window.updates.slice(1).map((time, place) => time - window.updates[place]))"
)

Result = TypeVar("Result")


class Burst(NamedTuple):
    """One round."""

    pods_per_second: float
    cpu_seconds: dict[str, float]
    """By part, from the first creation to the last binding."""
    seconds: float
    """From the first creation to the last binding."""
    longest_pause_ms: float
    """Between two updates of a page."""
    behind_ms: float
    """Time from the last binding until all pages have shown it."""


class Processes(NamedTuple):
    """The processes of a cluster."""

    server: int
    scheduler: int
    page: int
    kubeconfig: Path
    url: str


def table(browser: Browser, nodes: int, pods: int, pages: int, rounds: int) -> Iterator[str]:
    """Measures rounds in turn; the lines of a table, with the medians last."""
    yield f"{nodes:,} nodes, a burst of {pods:,} pods; CPU in s, pause and delay of pages in ms"
    parts = "".join(f"{part:>15}" for part in PARTS)
    yield f"{'':<17}{'pods/s':>7}{parts}{'longest pause':>14}{'delay':>7}{'cores/page':>11}"
    measured: dict[int, list[Burst]] = {0: [], pages: []}
    for number in range(rounds):
        for count in (0, pages) if number % 2 == 0 else (pages, 0):
            measured[count].append(burst(browser, nodes, pods, count))
            yield line(f"{count} pages", measured[count][-1:], count)
    for count, bursts in measured.items():
        yield line(f"{count} pages, median", bursts, count)
    rates = [median(each.pods_per_second for each in measured[count]) for count in (0, pages)]
    yield f"pods/s with {pages} pages: {rates[1] / rates[0]:.3f} of those without"


def line(name: str, bursts: Sequence[Burst], pages: int) -> str:
    """The medians of rounds."""
    cpu = "".join(f"{median(each.cpu_seconds[part] for each in bursts):>15.2f}" for part in PARTS)
    rate = median(each.pods_per_second for each in bursts)
    pause = median(each.longest_pause_ms for each in bursts)
    behind = median(each.behind_ms for each in bursts)
    share = median(each.cpu_seconds["browser"] / each.seconds / max(pages, 1) for each in bursts)
    return f"{name:<17}{rate:>7.0f}{cpu}{pause:>14.0f}{behind:>7.0f}{share:>11.3f}"


def burst(browser: Browser, nodes: int, pods: int, pages: int) -> Burst:
    """One round."""
    with processes() as running:
        in_thread(with_target(running.kubeconfig, lambda target: create(target, nodes_of(nodes))))
        opened = [watching(browser, running.url, nodes) for _ in range(pages)]
        in_thread(with_target(running.kubeconfig, lambda target: bind(target, PODS_BEFORE, PODS_BEFORE)))
        time.sleep(SETTLE_SECONDS)
        for page in opened:
            page.evaluate(UPDATES)
        rate, cpu, ended = in_thread(
            with_target(running.kubeconfig, lambda target: measure(target, pods, running))
        )
        for page in opened:
            until(page, shows(nodes, PODS_BEFORE + pods))
        behind = time.perf_counter() - ended if opened else 0.0
        pause = max((page.evaluate(LONGEST_PAUSE) for page in opened), default=0.0)
        for page in opened:
            page.context.close()
        return Burst(rate, cpu, pods / rate, pause, 1000 * behind)


def nodes_of(count: int) -> list[dict[str, Any]]:
    """The manifests of nodes."""
    return [make_node(index) for index in range(count)]


def watching(browser: Browser, url: str, nodes: int) -> Page:
    """A visible page that shows all nodes."""
    page = browser.new_context(viewport=VIEWPORT).new_page()
    page.goto(url)
    until(page, f"document.querySelector('canvas')?.width > 0 && {shows(nodes, 0)}")
    return page


def shows(nodes: int, pods: int) -> str:
    """Whether a page shows nodes and pods, all of which have a node."""
    return f"document.querySelector('h1').textContent.trim() === '{nodes:,} nodes, {pods:,} pods'"


async def bind(target: ClusterTarget, pods: int, known: int) -> None:
    """Create pods; returns when as many as are `known` then are bound."""
    await create(target, [make_pod()] * pods, NAMESPACE)
    await target.pods.until(PodSelection((NAMESPACE,), LABELS), known, SCHEDULED)


async def measure(
    target: ClusterTarget, pods: int, running: Processes
) -> tuple[float, dict[str, float], float]:
    """Pods a second, the CPU of each part, and when the last pod was bound."""
    await target.pods.until(PodSelection((NAMESPACE,), LABELS), PODS_BEFORE, SCHEDULED)
    before, begun = cpu(running), time.perf_counter()
    await bind(target, pods, PODS_BEFORE + pods)
    ended, after = time.perf_counter(), cpu(running)
    return pods / (ended - begun), {part: after[part] - before[part] for part in PARTS}, ended


def cpu(running: Processes) -> dict[str, float]:
    """The CPU seconds that each part has used."""
    used = (
        cpu_seconds(running.scheduler),
        cpu_seconds(running.server),
        cpu_seconds(running.page),
        sum(map(cpu_seconds, chromium())),
        time.process_time(),
    )
    return dict(zip(PARTS, used, strict=True))


def parents() -> dict[int, tuple[int, str]]:
    """The parent and the name of each process."""
    found = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            begin, _, rest = file.read_text().rpartition(")")
        except OSError:
            continue
        number, _, name = begin.partition(" (")
        found[int(number)] = (int(rest.split()[1]), name)
    return found


def chromium() -> list[int]:
    """The processes of the browser of this process."""
    known = parents()

    def is_own(number: int) -> bool:
        while number in known and number != os.getpid():
            number = known[number][0]
        return number == os.getpid()

    return [number for number, (_, name) in known.items() if name.startswith("chrom") and is_own(number)]


def in_thread(work: Coroutine[Any, Any, Result]) -> Result:
    """Playwright has an event loop in this thread: others run in another one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


async def with_target(
    kubeconfig: Path, work: Callable[[ClusterTarget], Coroutine[Any, Any, Result]]
) -> Result:
    """Work on a cluster; what is made there stays."""
    clock = LoopClock()
    async with connected(find_access(kubeconfig, clock=clock), clock=clock, pipelining=True) as client:
        target = ClusterTarget(client, clock)
        following = asyncio.create_task(target.informer.run())
        await target.informer.synced()
        try:
            return await work(target)
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


@contextmanager
def processes() -> Iterator[Processes]:
    """An API server, and a scheduler with its page."""
    with TemporaryDirectory(prefix="moorage-bench-") as folder:
        place = Path(folder)
        kubeconfig = place / "kubeconfig"
        with moorage(place, "apiserver", "--port=0", f"--kubeconfig={kubeconfig}") as server:
            printed(place / "apiserver.log", "API at")
            flags = (
                f"--kubeconfig={kubeconfig}",
                "--leader-elect=false",
                "--ui-port=0",
                "--http-pipelining",
                f"--kube-api-qps={REQUESTS_PER_SECOND}",
                f"--kube-api-burst={REQUESTS_PER_SECOND}",
            )
            with moorage(place, "run", *flags) as scheduler:
                url = printed(place / "run.log", r"The page is at (\S+)")
                page = next(number for number, (parent, _) in parents().items() if parent == scheduler)
                yield Processes(server, scheduler, page, kubeconfig, url)


@contextmanager
def moorage(folder: Path, command: str, *words: str) -> Iterator[int]:
    """A command in a process that ends with the context: its number."""
    with (folder / f"{command}.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "moorage", command, *words], stdout=log, stderr=log)
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait(START_SECONDS)


def printed(log: Path, pattern: str) -> str:
    """What a process has printed; SystemExit with its output if it does not print that."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if found := re.search(pattern, log.read_text(errors="replace")):
            return found.group(found.re.groups)
        time.sleep(PAUSE_SECONDS)
    raise SystemExit(log.read_text(errors="replace"))
