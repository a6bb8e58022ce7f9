"""Every plugin that comes with moorage: default and optional ones."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from moorage.client.kinds import Kind
from moorage.client.permissions import Permission
from moorage.config.args import ARGS_BY_PLUGIN, PluginArgs
from moorage.config.defaults import default_plugins
from moorage.config.strict import decode
from moorage.config.validate_args import validate_args
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, KUBERNETES_VERSIONS
from moorage.framework.interface.arguments import ArgumentsError, typed_arguments
from moorage.framework.interface.extension_points import POINTS, implements
from moorage.plugins import LOADED_BY_NAME, OPTIONAL_PLUGINS, default_registry
from tools.docs.fields import field_table, fields_of, has_fields, inner_types, type_name
from tools.docs.markdown import code, docstring, escaped, table, without_entries

_PROBES: Mapping[str, tuple[Any, ...]] = {
    "integer": (-1, 0, 11, 101, 1_001, 1_000_001, (1 << 31) - 1),
    "number": (-1.0, 0.0, 1e9),
    "duration": ("-1s", "0s"),
    "text": ("", "?"),
}
"""Values by type that arguments are tried with, to see which are refused and why."""


def page() -> str:
    """The page."""
    registry = default_registry()
    optional = {*LOADED_BY_NAME, *(each.name for each in OPTIONAL_PLUGINS)}
    parts = [
        "# Plugins",
        "Default plugins run unless a configuration disables them; optional ones where a configuration names "
        "them. Arguments are set in `pluginConfig` of a [profile](configuration.md).",
        table(["plugin", "runs by default in", "weight", "extension points"], _overview(registry)),
        "## Default plugins",
        *(part for name in registry if name not in optional for part in _plugin(name, registry[name])),
        "## Optional plugins",
        *(part for name in registry if name in optional for part in _plugin(name, registry[name])),
    ]
    return "\n\n".join(parts) + "\n"


def _weights(gates: Mapping[str, bool]) -> dict[str, dict[str, int | None]]:
    """The weights of the plugins that run by default, by version."""
    versions = {minor: version.with_gates(gates) for minor, version in KUBERNETES_VERSIONS.items()}
    return {
        f"v{minor}": {ref.name: ref.weight for ref in default_plugins(version).multi_point.enabled}
        for minor, version in versions.items()
    }


def _overview(registry: Mapping[str, Any]) -> list[list[str]]:
    default, with_gates = _weights({}), _weights({"AllAlpha": True, "AllBeta": True})
    rows = []
    for name in registry:
        where = [minor for minor, weights in default.items() if name in weights]
        where = where or [f"{minor} with feature gates" for minor, each in with_gates.items() if name in each]
        weight = next((str(each[name]) for each in with_gates.values() if each.get(name)), "")
        points = ", ".join(_points(registry[name]))
        rows.append([f"[{name}](#{name.lower()})", ", ".join(where), weight, points])
    return rows


def _points(plugin: Any) -> list[str]:
    return [point.metric_name for point in POINTS.values() if implements(plugin, point.name)]


def _plugin(name: str, plugin: Any) -> Iterator[str]:
    yield f"### {name}"
    yield docstring(plugin.__doc__)
    module = sys.modules[plugin.__module__].__doc__
    if module and module.partition("\n")[0] != (plugin.__doc__ or "").partition("\n")[0]:
        yield docstring(module)
    facts = [
        ("extension points", ", ".join(_points(plugin))),
        ("reads, beside nodes and pods", _kinds(getattr(plugin, "watched_kinds", ()))),
        ("lists", _kinds(getattr(plugin, "listed_kinds", ()))),
        ("writes", _permissions(getattr(plugin, "write_permissions", {}))),
        ("source", code(plugin.__module__)),
    ]
    yield "\n".join(f"- {title}: {text}" for title, text in facts if text)
    if (args := arguments_of(plugin)) is not None:
        yield from _arguments(name, args)


def _kinds(kinds: tuple[Kind, ...]) -> str:
    return ", ".join(f"{kind.name} ({code(kind.api_version)})" for kind in kinds)


def _permissions(permissions: Mapping[str, tuple[Permission, ...]]) -> str:
    found = []
    for point, each in permissions.items():
        verbs: dict[str, list[str]] = {}
        for one in each:
            verbs.setdefault(f"{one.resource}.{one.group}" if one.group else one.resource, []).append(
                one.verb
            )
        found += [f"{', '.join(names)} {code(what)} in {code(point)}" for what, names in verbs.items()]
    return "; ".join(found)


def arguments_of(plugin: Any) -> type | None:
    """The type of a plugin's arguments; None if it has none."""
    if (named := ARGS_BY_PLUGIN.get(plugin.name)) is not None:
        return named
    args = inspect.signature(plugin, eval_str=True).parameters.get("args")
    return args.annotation if args is not None and has_fields(args.annotation) else None


def _arguments(name: str, args: type) -> Iterator[str]:
    yield f"Arguments ({code(args.__name__)}): {without_entries(args.__doc__)}"
    yield field_table(args, defaults=_defaulted(args))
    for inner in inner_types(args):
        yield f"{code(inner.__name__)}: {without_entries(inner.__doc__)}"
        yield field_table(inner)
    if refusals := list(refused(name, args)):
        yield "Values that are refused, with the reason:"
        yield "\n".join(f"- {escaped(each)}" for each in refusals)


def _defaulted(args: type) -> Any:
    """Arguments that nothing was said of, with their defaults."""
    return args().defaulted(DEFAULT_VERSION) if issubclass(args, PluginArgs) else None


def refused(name: str, args: type) -> Iterator[str]:
    """Why a value of each field is refused: the first that is too small, and the first that is too large."""
    known = {*_problems(name, args, {})}
    said: set[str] = set()
    for path, value in _probes(args):
        given: Any = value
        for part in reversed(path):
            given = {part: given}
        for problem in _problems(name, args, given):
            pattern = problem.replace(str(value), "", 1)
            if problem not in known and pattern not in said:
                said.add(pattern)
                yield problem


def _probes(args: type) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Paths of fields, down to those of inner types, each with values to try."""
    for row in fields_of(args):
        if has_fields(row.type):
            yield from (((row.name, *path), value) for path, value in _probes(row.type))
        else:
            kind = type_name(row.type).partition(",")[0]
            yield from (((row.name,), value) for value in _PROBES.get(kind, ()))


def _problems(name: str, args: type, given: Any) -> list[str]:
    """What is wrong with arguments."""
    if name in ARGS_BY_PLUGIN:
        problems: list[str] = []
        made: PluginArgs = decode(given, ARGS_BY_PLUGIN[name], "args", problems)
        return problems or validate_args("args", made.defaulted(DEFAULT_VERSION))
    try:
        typed_arguments(given, args)
    except ArgumentsError as error:
        return str(error).split("; ")
    return []
