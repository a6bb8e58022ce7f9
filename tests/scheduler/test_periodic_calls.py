"""What plugins do again and again: when it begins, when it is done again, and when it ends."""

from __future__ import annotations

import logging
from typing import Any, ClassVar

import pytest

from moorage import Action, Handle, Interest, NodeView, Object, Pod, Profiles, declare_kind, on
from moorage.config.load import default_config, parse_config
from moorage.framework.loading.registry import Registry
from moorage.plugins import default_registry
from moorage.scheduler.watched_kinds import custom_kinds, listed_kinds, needed_kinds, read_kinds
from tests.scheduler.plugins import profile
from tests.scheduler.running import SchedulerHarness, in_harness


class Reading(Object):
    """Something that cannot be watched."""


READINGS = declare_kind("readings.example.com/v1", "readings", Reading, namespaced=False)


class Follower:
    """Refuses all nodes until it has read often enough."""

    name = "Follower"
    watched_kinds: tuple[()] = ()
    listed_kinds = (READINGS,)
    calls = 0
    fails = False
    handles: ClassVar[list[Handle]] = []

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._is_open = False
        Follower.handles.append(handle)
        handle.every(10, self.look)

    async def look(self) -> None:
        Follower.calls += 1
        if Follower.fails:
            raise RuntimeError("lost")
        if Follower.calls == 4:
            self._is_open = True
            self._handle.announce(READINGS.resource, Action.UPDATE)

    def events(self) -> tuple[Interest, ...]:
        return (on(READINGS.resource, Action.UPDATE),)

    def filter_node(self, cycle: Any, pod: Pod, node: NodeView) -> str | None:
        return None if self._is_open else "closed"


def registry() -> Registry:
    made = default_registry()
    made.register("Follower", Follower)
    return made


@pytest.fixture(autouse=True)
def _from_the_beginning() -> None:
    Follower.calls, Follower.fails = 0, False


def test_a_method_is_called_at_once_and_again_until_another_configuration_comes() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        scheduler = harness.scheduler(config=profile("Follower"), registry=registry())
        await harness.settles()
        assert Follower.calls == 1
        await harness.passes(25)
        assert Follower.calls == 3
        handle = Follower.handles[-1]
        assert not handle.has_ended
        await scheduler.reconfigure(default_config())
        await harness.passes(25)
        assert Follower.calls == 3
        assert handle.has_ended
        await scheduler.reconfigure(parse_config(profile("Follower"), "test"), registry())
        await harness.settles()
        assert Follower.calls == 4
        assert not Follower.handles[-1].has_ended

    in_harness(scenario)


def test_what_is_announced_requeues_pods_that_the_plugin_refused() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        scheduler = harness.scheduler(config=profile("Follower"), registry=registry())
        await harness.add_node("n1")
        await harness.add_pod("p")
        await harness.passes(29)
        assert (await harness.node_of("p"), scheduler.cycles_begun) == ("", 1)
        await harness.passes(2)
        assert await harness.node_of("p") == "n1"

    in_harness(scenario)


def test_a_call_that_fails_is_logged_and_the_next_one_comes(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        Follower.fails = True
        harness.scheduler(config=profile("Follower"), registry=registry())
        await harness.passes(11)
        assert Follower.calls == 2
        harness._unexpected_errors.records.clear()

    caplog.set_level(logging.ERROR)
    in_harness(scenario)
    assert "Periodic call of a plugin failed" in caplog.text
    assert "lost" in caplog.text


def test_kinds_that_plugins_list_themselves_have_no_informer() -> None:
    config = parse_config(profile("Follower"), "test")
    frameworks = list(Profiles(config, registry()).values())
    assert listed_kinds(frameworks) == [READINGS]
    assert READINGS not in needed_kinds(frameworks)
    assert read_kinds(frameworks) == [*needed_kinds(frameworks), READINGS]
    assert custom_kinds(frameworks) == {}
