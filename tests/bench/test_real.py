"""The scheduler's CPU a pod by part: against our own server, in processes of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
import uvloop

from bench.real import PARTS, measure, part_of, shares, table
from tests.apiserver.running import Kubectl, start_server

LOOP = "moorage/cli/run.py:_run;python3.11/asyncio/runners.py:Runner.run"
CYCLE = f"{LOOP};moorage/scheduler/scheduler.py:Scheduler._loop"
WATCH = f"{LOOP};moorage/client/informer.py:Informer._watch"
BIND = f"{LOOP};moorage/scheduler/schedule_one.py:ScheduleOne._bind"


@pytest.mark.parametrize(
    ("stack", "part"),
    [
        (LOOP, "loop"),
        (CYCLE, "cycle"),
        (f"{CYCLE};moorage/engine/engine.py:Engine.decide_async", "cycle"),
        (f"{CYCLE};moorage/cluster/cache.py:Cache.snapshot", "cache"),
        (f"{CYCLE};moorage/queue/scheduling_queue.py:SchedulingQueue.pop_now", "queue"),
        (f"{WATCH};moorage/client/watch_events.py:_event", "decode"),
        (f"{WATCH};moorage/scheduler/event_handlers.py:EventHandlers.pod", "cache"),
        (f"{BIND};moorage/http/client_transport.py:HttpTransport.handle", "bind"),
        (f"{BIND};moorage/scheduler/pod_events.py:PodEventRecorder.scheduled", "events"),
        (f"{LOOP};moorage/services/event_broadcaster.py:Broadcaster._write_all", "events"),
        (f"{LOOP};moorage/http/client_connection.py:HttpClientConnection.buffer_updated", "http"),
    ],
)
def test_stacks_belong_to_parts(stack: str, part: str) -> None:
    assert part_of(stack) == part


def test_shares_are_those_of_the_samples() -> None:
    found = shares(f"{LOOP} 1\n{CYCLE} 3\n")
    assert (found["loop"], found["cycle"]) == (0.25, 0.75)
    assert found.keys() == PARTS.keys()
    assert sum(shares("").values()) == 0


def test_a_scheduler_is_measured_and_the_cluster_left_as_it_was(tmp_path: Path) -> None:
    with start_server(tmp_path) as server:
        figures, profile = uvloop.run(measure(server.kubeconfig, nodes=3, pods=100))
        assert not Kubectl(server, tmp_path).json("get", "nodes,pods", "--all-namespaces")["items"]
    assert (figures.nodes, figures.pods) == (3, 100)
    assert figures.peak_bytes > 1024 * 1024
    assert figures.cpu_ms_per_pod > 0
    parts = figures.cpu_ms_per_pod_by_part
    assert sum(parts.values()) == pytest.approx(figures.cpu_ms_per_pod)
    assert shares(profile).keys() == parts.keys()
    assert table(figures).row_count == len(PARTS) + 1
