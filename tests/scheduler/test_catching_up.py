"""What plugins do between cycles, so that no pod waits for it."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from moorage import Nodes, Pod
from moorage.framework.loading.registry import Registry
from moorage.plugins import default_registry
from tests.scheduler.plugins import profile
from tests.scheduler.running import SchedulerHarness, in_harness


class Surveyor:
    """Notes which nodes it has been shown before each cycle."""

    name = "Surveyor"
    watched_kinds: tuple[()] = ()

    def __init__(self) -> None:
        self.known: list[str] = []
        self.known_in_cycles: list[list[str]] = []
        self.fails = False

    def catch_up(self, nodes: Nodes) -> None:
        if self.fails:
            raise RuntimeError("lost the map")
        self.known = sorted(nodes.names)

    def pre_filter(self, cycle: Any, pod: Pod, nodes: Nodes) -> None:
        self.known_in_cycles.append(self.known)


def registry(surveyor: Surveyor) -> Registry:
    made = default_registry()
    made.register("Surveyor", lambda: surveyor)
    return made


def test_plugins_catch_up_before_the_first_cycle_and_again_and_again() -> None:
    surveyor = Surveyor()

    async def scenario(harness: SchedulerHarness) -> None:
        await harness.add_node("n1")
        await harness.add_pod("first")
        harness.scheduler(config=profile("Surveyor"), registry=registry(surveyor))
        await harness.passes(1)
        await harness.add_node("n2")
        await harness.passes(1)
        await harness.add_pod("second")
        await harness.passes(1)

    in_harness(scenario)
    assert surveyor.known_in_cycles == [["n1"], ["n1", "n2"]]


def test_a_plugin_that_fails_to_catch_up_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    surveyor = Surveyor()
    surveyor.fails = True

    async def scenario(harness: SchedulerHarness) -> None:
        await harness.add_node("n1")
        harness.scheduler(config=profile("Surveyor"), registry=registry(surveyor))
        await harness.add_pod("p")
        await harness.passes(1)
        assert await harness.node_of("p") == "n1"
        harness._unexpected_errors.records.clear()

    caplog.set_level(logging.ERROR)
    in_harness(scenario)
    assert "Plugin failed to catch up with the cluster" in caplog.text
    assert "lost the map" in caplog.text
