"""A mutable profile, for the conversion of old configurations.

Old profiles name plugins that no longer exist. With a draft a rule can remove such a plugin and put its
successor in its place, with a note for the user.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from moorage.config.defaults import ALL_PLUGINS
from moorage.config.manifest import encode
from moorage.config.strict import decode
from moorage.config.types import PluginRef, Plugins, PluginSet

S = TypeVar("S", bound=msgspec.Struct)


@dataclass(slots=True)
class Mentions:
    """Where a plugin was named: positions and weights where enabled, extension points where disabled."""

    enabled: dict[str, tuple[int, PluginRef]] = field(default_factory=dict)
    disabled: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.enabled or self.disabled)


@dataclass(slots=True)
class Draft:
    """Plugin lists by extension point and arguments by plugin, all mutable."""

    path: str
    notes: list[str]
    problems: list[str]
    enabled: dict[str, list[PluginRef]] = field(default_factory=dict)
    disabled: dict[str, list[PluginRef]] = field(default_factory=dict)
    args: dict[str, Any] = field(default_factory=dict)

    def note(self, text: str) -> None:
        """Add a note for the user about this profile."""
        self.notes.append(f"{self.path}: {text}" if self.path else text)

    def add(self, plugins: Plugins) -> None:
        """Add these plugin sets."""
        for point, each in plugins.items():
            self.enabled[point] = list(each.enabled)
            self.disabled[point] = list(each.disabled)

    def take(self, name: str) -> Mentions:
        """Remove a plugin from all lists; returns where it was."""
        mentions = Mentions()
        for point, refs in self.enabled.items():
            for index, ref in enumerate(refs):
                if ref.name == name:
                    mentions.enabled[point] = (index, ref)
            self.enabled[point] = [ref for ref in refs if ref.name != name]
        for point, refs in self.disabled.items():
            if any(ref.name == name for ref in refs):
                mentions.disabled.append(point)
            self.disabled[point] = [ref for ref in refs if ref.name != name]
        return mentions

    def runs(self, name: str, point: str) -> bool:
        """Whether a default plugin runs at an extension point it implements."""
        if any(ref.name == name for ref in self.enabled.get(point, ())):
            return True
        if self._disables(point, name):
            return False
        in_general = any(ref.name == name for ref in self.enabled.get("multi_point", ()))
        return in_general or not self._disables("multi_point", name)

    def _disables(self, point: str, name: str) -> bool:
        return any(ref.name in (ALL_PLUGINS, name) for ref in self.disabled.get(point, ()))

    def enable(self, point: str, ref: PluginRef, index: int | None = None) -> bool:
        """Enable a plugin at an index of a point's list; False if the list has it already."""
        refs = self.enabled.setdefault(point, [])
        if any(each.name == ref.name for each in refs):
            return False
        refs.insert(len(refs) if index is None else index, ref)
        return True

    def disable(self, point: str, name: str) -> None:
        """Disable a default plugin at a point."""
        refs = self.disabled.setdefault(point, [])
        if not any(each.name == name for each in refs):
            refs.append(PluginRef(name=name))

    def decode_args(self, name: str, args: Any, kind: type[S]) -> S:
        """Arguments as a struct; if they are invalid a problem is added, and the struct is empty."""
        problems: list[str] = []
        body = args if args is not None else {}
        if isinstance(body, Mapping):
            body = {key: value for key, value in body.items() if key not in ("apiVersion", "kind")}
        decoded = decode(body, kind, f"{self.path}.pluginConfig({name}).args".lstrip("."), problems)
        self.problems += problems
        return kind() if problems else decoded

    def arguments(self, name: str) -> dict[str, Any]:
        """A plugin's arguments, mutable; a problem is added if they are not an object."""
        args = self.args.get(name)
        if args is not None and not isinstance(args, Mapping):
            self.problems.append(
                f"{self.path}.pluginConfig: the args of {name} are not an object".lstrip(".")
            )
            args = None
        self.args[name] = dict(args or {})
        changed: dict[str, Any] = self.args[name]
        return changed

    def manifest(self) -> dict[str, Any]:
        """The profile's `plugins` and `pluginConfig`, without empty parts."""
        points = self.enabled.keys() | self.disabled.keys()
        plugins = Plugins(
            **{
                point: PluginSet(
                    enabled=tuple(self.enabled.get(point, ())), disabled=tuple(self.disabled.get(point, ()))
                )
                for point in points
            }
        )
        manifest: dict[str, Any] = {}
        if plain := encode(plugins):
            manifest["plugins"] = plain
        configs = [
            {"name": name, **({} if args is None else {"args": args})} for name, args in self.args.items()
        ]
        if configs:
            manifest["pluginConfig"] = configs
        return manifest
