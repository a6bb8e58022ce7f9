"""Long runs: what is shared out, what is counted, and what becomes of a process that dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter, deque
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

import pytest

from moorage_cluster.apiserver.embedded import Settings
from tests.apiserver.fuzzing.campaign import Batch, Campaign, batches
from tests.apiserver.fuzzing.reports import Failure, Report
from tests.apiserver.fuzzing.request import Shot, save
from tests.apiserver.fuzzing.stacks import stacks_of

DEADLY = Shot("POST", "/deadly", body=b"[[[")


class DeadlyBatch(Batch):
    """Requests of which one ends the process that sends it."""

    def run(self, at: Synchronized[int]) -> Report:
        at.value = 7
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    def write_down(self, path: Path) -> None:
        save([Shot("GET", "/before"), DEADLY], path)


def test_a_request_that_ends_the_process_is_found(tmp_path: Path) -> None:
    campaign = Campaign(deque([DeadlyBatch(1, 0, 9, Settings(), over_http=False)]), tmp_path)
    campaign.run(processes=1)
    (failure,) = campaign.report.failures
    assert (failure.number, failure.shots) == (7, [DEADLY])
    assert "-9" in failure.why


HANGING = """
import asyncio, pathlib, sys
from tests.apiserver.fuzzing.stacks import tell_when_asked

async def for_ever_without_an_answer():
    print("hangs", flush=True)
    await asyncio.Event().wait()

tell_when_asked(pathlib.Path(sys.argv[1]))
asyncio.run(for_ever_without_an_answer())
"""


def test_a_process_that_hangs_says_what_it_is_doing(tmp_path: Path) -> None:
    path = tmp_path / "stacks.txt"
    with subprocess.Popen([sys.executable, "-c", HANGING, str(path)], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"hangs\n"
            doing = stacks_of(process.pid, path)
        finally:
            process.kill()
    assert "Current thread" in doing
    assert "for_ever_without_an_answer" in doing


def test_seeds_share_the_requests_and_some_go_over_a_socket() -> None:
    made = list(batches([1, 2, 3], 1_000_000, Settings()))
    sent = Counter(dict.fromkeys((1, 2, 3), 0))
    for each in made:
        sent[each.seed] += each.last + 1 - each.first
    assert sent.total() >= 1_000_000
    assert len(set(sent.values())) == 1
    assert len({(each.seed, each.first) for each in made}) == len(made)
    assert 0.04 < sum(each.over_http for each in made) / len(made) < 0.06


def test_reports_are_added_up_and_each_cause_is_reported_once() -> None:
    whole = Report()
    for number in (1, 2):
        part = Report(failures=[Failure(number, f"the code is {number}", [])])
        part.note(number, Shot("GET", "/"), 200, seconds=number)
        whole.add(part)
    assert (whole.requests, whole.codes, whole.bodies) == (2, {200: 2}, {"none": 2})
    assert [each.number for each in whole.failures] == [1]
    assert (whole.slowest, whole.slowest_seconds) == (2, 2)


@pytest.mark.parametrize(("last", "verdict"), [(100.0, "; back"), (200.0, "; NOT back")])
def test_memory_that_does_not_go_back_to_its_level_is_reported(last: float, verdict: str) -> None:
    memory = [(at * 2000, 100.0) for at in range(1, 20)]
    campaign = Campaign(deque(), Path(), memory=[*memory, (40_000, last)])
    assert verdict in campaign.memory_verdict


def test_no_batch_begins_when_time_is_over(tmp_path: Path) -> None:
    campaign = Campaign(deque(batches([1], 1000, Settings())), tmp_path)
    campaign.run(processes=1, seconds=-1.0)
    assert campaign.report.requests == 0
    assert not campaign.waiting
