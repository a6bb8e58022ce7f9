"""Conversion of old configurations to v1: v1alpha1, v1alpha2, v1beta1 to v1beta3, and Policy.

The result has the fields of the old file, no more: defaults are left to loading. Everything that is dropped
or has changed its meaning is listed in the notes, with its successor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moorage.config.args import MOST_ALLOCATED
from moorage.config.convert_extenders import convert_extenders
from moorage.config.convert_plugins import convert_plugins
from moorage.config.convert_policy import convert_policy
from moorage.config.draft import Draft
from moorage.config.load import OLD_API_VERSIONS, POLICY_KIND, parse_config
from moorage.config.problems import ConfigError, one_line
from moorage.config.strict import decode
from moorage.config.types import API_VERSION, GROUP, KIND, PluginConfig, PluginRef, Plugins, PluginSet

_ADDRESSES = ("healthzBindAddress", "metricsBindAddress")
_LOCKS = {"lockObjectName": "resourceName", "lockObjectNamespace": "resourceNamespace"}


@dataclass(frozen=True, slots=True)
class _Settings:
    """Old top-level fields that became arguments or plugin sets of every profile."""

    version: str
    provider: str | None = None
    disable_preemption: bool = False
    bind_timeout_seconds: Any = None
    hard_pod_affinity_weight: Any = None


def convert_config(document: Any, where: str = "") -> tuple[dict[str, Any], list[str]]:
    """An old document as a valid v1 document, and notes on everything that was dropped or changed.

    ConfigError if the document is none of the old versions, or if the result would be invalid.
    """
    notes: list[str] = []
    problems: list[str] = []
    if not isinstance(document, Mapping):
        raise ConfigError(["expected an object with apiVersion and kind"], where)
    present = {key: value for key, value in document.items() if value is not None}
    version, kind = present.pop("apiVersion", None), present.pop("kind", None)
    if kind == POLICY_KIND and version in (None, "v1"):
        body = convert_policy(present, notes, problems)
    elif kind == KIND and version in OLD_API_VERSIONS:
        body = _convert_old(present, version.removeprefix(f"{GROUP}/"), notes, problems)
    elif kind == KIND and version == API_VERSION:
        body = present
        notes.append(f"the file is of {API_VERSION} already; nothing to convert")
    else:
        known = ", ".join(OLD_API_VERSIONS)
        raise ConfigError(
            [f"apiVersion {version}, kind {kind}: expected {KIND} of one of {known}, or Policy of v1"],
            where,
        )
    if problems:
        raise ConfigError(problems, where)
    converted = {"apiVersion": API_VERSION, "kind": KIND, **body}
    parse_config(converted, where)
    return converted, [one_line(note) for note in notes]


def _convert_old(old: dict[str, Any], version: str, notes: list[str], problems: list[str]) -> dict[str, Any]:
    for name in _ADDRESSES:
        if old.pop(name, None) is not None:
            notes.append(f"{name}: dropped; health and metrics are served over HTTPS, at --secure-port")
    if "leaderElection" in old:
        old["leaderElection"] = _leader_election(old["leaderElection"], notes, problems)
    settings = _Settings(
        version=version,
        provider=_algorithm_source(old.pop("algorithmSource", {}), notes, problems),
        disable_preemption=decode(old.pop("disablePreemption", False), bool, "disablePreemption", problems),
        bind_timeout_seconds=old.pop("bindTimeoutSeconds", None),
        hard_pod_affinity_weight=old.pop("hardPodAffinitySymmetricWeight", None),
    )
    if version == "v1alpha1":
        alone = {name: old.pop(name) for name in ("schedulerName", "plugins", "pluginConfig") if name in old}
        profiles: Any = [_profile(alone, "", settings, notes, problems)]
        if alone:
            notes.append("schedulerName, plugins and pluginConfig moved into profiles[0]")
    else:
        profiles = old.pop("profiles", None) or [{}]
        if isinstance(profiles, list):
            profiles = [
                _profile(each, f"profiles[{index}]", settings, notes, problems)
                for index, each in enumerate(profiles)
            ]
    extenders = old.pop("extenders", None)
    if version in ("v1alpha1", "v1alpha2"):
        extenders = convert_extenders(extenders, notes)
    if version != "v1beta3":
        notes.append(
            f"default weights have changed since {version}: TaintToleration 1 to 3, NodeAffinity 1 to 2, "
            "InterPodAffinity 1 to 2; to keep the old ones, list these plugins with weight 1 under "
            "plugins.score.enabled"
        )
    if profiles != [{}]:
        old["profiles"] = profiles
    if extenders:
        old["extenders"] = extenders
    return old


def _leader_election(raw: Any, notes: list[str], problems: list[str]) -> Any:
    if not isinstance(raw, Mapping):
        return raw
    election = {key: value for key, value in raw.items() if value is not None}
    for old, new in _LOCKS.items():
        value = election.pop(old, None)
        if not value:
            continue
        if election.get(new) not in (None, "", value):
            problems.append(f"leaderElection.{old}: differs from {new}; remove one of them")
        election[new] = value
        notes.append(f"leaderElection.{old}: now written {new}")
    lock = election.get("resourceLock")
    if lock not in (None, "", "leases"):
        election["resourceLock"] = "leases"
        notes.append(f"leaderElection.resourceLock: {lock} is no longer possible; leases take its place")
    return election


def _algorithm_source(raw: Any, notes: list[str], problems: list[str]) -> str | None:
    """The name of an algorithm provider; for a policy, which is a separate file, a note."""
    source = decode(raw, dict[str, Any], "algorithmSource", problems)
    policy = source.get("policy")
    if isinstance(policy, Mapping):
        file, config_map = policy.get("file"), policy.get("configMap")
        place = "the policy"
        if isinstance(file, Mapping):
            place = f"the policy file {file.get('path')}"
        elif isinstance(config_map, Mapping):
            place = f"the policy in the config map {config_map.get('namespace')}/{config_map.get('name')}"
        notes.append(f"algorithmSource.policy: dropped; convert {place} with `moorage config convert`, too")
    provider = source.get("provider")
    if provider is not None:
        notes.append(f"algorithmSource.provider: {provider} is dropped; profiles took the place of providers")
    return provider if isinstance(provider, str) else None


def _profile(raw: Any, path: str, settings: _Settings, notes: list[str], problems: list[str]) -> Any:
    if not isinstance(raw, Mapping):
        return raw
    profile = {key: value for key, value in raw.items() if value is not None}
    draft = Draft(path=path, notes=notes, problems=problems)
    _read_plugins(draft, profile.pop("plugins", None) or {}, settings.version)
    _read_plugin_config(draft, profile.pop("pluginConfig", None) or [])
    if problems:
        return profile
    convert_plugins(draft)
    _apply_settings(draft, settings)
    return {**profile, **draft.manifest()}


def _read_plugins(draft: Draft, raw: Any, version: str) -> None:
    path = f"{draft.path}.plugins".lstrip(".")
    points = dict(raw) if isinstance(raw, Mapping) else raw
    unreserve = PluginSet()
    if isinstance(points, dict):
        if version == "v1alpha1" and points.get("postFilter") is not None:
            points["preScore"] = points.pop("postFilter")
            draft.note(
                "plugins.postFilter of v1alpha1 is now called preScore; today's postFilter is another point"
            )
        unreserve = decode(
            points.pop("unreserve", None) or {}, PluginSet, f"{path}.unreserve", draft.problems
        )
    plugins = decode(points, Plugins, path, draft.problems)
    if draft.problems:
        return
    draft.add(plugins)
    for ref in unreserve.enabled:
        if draft.enable("reserve", PluginRef(name=ref.name)):
            draft.note(f"plugins.unreserve: {ref.name} is now enabled at reserve, which includes unreserve")
        else:
            draft.note(
                f"plugins.unreserve: dropped for {ref.name}; reserve, where it is enabled, includes it"
            )
    for ref in unreserve.disabled:
        draft.note(
            f"plugins.unreserve.disabled: dropped for {ref.name}; disable it at reserve, which includes it"
        )


def _read_plugin_config(draft: Draft, raw: Any) -> None:
    path = f"{draft.path}.pluginConfig".lstrip(".")
    if not isinstance(raw, list):
        draft.problems.append(f"{path}: expected a list")
        return
    for index, each in enumerate(raw):
        config = decode(each, PluginConfig, f"{path}[{index}]", draft.problems)
        if draft.problems:
            return
        if config.name in draft.args:
            draft.problems.append(f"{path}[{index}]: the args of {config.name} are given twice; keep one")
        draft.args[config.name] = config.args


def _apply_settings(draft: Draft, settings: _Settings) -> None:
    if settings.provider == "ClusterAutoscalerProvider":
        fit = draft.arguments("NodeResourcesFit")
        fit.setdefault("scoringStrategy", {"type": MOST_ALLOCATED})
        draft.note("ClusterAutoscalerProvider is now the scoringStrategy MostAllocated of NodeResourcesFit")
    if settings.disable_preemption:
        draft.disable("multi_point", "DefaultPreemption")
        draft.note("disablePreemption is now written as multiPoint.disabled: DefaultPreemption")
    if settings.bind_timeout_seconds is not None:
        draft.arguments("VolumeBinding").setdefault("bindTimeoutSeconds", settings.bind_timeout_seconds)
        draft.note("bindTimeoutSeconds is now an argument of VolumeBinding")
    if settings.hard_pod_affinity_weight is not None:
        affinity = draft.arguments("InterPodAffinity")
        affinity.setdefault("hardPodAffinityWeight", settings.hard_pod_affinity_weight)
        draft.note("hardPodAffinitySymmetricWeight is now hardPodAffinityWeight of InterPodAffinity")
