"""Plugins from outside: where they are found, and how a configuration comes to use them.

There are four places. Packages announce theirs as entry points of the group `moorage.plugins`; these are
loaded only if a configuration names them. A configuration may use `module:Class` as the name of a plugin.
Custom schedulers pass plugins in. And for a first try there are files: each plugin class in a file is enabled
in every profile, unless some profile configures its extension points itself.

A plugin that cannot be loaded is a RegistryError: one sentence, with the file and line.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from moorage.config.defaults import ALL_PLUGINS
from moorage.config.types import PluginRef, Plugins, PluginSet, Profile, SchedulerConfiguration
from moorage.framework.interface.extension_points import POINTS, implements
from moorage.framework.loading.plugin_files import FileError, add_import_folder, load_files
from moorage.framework.loading.registry import Factory, NamedPlugin, Registry, RegistryError
from moorage.framework.runtime.error_location import described, location_in_import

GROUP: Final = "moorage.plugins"
"""Entry point group of packages that provide plugins."""

_MODULE_AND_CLASS: Final = re.compile(r"(?P<module>[^\W\d]\w*(\.[^\W\d]\w*)*):(?P<path>[^\W\d]\w*(\.\w+)*)")


class DiscoveredPlugins(NamedTuple):
    """A configuration that refers to plugins by name, and the plugins found."""

    config: SchedulerConfiguration
    registry: Registry


def find_plugins(
    config: SchedulerConfiguration,
    registry: Registry,
    files: Iterable[Path] = (),
    given: Iterable[NamedPlugin] = (),
) -> DiscoveredPlugins:
    """Add all plugins from outside to a registry, and adapt a configuration to them.

    given: plugins from the caller; like those of packages they run only if a configuration names them.
    """
    for name, factory in given:
        registry.register(name, factory, "this program")
    for name, entry in _announced().items():
        registry.register_later(name, _loader(name, entry), _package_of(entry))
    classes = plugins_in_files(files)
    for plugin, path in classes.items():
        registry.register(plugin.name, plugin, str(path))
    config = _resolved(config, registry)
    for plugin in classes:
        config = enabled_everywhere(config, plugin)
    load_enabled(config, registry)
    return DiscoveredPlugins(config, registry)


def load_enabled(config: SchedulerConfiguration, registry: Registry) -> None:
    """Load the plugins that are enabled: objects of the kinds that they declare can be read from now on."""
    enabled = {
        ref.name
        for profile in config.profiles
        for _, each in profile.plugins.items()
        for ref in each.enabled
        if ref.name in registry
    }
    for name in sorted(enabled):
        registry[name]


# Entry points


def _announced() -> dict[str, EntryPoint]:
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=GROUP):
        other = found.setdefault(entry.name, entry)
        if other.value != entry.value:
            raise RegistryError(
                f"{_package_of(other)} and {_package_of(entry)} both have a plugin named {entry.name}; "
                "uninstall one of them"
            )
    return found


def _package_of(entry: EntryPoint) -> str:
    return f"the package {entry.dist.name}" if entry.dist is not None else entry.value


def _loader(name: str, entry: EntryPoint) -> Callable[[], Factory]:
    def load() -> Factory:
        try:
            factory: Factory = entry.load()
        except Exception as error:
            raise _cannot_be_loaded(f"plugin {name} of {_package_of(entry)}", error) from error
        return factory

    return load


# module:Class


def _resolved(config: SchedulerConfiguration, registry: Registry) -> SchedulerConfiguration:
    """A configuration with `module:Class` replaced by names, which are added to the registry."""
    written = {name for profile in config.profiles for name in _names(profile)}
    names: dict[str, str] = {}
    for each in sorted(written):
        if (matched := _MODULE_AND_CLASS.fullmatch(each)) is not None:
            factory = _imported(each, matched["module"], matched["path"])
            names[each] = name = _name_of(each, factory)
            if name not in registry or registry[name] is not factory:
                registry.register(name, factory, matched["module"])
    if not names:
        return config
    return replace(config, profiles=tuple(_renamed(profile, names) for profile in config.profiles))


def _names(profile: Profile) -> Iterator[str]:
    """All plugins that a profile names."""
    yield from _placed(profile)
    yield from (each.name for each in profile.plugin_config)


def _renamed(profile: Profile, names: Mapping[str, str]) -> Profile:
    def refs(given: Sequence[PluginRef]) -> tuple[PluginRef, ...]:
        return tuple(replace(ref, name=names.get(ref.name, ref.name)) for ref in given)

    plugins = Plugins(
        **{
            point: PluginSet(enabled=refs(each.enabled), disabled=refs(each.disabled))
            for point, each in profile.plugins.items()
        }
    )
    configs = tuple(replace(each, name=names.get(each.name, each.name)) for each in profile.plugin_config)
    twice = [name for name in names.values() if sum(each.name == name for each in configs) > 1]
    if twice:
        raise RegistryError(
            f"profile {profile.scheduler_name}: pluginConfig has {twice[0]} twice, by name and as "
            "module:Class; keep one"
        )
    return replace(profile, plugins=plugins, plugin_config=configs)


def _imported(written: str, module: str, path: str) -> Factory:
    add_import_folder(Path.cwd())
    try:
        found: Any = importlib.import_module(module)
    except Exception as error:
        raise _cannot_be_loaded(f"plugin {written}", error) from error
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise RegistryError(f"plugin {written}: there is no {path} in {_file_of(module)}") from None
    if not callable(found):
        raise RegistryError(f"plugin {written}: {path} is no class; name the plugin's class")
    factory: Factory = found
    return factory


def _file_of(module: str) -> str:
    return getattr(sys.modules[module], "__file__", None) or module


def _name_of(written: str, factory: Any, otherwise: str = "") -> str:
    if not _has_name(factory):
        called = getattr(factory, "__name__", "Mine")
        raise RegistryError(f'plugin {written} has no name; write name = "{called}" in its class{otherwise}')
    name: str = factory.name
    return name


def _has_name(factory: Any) -> bool:
    name = getattr(factory, "name", None)
    return isinstance(name, str) and bool(name)


# Files


def plugins_in_files(paths: Iterable[Path]) -> dict[type[Any], Path]:
    """The plugin classes of files, which are run again, each with its file: those with an extension point.

    Classes whose names begin with an underscore, those that are imported from elsewhere, and base classes do
    not count. A base class is one without a name, or an abstract one, from which a plugin of these files is
    derived.
    """
    paths = list(paths)
    found = {each: path for path, module in zip(paths, _loaded(paths), strict=True) for each in _own(module)}
    for path in paths:
        if path not in found.values():
            raise RegistryError(
                f"{path}: there is no plugin in it; write a class with a name and one of {', '.join(POINTS)}"
            )
    plugins = {each: path for each, path in found.items() if not _is_base(each, found)}
    for each, path in plugins.items():
        _name_of(f"{each.__name__} in {path}", each, f", or call it _{each.__name__} if it is a base class")
    return plugins


def _loaded(paths: Sequence[Path]) -> list[ModuleType]:
    for path in paths:
        try:
            path.open("rb").close()
        except OSError as error:
            raise RegistryError(f"{path}: {error.strerror}; --plugin wants a Python file") from None
    try:
        return load_files(paths)
    except FileError as error:
        raise _cannot_be_loaded(str(error.path), error.reason) from error.reason


def _own(module: ModuleType) -> Iterator[type[Any]]:
    """The classes of a module that have extension points, in their order."""
    for each in dict.fromkeys(each for each in vars(module).values() if isinstance(each, type)):
        is_own = each.__module__ == module.__name__ and not each.__name__.startswith("_")
        if is_own and any(implements(each, point) for point in POINTS):
            yield each


def _is_base(cls: type[Any], classes: Iterable[type[Any]]) -> bool:
    """Whether a class is only a base class of others, which have names."""
    if _has_name(cls) and not inspect.isabstract(cls):
        return False
    return any(each is not cls and issubclass(each, cls) and _has_name(each) for each in classes)


def enabled_everywhere(config: SchedulerConfiguration, plugin: type[Any]) -> SchedulerConfiguration:
    """A configuration with a plugin at all its points in every profile, if no profile configures it.

    The queue has one order, so a queue sort plugin replaces the default; a bind plugin is called first,
    because the default binds every pod.
    """
    ref = PluginRef(name=plugin.name)
    if any(ref.name in _placed(profile) for profile in config.profiles):
        return config
    profiles = []
    for profile in config.profiles:
        plugins = profile.plugins
        points = {"multi_point": _with_last(plugins.multi_point, ref)}
        if implements(plugin, "queue_sort"):
            points["queue_sort"] = PluginSet(enabled=(ref,), disabled=(PluginRef(name=ALL_PLUGINS),))
        if implements(plugin, "bind"):
            points["bind"] = PluginSet(enabled=(ref, *plugins.bind.enabled), disabled=plugins.bind.disabled)
        profiles.append(replace(profile, plugins=replace(plugins, **points)))
    return replace(config, profiles=tuple(profiles))


def _placed(profile: Profile) -> set[str]:
    """The plugins that a profile enables or disables explicitly."""
    return {ref.name for _, each in profile.plugins.items() for ref in (*each.enabled, *each.disabled)}


def _with_last(plugins: PluginSet, ref: PluginRef) -> PluginSet:
    return PluginSet(enabled=(*plugins.enabled, ref), disabled=plugins.disabled)


# Errors


def _cannot_be_loaded(what: str, error: BaseException) -> RegistryError:
    place = location_in_import(error)
    where = "" if place is None else f" ({place.file}:{place.line})"
    text = " ".join(described(error).split())
    return RegistryError(f"{what} cannot be loaded: {text}{where}; {_remedy(error)}")


def _remedy(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError):
        return "install its package, or correct the name"
    if isinstance(error, ImportError) and "relative import" in str(error):
        return "install the package it belongs to, and name it as module:Class in the configuration"
    return "correct it"
