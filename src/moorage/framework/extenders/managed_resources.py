"""Resources that extenders manage and the scheduler's own plugins ignore."""

from __future__ import annotations

from typing import Final

import msgspec

from moorage.config.args import NodeResourcesFitArgs
from moorage.config.types import PluginConfig, Profile, SchedulerConfiguration
from moorage.framework.loading.registry import RegistryError

_COUNTING_PLUGIN: Final = "NodeResourcesFit"


def profiles_of(config: SchedulerConfiguration) -> tuple[Profile, ...]:
    """The profiles, with NodeResourcesFit configured to ignore resources that only extenders manage."""
    ignored = tuple(
        resource.name
        for extender in config.extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    )
    if not ignored:
        return config.profiles
    return tuple(_ignoring(profile, ignored) for profile in config.profiles)


def _ignoring(profile: Profile, ignored: tuple[str, ...]) -> Profile:
    """A profile whose NodeResourcesFit ignores these resources, and no others."""
    args = profile.args(_COUNTING_PLUGIN)
    if not isinstance(args, NodeResourcesFitArgs):
        raise RegistryError("couldn't build extenders: can't find NodeResourcesFitArgs in plugin config")
    changed = msgspec.structs.replace(args, ignored_resources=ignored)
    plugin_config = tuple(
        PluginConfig(name=each.name, args=changed) if each.name == _COUNTING_PLUGIN else each
        for each in profile.plugin_config
    )
    return msgspec.structs.replace(profile, plugin_config=plugin_config)
