"""The plugin calls of a profile: which plugins are enabled at which extension point, ready to be called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from moorage.config.expansion import expand
from moorage.config.types import Profile
from moorage.framework.interface.extension_points import (
    BINDING_POINTS,
    POINTS,
    DependsOnPlugin,
    Plugin,
    ReplacingPlugin,
    implements,
)
from moorage.framework.interface.handle import Handle
from moorage.framework.loading.registry import RegistryError, is_from_moorage
from moorage.framework.runtime.observation import CallObserver, FrameworkObserver
from moorage.framework.runtime.per_node_adapter import filter_method, score_method
from moorage.framework.runtime.plan import Calls, ProfileCalls
from moorage.framework.runtime.plugin_call import PluginCall

_ONE_NODE: Final = {"filter": "filter_node", "score": "score_node"}
"""Methods that have a per-node form, too."""


def profile_calls(
    profile: Profile, plugins: Mapping[str, Plugin], handle: Handle, observer: FrameworkObserver | None
) -> ProfileCalls:
    """The calls of a profile's plugins; RegistryError for plugins that cannot run beside each other."""
    make = _Maker(plugins, handle, observer)
    chosen = expand(
        profile.plugins, lambda name, point: implements(plugins[name], point), profile.scheduler_name
    )
    enabled = {
        point: tuple(make.call(ref.name, point, ref.weight or 1) for ref in refs)
        for point, refs in chosen.items()
    }
    _check_replaced(profile, plugins, enabled)
    by_method: dict[str, Calls] = {}
    for point in (name for name, each in POINTS.items() if not each.of_groups):
        if point == "pre_bind":
            by_method["pre_bind_pre_flight"] = make.having(enabled["pre_bind"], "pre_bind_pre_flight")
        by_method[point] = enabled[point]
        if point == "reserve":
            by_method["reserve"] = make.having(enabled["reserve"], "reserve")
            by_method["unreserve"] = make.having(enabled["reserve"], "unreserve")[::-1]
    scoring = {call.plugin for call in enabled["pre_score"]}
    skipping = make.having([call for call in enabled["pre_filter"] if call.plugin in scoring], "skips_pod")
    depending = tuple(
        PluginCall(name, "depends_on", plugin.depends_on)
        for name, plugin in plugins.items()
        if isinstance(plugin, DependsOnPlugin)
    )
    outside = frozenset(name for name, plugin in plugins.items() if not is_from_moorage(plugin))
    return ProfileCalls(enabled, by_method, skipping, depending, outside, _disabled(plugins, enabled))


def _check_replaced(profile: Profile, plugins: Mapping[str, Plugin], enabled: Mapping[str, Calls]) -> None:
    for name, plugin in plugins.items():
        replaced = plugin.replaces if isinstance(plugin, ReplacingPlugin) else {}
        for point, others in replaced.items():
            names = [call.plugin for call in enabled[point]]
            both = [each for each in others if name in names and each in names]
            if both:
                raise RegistryError(
                    f"profile {profile.scheduler_name}: {POINTS[point].metric_name}: plugin {name} replaces "
                    f"{', '.join(both)}; disable one of them"
                )


def _disabled(plugins: Mapping[str, Plugin], enabled: Mapping[str, Calls]) -> dict[str, tuple[str, ...]]:
    names = {point: {call.plugin for call in enabled[point]} for point in POINTS}
    return {
        point: tuple(
            name for name, plugin in plugins.items() if implements(plugin, point) and name not in names[point]
        )
        for point in POINTS
    }


class _Maker:
    """Makes the calls of a profile's plugins."""

    def __init__(
        self, plugins: Mapping[str, Plugin], handle: Handle, observer: FrameworkObserver | None
    ) -> None:
        self._plugins = plugins
        self._handle = handle
        self._observer = observer

    def call(self, name: str, point: str, weight: int) -> PluginCall:
        """A plugin at an extension point."""
        plugin = self._plugins[name]
        one_node = getattr(plugin, _ONE_NODE.get(point, ""), None)
        return PluginCall(
            name,
            point,
            self._watched(name, point, _method(plugin, point)),
            weight,
            None if one_node is None else self._watched(name, point, one_node),
            self._observed(name, point),
        )

    def having(self, calls: Iterable[PluginCall], method: str) -> Calls:
        """The calls of a certain method, for those of some plugins that have it."""
        return tuple(
            PluginCall(
                call.plugin,
                method,
                self._watched(call.plugin, method, bound),
                observer=self._observed(call.plugin, method),
            )
            for call in calls
            if (bound := getattr(self._plugins[call.plugin], method, None)) is not None
        )

    def _observed(self, name: str, point: str) -> CallObserver | None:
        """The observer of a plugin's calls."""
        if self._observer is None:
            return None
        preempts = getattr(self._plugins[name], "preempts", False) is True
        return self._observer.of_call(name, point, preempts=preempts)

    def _watched(self, name: str, point: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """A plugin's method; one from outside runs in a thread where it may block, or is watched."""
        if is_from_moorage(self._plugins[name]):
            return method
        threads = self._handle.threads
        if threads.limit and point in BINDING_POINTS and not inspect.iscoroutinefunction(method):
            return threads.called(method)
        return self._handle.slow_calls.watched(name, point, method, self._handle.metrics.slow_call)


def _method(plugin: Plugin, point: str) -> Callable[..., Any]:
    if point == "filter":
        return filter_method(plugin)
    if point == "score":
        return score_method(plugin)
    method: Callable[..., Any] = getattr(plugin, point, None) or plugin.unreserve  # type: ignore[attr-defined]
    return method
