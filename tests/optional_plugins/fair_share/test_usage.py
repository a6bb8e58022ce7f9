"""What owners have and had: compared with a count of all pods, and with the closed form of decay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage import Cache, Handle, Pod, pod_requests
from moorage.clock import VirtualClock
from moorage.optional_plugins.fair_share.arguments import FairShareArgs
from moorage.optional_plugins.fair_share.shares import Shares
from moorage.optional_plugins.fair_share.usage import Usage
from tests.builders import container, make_node, make_pod

HALF_LIFE = 60.0
SEGMENTS = st.lists(st.tuples(st.floats(0.0, 500.0), st.integers(-3, 4)), max_size=12)


@given(SEGMENTS, st.floats(0.0, 1000.0))
def test_past_use_is_the_average_with_weights_that_fade(
    segments: list[tuple[float, int]], rest: float
) -> None:
    now, held, usage = 0.0, 0, Usage(0.0)
    spans: list[tuple[float, float, int]] = []
    for seconds, pods in [*segments, (rest, 0)]:
        spans.append((now, now + seconds, held))
        now += seconds
        for _ in range(abs(max(pods, -held))):
            usage.change({"cpu": 250}, 1 if pods > 0 else -1, now, HALF_LIFE)
        held += max(pods, -held)
    expected = sum(pods * (faded(now - end) - faded(now - start)) for start, end, pods in spans)
    past = usage.past(now, HALF_LIFE)
    assert past.get("pods", 0.0) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert past.get("cpu", 0.0) == pytest.approx(250 * expected, rel=1e-9, abs=1e-6)
    assert usage.counted(now, HALF_LIFE).get("pods", 0.0) == pytest.approx(held + expected, abs=1e-9)
    assert dict(usage.held) == ({"pods": held, "cpu": 250 * held} if held else {})


def faded(age: float) -> float:
    """How much of what was at a time counts when it is this old."""
    return float(0.5 ** (age / HALF_LIFE))


def test_half_of_the_past_is_left_after_each_half_life() -> None:
    usage = Usage(0.0)
    usage.change({}, 1, 0.0, HALF_LIFE)
    assert [usage.past(at, HALF_LIFE)["pods"] for at in (0.0, 60.0, 120.0, 600.0)] == [
        0.0,
        0.5,
        0.75,
        pytest.approx(1.0, abs=0.001),
    ]
    usage.change({}, -1, 120.0, HALF_LIFE)
    assert [usage.past(at, HALF_LIFE)["pods"] for at in (120.0, 180.0, 240.0)] == [0.75, 0.375, 0.1875]
    assert not usage.is_nothing(240.0, HALF_LIFE)
    assert usage.is_nothing(120.0 + 64 * HALF_LIFE, HALF_LIFE)
    assert usage.past(120.0 + 64 * HALF_LIFE, HALF_LIFE) == {}


def test_without_a_half_life_only_the_present_counts() -> None:
    usage = Usage(0.0)
    usage.change({"cpu": 100}, 1, 0.0, 0.0)
    assert usage.counted(1000.0, 0.0) == {"pods": 1, "cpu": 100}
    usage.change({"cpu": 100}, -1, 1000.0, 0.0)
    assert usage.is_nothing(1000.0, 0.0)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "assume", "remove", "forget", "trial"]),
        st.integers(0, 4),
        st.sampled_from(["a", "b"]),
        st.sampled_from(["100m", "1", "2500u", "0"]),
    ),
    max_size=25,
)


@given(STEPS, st.sampled_from(["", "team"]))
def test_usage_equals_a_recount(steps: list[tuple[str, int, str, str]], label: str) -> None:
    cache = Cache([make_node("n1")])
    handle = Handle(cache.objects, clock=VirtualClock(), snapshot=cache.snapshot)
    shares = Shares(FairShareArgs(owner_label=label), handle, lambda pod: owner_of(pod, label))
    cache.follow_pods(shares)
    for step, number, owner, cpu in steps:
        pod = a_pod(number, owner, cpu)
        if step == "put":
            cache.put_pod(pod)
        elif step == "assume" and cache.pod(pod.uid) is None:
            cache.assume_pod(pod, "n1")
        elif step == "remove":
            cache.remove_pod(pod)
        elif step == "forget":
            cache.forget_pod(pod)
        elif step == "trial":
            cache.set_aside(list(cache.pods())).end()
    held = {owner: usage.held for owner, usage in shares.usage.items() if usage.held}
    assert held == recounted(cache, label)


def owner_of(pod: Pod, label: str) -> str:
    return pod.labels.get(label, "") if label else pod.namespace


def a_pod(number: int, owner: str, cpu: str) -> Pod:
    fields: dict[str, Any] = {"labels": {"team": owner}, "namespace": "ns-" + owner}
    containers = [container({"cpu": cpu, "example.com/gpu": "1"} if number else None)]
    return make_pod(f"p{number}", uid=f"p{number}", on="n1", containers=containers, **fields)


def recounted(cache: Cache, label: str) -> Mapping[str, Mapping[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for pod in cache.pods():
        held = found.setdefault(owner_of(pod, label), {})
        held["pods"] = held.get("pods", 0) + 1
        for name, billionths in pod_requests(pod).items():
            amount = -(-billionths // (10**6 if name == "cpu" else 10**9))
            if amount:
                held[name] = held.get(name, 0) + amount
    return found
