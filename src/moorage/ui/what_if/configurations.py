"""Scheduler configurations as YAML for editing, and back; a text never makes the page load code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from moorage.config.defaults import ALL_PLUGINS
from moorage.config.load import dump_yaml, parse_config, to_manifest
from moorage.config.problems import ConfigError
from moorage.config.types import EXTENSION_POINTS, PluginRef, Profile, SchedulerConfiguration
from moorage.emulation.kubernetes_version import KubernetesVersion
from moorage.ui.what_if.texts import EditedText

_EDITED: Final = ("apiVersion", "kind", "percentageOfNodesToScore", "profiles")
"""The fields that decisions depend on, but for extenders."""


def configuration_text(config: SchedulerConfiguration) -> str:
    """A configuration for editing: what decisions depend on."""
    manifest = to_manifest(replace(config, profiles=tuple(map(_whole, config.profiles))))
    return dump_yaml({key: manifest[key] for key in _EDITED if key in manifest})


def _whole(profile: Profile) -> Profile:
    """A profile to which no default plugins are added: those taken out of its text do not run."""
    listed = profile.plugins.multi_point
    if ALL_PLUGINS in listed.disabled_names:
        return profile
    listed = replace(listed, disabled=(*listed.disabled, PluginRef(name=ALL_PLUGINS)))
    return replace(profile, plugins=replace(profile.plugins, multi_point=listed))


def read_configuration_text(
    text: str, version: KubernetesVersion, own: SchedulerConfiguration
) -> SchedulerConfiguration:
    """A configuration; TextError if it is invalid, has extenders, or names code to be loaded.

    own: the configuration in force, whose plugins are loaded anyway.
    """
    edited = EditedText("config", text)
    try:
        config = parse_config(edited.value, "", version)
    except ConfigError as error:
        raise edited.rejected_for(error.problems) from None
    if config.extenders:
        edited.check(["extenders: the page does not call extenders; remove them"])
    edited.check(_named_code(config, own))
    return config


def _named_code(config: SchedulerConfiguration, own: SchedulerConfiguration) -> Iterator[str]:
    loaded = {name for profile in own.profiles for name in _names(profile)}
    for index, profile in enumerate(config.profiles):
        for name in sorted(_names(profile) - loaded):
            if ":" in name or "/" in name:
                yield (
                    f"profiles[{index}].plugins: {name}: plugins cannot be loaded from the page; "
                    "start it with --plugin, or with a configuration that names them"
                )


def _names(profile: Profile) -> set[str]:
    points = (profile.plugins.multi_point, *(profile.plugins.at(point) for point in EXTENSION_POINTS))
    listed = {each.name for point in points for each in (*point.enabled, *point.disabled)}
    return listed | {each.name for each in profile.plugin_config}
