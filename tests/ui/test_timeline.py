"""The timeline against a plain list of all states, and what readers of its changes get."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.ui.documents import Changes, NodeState, PodState
from moorage.ui.event_stream import ChangeStream, pause_seconds
from moorage.ui.timeline import Timeline

NAMES = st.sampled_from(["a", "b", "c"])
NODES = st.one_of(st.none(), st.builds(NodeState, unschedulable=st.booleans()))
PODS = st.one_of(st.none(), st.builds(PodState, node=NAMES))
BATCHES = st.lists(st.tuples(st.dictionaries(NAMES, NODES), st.dictionaries(NAMES, PODS)), max_size=12)
State = tuple[dict[str, NodeState], dict[str, PodState]]


def applied(state: State, changes: Changes) -> State:
    nodes = {**state[0], **changes.nodes}
    pods = {**state[1], **changes.pods}
    return (
        {name: node for name, node in nodes.items() if node is not None},
        {key: pod for key, pod in pods.items() if pod is not None},
    )


def filled(batches: list[Any], most: int) -> tuple[Timeline, list[State]]:
    """A timeline, and the state at each of its revisions."""
    timeline = Timeline(lambda: 0.0, most)
    states: list[State] = [({}, {})]
    for nodes, pods in batches:
        for name, node in nodes.items():
            timeline.put_node(name, node)
        for key, pod in pods.items():
            timeline.put_pod(key, pod)
        timeline.close_batch()
        if nodes or pods:
            states.append(applied(states[-1], Changes(revision=0, time=0.0, nodes=nodes, pods=pods)))
    return timeline, states


@given(BATCHES, st.integers(1, 8))
def test_base_and_changes_and_every_difference_make_the_state(batches: list[Any], most: int) -> None:
    timeline, states = filled(batches, most)
    now = timeline.state()
    assert (now.revision, (now.nodes, now.pods)) == (len(states) - 1, states[-1])

    history = timeline.history()
    state: State = (dict(history.base.nodes), dict(history.base.pods))
    assert state == states[history.base.revision]
    for changes in history.changes:
        state = applied(state, changes)
        assert state == states[changes.revision]
    assert state == states[-1]

    for revision, at_revision in enumerate(states):
        since = timeline.since(revision)
        assert (since is None) == (revision < history.base.revision)
        if since is not None:
            assert since.revision == now.revision
            assert applied(at_revision, since) == states[-1]
    assert timeline.since(len(states)) is None


@given(BATCHES, st.integers(1, 8))
def test_no_more_changes_are_kept_than_wanted_but_the_last_batch(batches: list[Any], most: int) -> None:
    kept = filled(batches, most)[0].history().changes

    assert len(kept) <= 1 or sum(len(each.nodes) + len(each.pods) for each in kept) <= most


def written(timeline: Timeline, number: int) -> None:
    timeline.put_pod(f"default/pod-{number}", PodState(node="n"))
    timeline.close_batch()


def event(piece: bytes) -> tuple[str, dict[str, Any]]:
    lines = dict(line.split(": ", 1) for line in piece.decode().strip().splitlines())
    return lines["event"], json.loads(lines["data"])


async def first_piece(stream: ChangeStream) -> tuple[str, dict[str, Any]]:
    return event(await anext(aiter(stream)))


def test_a_reader_that_did_not_read_gets_one_piece_with_all() -> None:
    async def reading() -> None:
        timeline = Timeline(lambda: 5.0)
        written(timeline, 0)
        stream = ChangeStream(timeline, 0)
        pieces: AsyncIterator[bytes] = aiter(stream)
        assert event(await anext(pieces))[1]["revision"] == 1
        for number in range(1, 100):
            written(timeline, number)
        kind, changes = event(await anext(pieces))
        assert (kind, changes["revision"], len(changes["pods"])) == ("changes", 100, 99)
        stream.close()
        assert [piece async for piece in pieces] == []

    asyncio.run(reading())


def test_a_waiting_reader_is_woken_by_a_change_and_by_the_end() -> None:
    async def reading() -> None:
        timeline = Timeline(lambda: 5.0)
        stream = ChangeStream(timeline, 0)
        pieces = aiter(stream)
        waiting = asyncio.ensure_future(anext(pieces, b""))
        await asyncio.sleep(0)
        assert not waiting.done()
        written(timeline, 0)
        assert event(await waiting)[1]["pods"]["default/pod-0"]["node"] == "n"
        waiting = asyncio.ensure_future(anext(pieces, b""))
        await asyncio.sleep(0)
        stream.close()
        assert await waiting == b""

    asyncio.run(reading())


def test_who_has_missed_too_much_begins_again() -> None:
    async def reading() -> None:
        timeline = Timeline(lambda: 5.0, max_changes=2)
        for number in range(5):
            written(timeline, number)
        assert await first_piece(ChangeStream(timeline, 1)) == ("reset", {})
        assert await first_piece(ChangeStream(timeline, 9)) == ("reset", {})  # of a server before this one
        assert (await first_piece(ChangeStream(timeline, 4)))[1]["revision"] == 5

    asyncio.run(reading())


@pytest.mark.parametrize(("objects", "seconds"), [(1, 0.1), (20, 0.1), (100, 0.5), (200, 1.0), (50_000, 1.0)])
def test_much_at_once_delays_the_next_piece_by_a_second_at_most(objects: int, seconds: float) -> None:
    assert pause_seconds(objects) == pytest.approx(seconds)


@pytest.mark.parametrize(("rate", "pieces_per_second"), [(100, 10), (400, 1), (5000, 1)])
def test_at_a_steady_rate_pieces_come_ten_times_or_once_a_second(rate: int, pieces_per_second: int) -> None:
    pause = 0.0
    for _ in range(20):
        pause = pause_seconds(round(rate * pause))
    assert 1 / pause == pytest.approx(pieces_per_second)
