"""`moorage config`: validate a configuration, show the effective one, convert an old one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import typer

from moorage.api.decode import InputError
from moorage.cli.plugin_loading import with_plugins
from moorage.cli.version_options import emulated
from moorage.config.convert import convert_config
from moorage.config.load import (
    ConfigError,
    default_config,
    dump_yaml,
    load_config,
    read_document,
    to_manifest,
)
from moorage.config.types import WIRE_NAMES, Extender, PluginRef, Profile, SchedulerConfiguration
from moorage.config.without_effect import fields_without_effect
from moorage.emulation.kubernetes_version import KUBERNETES_VERSIONS, KubernetesVersion, differences
from moorage.framework.interface.handle import Handle
from moorage.framework.loading.registry import RegistryError
from moorage.framework.runtime.profiles import Profiles

WRONG, UNREADABLE = 1, 2
"""Exit statuses: the input was read and is wrong; the input could not be read."""


def check_files(
    files: list[Path],
    plugins: list[Path] | None,
    emulated_version: str | None,
    feature_gates: list[str] | None,
) -> None:
    """Print for each file that it is valid, with its plugins, or what is wrong with it."""
    try:
        version = emulated(emulated_version, feature_gates)
    except InputError as error:
        raise _fail(error) from None
    status = 0
    for file in files:
        try:
            config = _with_plugins(file, plugins, version)
        except InputError as error:
            typer.echo(str(error), err=True)
            status = max(status, _status(error))
        else:
            typer.echo(f"{file}: ok")
            for line in _summary(config):
                typer.echo(f"  {line}")
            for note in fields_without_effect(config):
                typer.echo(f"note: {file}: has no effect: {note}", err=True)
    raise typer.Exit(status)


def print_effective(
    config: Path | None, emulated_version: str | None, feature_gates: list[str] | None
) -> None:
    """Print a configuration with all defaults; None: the default one.

    If a version is named, what differs between versions is printed before, as comments.
    """
    try:
        version = emulated(emulated_version, feature_gates)
        effective = default_config(version) if config is None else load_config(config, version)
    except InputError as error:
        raise _fail(error) from None
    if emulated_version is not None:
        typer.echo("\n".join(_version_table(version)))
    typer.echo(dump_yaml(to_manifest(effective)), nl=False)


def convert_file(old: Path, output: Path | None) -> None:
    """Convert a file, and write the result to another one or to standard output."""
    try:
        converted, notes = convert_config(read_document(old), str(old))
    except InputError as error:
        raise _fail(error) from None
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    text = dump_yaml(converted)
    if output is None:
        typer.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _fail(InputError(str(output), error.strerror or str(error))) from None


def _version_table(version: KubernetesVersion) -> Iterator[str]:
    """What differs between versions, as comments: the named version's column comes first."""
    minors = (version.minor, *(minor for minor in KUBERNETES_VERSIONS if minor != version.minor))
    yield f"# Kubernetes v{version.number}. What differs between versions:"
    yield f"# {'  '.join(f'v{minor}' for minor in minors)}"
    for name, meaning, values in differences(version):
        cells = "  ".join(f"{'yes' if values[minor] else 'no':5}" for minor in minors)
        yield f"# {cells}  {f'{name}: {meaning}' if meaning else f'feature gate {name}'}"


def _with_plugins(
    file: Path, plugins: list[Path] | None, version: KubernetesVersion
) -> SchedulerConfiguration:
    """The configuration of a file; ConfigError if one of its plugins cannot be instantiated."""
    config = load_config(file, version)
    try:
        found = with_plugins(config, plugins)
        for framework in Profiles(*found, Handle(version=version)).values():
            framework.queue_rules()  # Plugins register their events only here.
    except (InputError, RegistryError) as error:
        raise ConfigError([str(error)], str(file)) from None
    return found.config


def _status(error: InputError) -> int:
    return WRONG if isinstance(error, ConfigError) else UNREADABLE


def _fail(error: InputError) -> typer.Exit:
    typer.echo(str(error), err=True)
    return typer.Exit(_status(error))


def _summary(config: SchedulerConfiguration) -> Iterator[str]:
    """A few lines for each profile: its plugins, and its settings for single extension points."""
    for profile in config.profiles:
        yield f"profile {profile.scheduler_name}: {_names(profile.plugins.multi_point.enabled)}"
        yield from _points(profile)
    for extender in config.extenders:
        yield f"extender {extender.url_prefix}: {', '.join(_calls(extender)) or 'never called'}"


def _calls(extender: Extender) -> Iterator[str]:
    """The calls that an extender receives."""
    verbs = {
        "filter": extender.filter_verb,
        "prioritize": extender.prioritize_verb,
        "preempt": extender.preempt_verb,
        "bind": extender.bind_verb,
    }
    return (name for name, verb in verbs.items() if verb)


def _points(profile: Profile) -> Iterator[str]:
    for point, plugins in profile.plugins.items():
        parts = []
        if plugins.enabled and point != "multi_point":
            parts.append(_names(plugins.enabled))
        if plugins.disabled:
            parts.append(f"without {_names(plugins.disabled)}")
        if parts:
            yield f"  {WIRE_NAMES[point]}: {'; '.join(parts)}"


def _names(refs: tuple[PluginRef, ...]) -> str:
    return (
        ", ".join(ref.name if ref.weight is None else f"{ref.name} ({ref.weight})" for ref in refs) or "none"
    )
