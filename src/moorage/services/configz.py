"""`/configz`: the configuration in force, as kube-scheduler shows it.

The document has every plugin's weight and every extension point; a configuration that is written to be loaded
again (`config.manifest`) leaves out empty fields.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from moorage.api.manifests import Manifest
from moorage.config.manifest import to_manifest
from moorage.config.types import WIRE_NAMES, SchedulerConfiguration
from moorage.emulation.kubernetes_version import KubernetesVersion

_NAME: Final = "componentconfig"


def configz(config: SchedulerConfiguration, version: KubernetesVersion) -> Manifest:
    """The document at `/configz`."""
    document = to_manifest(config)
    connection = document["clientConnection"]
    document["clientConnection"] = {"kubeconfig": "", "acceptContentTypes": "", **connection}
    points = [
        name
        for point, name in WIRE_NAMES.items()
        if point != "pod_group_post_filter" or version.pod_group_post_filter
    ]
    document["profiles"] = [_profile(profile, points) for profile in document["profiles"]]
    if config.extenders:
        document["extenders"] = [_extender(extender) for extender in document["extenders"]]
    if not config.delay_cache_until_active:
        del document["delayCacheUntilActive"]
    return {_NAME: document}


def _profile(profile: Manifest, points: Iterable[str]) -> Manifest:
    plugins = profile.get("plugins", {})
    shown = {point: _plugin_set(plugins.get(point, {})) for point in points}
    return {**profile, "plugins": shown}


def _plugin_set(plugins: Manifest) -> Manifest:
    return {
        which: [{"name": plugin["name"], "weight": plugin.get("weight", 0)} for plugin in named]
        for which, named in plugins.items()
        if named
    }


def _extender(extender: dict[str, Any]) -> Manifest:
    shown = {key: value for key, value in extender.items() if value}
    return {"urlPrefix": "", "httpTimeout": "0s", **shown}
