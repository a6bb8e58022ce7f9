"""Plugins and profiles that cannot work fail at start, with a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from moorage.client import kinds
from moorage.config.defaults import default_profile
from moorage.config.load import parse_profiles
from moorage.config.types import PluginConfig, PluginRef, Plugins, PluginSet, Profile
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.filter_result import ALL, FilterResult
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.nodes import Nodes
from moorage.framework.loading.registry import Registry, RegistryError
from moorage.framework.runtime.framework import Framework
from moorage.framework.runtime.profiles import Profiles
from moorage.plugins import default_registry
from tests.builders import make_pod
from tests.framework.helpers import Log, recorder


class Wants:
    name = "Wants"

    def __init__(self, something: int) -> None:
        raise AssertionError

    def filter(self, cycle: CycleState, pod: object, nodes: Nodes) -> FilterResult:
        return ALL


@dataclass
class Maker:
    """Makes a plugin; it cannot be hashed."""

    name: str

    def __call__(self) -> Any:
        return recorder(self.name, Log(), filter=ALL)


class Fails:
    name = "Mine"

    def __init__(self) -> None:
        raise ValueError("no luck")


def _queue_sort(self: Any, queued: Any) -> Any:
    return queued.timestamp


def _filter(self: object, cycle: CycleState, pod: object, nodes: Nodes) -> FilterResult:
    return ALL


async def _async_filter(self: object, cycle: CycleState, pod: object, nodes: Nodes) -> FilterResult:
    return ALL


@pytest.mark.parametrize(
    ("factory", "complaint"),
    [
        (
            lambda: recorder("Other", Log(), filter=ALL),
            "its class says name = 'Other'; make it name = \"Mine\"",
        ),
        (type("Mine", (), {"name": "Mine"}), "has none of the extension points"),
        (
            type("Mine", (), {"name": "Mine", "filter": lambda self, pod: ALL}),
            "write def filter(self, cycle, pod, nodes)",
        ),
        (Wants, "wants something; a plugin can be given args and handle only"),
        (5, "register its class, or a function that makes it"),
        (Fails, "plugin Mine cannot be made: ValueError: no luck"),
        (
            type("Mine", (), {"name": "Mine", "filter": lambda self, a, b, c: ALL, "filter_node": None}),
            "write def filter_node(self, cycle, pod, node)",
        ),
        (type("Mine", (), {"name": "Mine", "filter": _async_filter}), "filter cannot be async"),
        (
            type("Mine", (), {"name": "Mine", "filter": _filter, "watched_kinds": ("namespaces",)}),
            "watched_kinds must be a tuple of kinds, such as (kinds.NAMESPACE,)",
        ),
        (
            type("Mine", (), {"name": "Mine", "filter": _filter, "watched_kinds": (kinds.CONFIG_MAP,)}),
            "watched_kinds: no plugin can read ConfigMap",
        ),
        (
            type("Mine", (), {"name": "Mine", "filter": _filter, "write_permissions": {"bind": "pods"}}),
            "write_permissions must map extension points to permissions, such as "
            '{"pre_bind": Permission.on(kinds.POD, "patch")}',
        ),
        (
            type("Mine", (), {"name": "Mine", "filter": _filter, "write_permissions": {"bound": ()}}),
            "write_permissions: no extension points: bound",
        ),
        (
            type("Mine", (), {"name": "Mine", "filter": _filter, "replaces": ("Other",)}),
            "replaces must map extension points to names of plugins, such as "
            '{"post_filter": ("DefaultPreemption",)}',
        ),
        (
            type("Mine", (), {"name": "Mine", "filter": _filter, "replaces": {"bound": ("Other",)}}),
            "replaces: no extension points: bound",
        ),
        (
            type("Mine", (), {"name": "Mine", "queue_sort": _queue_sort, "sub_queue": _queue_sort}),
            "plugin Mine: sub-queues need sub_queue_sort and changed_sub_queues, too",
        ),
        (
            type("Mine", (), {"name": "Mine", "filter": lambda: ALL}),
            "write def filter(self, cycle, pod, nodes)",
        ),
        (
            type("Mine", (), {"name": "Mine", "filter": _filter, "filter_node": []}),
            "write def filter_node(self, cycle, pod, node)",
        ),
    ],
)
def test_a_plugin_that_cannot_work_fails_at_start_with_a_sentence(factory: Any, complaint: str) -> None:
    registry = Registry()
    registry.register("Mine", factory)
    with pytest.raises(RegistryError) as error:
        registry.make("Mine", None, Handle())
    assert complaint in str(error.value)


def test_a_factory_need_be_no_class_and_no_function() -> None:
    assert Registry({"Mine": Maker("Mine")}).make("Mine", None, Handle()).name == "Mine"


def test_a_name_can_be_taken_once() -> None:
    with pytest.raises(RegistryError, match="exists already"):
        default_registry().register("NodeAffinity", Wants)


def test_arguments_for_a_plugin_without_any() -> None:
    registry = Registry({"Mine": type("Mine", (), {"name": "Mine", "filter": lambda self, a, b, c: ALL})})
    with pytest.raises(RegistryError, match="takes no arguments"):
        registry.make("Mine", {"colour": "red"}, Handle())


def test_an_unknown_plugin_is_named_with_those_there_are() -> None:
    profile = Profile(plugins=Plugins(filter=PluginSet(enabled=(PluginRef(name="Nope"),))))
    with pytest.raises(RegistryError, match=r"there is no plugin Nope; known are .*, DefaultBinder, "):
        Framework(default_profile(profile), default_registry())


def test_profiles_share_the_queue_so_they_must_sort_alike() -> None:
    registry = default_registry()
    registry.register("Newest", type("Newest", (), {"name": "Newest", "queue_sort": lambda self, queued: 0}))
    mine = {"multiPoint": {"disabled": [{"name": "PrioritySort"}], "enabled": [{"name": "Newest"}]}}
    config = parse_profiles([{"schedulerName": "a"}, {"schedulerName": "b", "plugins": mine}])
    with pytest.raises(RegistryError, match='different queue sort plugins for profile "b": "Newest"'):
        Profiles(config, registry)


def test_a_pod_belongs_to_the_profile_it_names() -> None:
    profiles = Profiles(parse_profiles([{"schedulerName": "a"}, {"schedulerName": "b"}]), default_registry())
    assert profiles.of(make_pod("p", scheduler_name="b")) is profiles["b"]
    assert profiles.of(make_pod("p", scheduler_name="other")) is None
    assert profiles["a"].handle.waiting is profiles["b"].handle.waiting


def test_typed_arguments_of_foreign_plugins_name_the_field_that_is_wrong() -> None:
    import msgspec

    class Args(msgspec.Struct):
        colour: str = "red"

    class Coloured:
        name = "Coloured"

        def __init__(self, args: Args) -> None:
            self.args = args

        def filter(self, cycle: CycleState, pod: object, nodes: Nodes) -> FilterResult:
            return ALL

    # Annotations are looked up where the class was made.
    Coloured.__init__.__annotations__["args"] = Args
    registry = Registry({"Coloured": Coloured})
    made = registry.make("Coloured", {"colour": "blue"}, Handle())
    assert made.args.colour == "blue"  # type: ignore[attr-defined]
    assert registry.make("Coloured", None, Handle()).args.colour == "red"  # type: ignore[attr-defined]
    with pytest.raises(RegistryError, match=r"plugin Coloured: args\.colour: expected text, got 5"):
        registry.make("Coloured", {"colour": 5}, Handle())
    with pytest.raises(RegistryError, match=r"plugin Coloured: args.color.*did you mean"):
        registry.make("Coloured", {"color": "blue"}, Handle())
    assert PluginConfig(name="Coloured").args is None
