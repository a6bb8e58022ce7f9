"""Loading of a configuration: version, strict decoding, defaults, validation, in that order.

Each step runs only if the one before found no problems, and reports all problems that it finds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from msgspec.structs import replace

from moorage.api.decode import InputError
from moorage.api.files import compose_documents, load_documents, read_text
from moorage.config.args import ARGS_BY_PLUGIN
from moorage.config.defaults import apply_defaults, fill_absent
from moorage.config.manifest import dump_yaml, to_manifest
from moorage.config.problems import ConfigError, child
from moorage.config.strict import decode
from moorage.config.types import API_VERSION, GROUP, KIND, PluginConfig, PluginSet, SchedulerConfiguration
from moorage.config.validation import validate
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, KubernetesVersion

__all__ = [
    "OLD_API_VERSIONS",
    "POLICY_KIND",
    "ConfigError",
    "default_config",
    "dump_yaml",
    "duplicate_keys",
    "load_config",
    "parse_config",
    "parse_profiles",
    "read_document",
    "to_manifest",
]

OLD_API_VERSIONS = tuple(
    f"{GROUP}/{version}" for version in ("v1alpha1", "v1alpha2", "v1beta1", "v1beta2", "v1beta3")
)
"""Versions that kube-scheduler supported once and `convert` still does."""

POLICY_KIND = "Policy"
"""The kind of the format before KubeSchedulerConfiguration."""


def default_config(version: KubernetesVersion = DEFAULT_VERSION) -> SchedulerConfiguration:
    """The default configuration."""
    return apply_defaults(SchedulerConfiguration(), version)


def load_config(path: Path, version: KubernetesVersion = DEFAULT_VERSION) -> SchedulerConfiguration:
    """The configuration in a file; ConfigError if it is invalid, InputError if it cannot be read."""
    return parse_config(read_document(path), str(path), version)


def parse_profiles(
    profiles: list[Any], where: str = "", version: KubernetesVersion = DEFAULT_VERSION
) -> SchedulerConfiguration:
    """A configuration with only profiles given, as in recordings."""
    return parse_config({"apiVersion": API_VERSION, "kind": KIND, "profiles": profiles}, where, version)


def parse_config(
    document: Any, where: str = "", version: KubernetesVersion = DEFAULT_VERSION
) -> SchedulerConfiguration:
    """A document as the configuration in force; ConfigError has all problems of the step that failed."""
    if not isinstance(document, Mapping):
        got = (
            "nothing" if document is None else "a list" if isinstance(document, list) else "text or a number"
        )
        raise ConfigError(
            [f"expected an object with apiVersion {API_VERSION} and kind {KIND}, got {got}"], where
        )
    if problem := _version_problem(document):
        raise ConfigError([problem], where)
    problems: list[str] = []
    body = {key: value for key, value in fill_absent(document).items() if key not in ("apiVersion", "kind")}
    config = decode(body, SchedulerConfiguration, "", problems)
    problems += _unknown_points(config, version) if not problems else ()
    if not problems:
        config = _with_typed_args(config, problems)
    if not problems:
        config = apply_defaults(config, version)
        problems = validate(config, version)
    if problems:
        raise ConfigError(problems, where)
    return config


def _unknown_points(config: SchedulerConfiguration, version: KubernetesVersion) -> Iterator[str]:
    """Extension points that are named and that a version does not have."""
    if version.pod_group_post_filter:
        return
    for index, profile in enumerate(config.profiles):
        if profile.plugins.pod_group_post_filter != PluginSet():
            yield f"profiles[{index}].plugins.podGroupPostFilter: unknown field in v{version.minor}"


def _version_problem(document: Mapping[str, Any]) -> str | None:
    version, kind = document.get("apiVersion"), document.get("kind")
    if version == API_VERSION and kind == KIND:
        return None
    convert = "run `moorage config convert FILE` to get a file of this version"
    if kind == POLICY_KIND:
        return f"kind: Policy was replaced by {KIND} of {API_VERSION}; {convert}"
    if version in OLD_API_VERSIONS:
        return f"apiVersion: {version} is no longer served, expected {API_VERSION}; {convert}"
    if version != API_VERSION:
        return f"apiVersion: {_found(version)}, expected {API_VERSION}"
    return f"kind: {_found(kind)}, expected {KIND}"


def _found(value: Any) -> str:
    return "missing" if value is None else f"{value!r} is unknown" if isinstance(value, str) else "not text"


def _with_typed_args(config: SchedulerConfiguration, problems: list[str]) -> SchedulerConfiguration:
    profiles = []
    for i, profile in enumerate(config.profiles):
        configs = tuple(
            _typed_args(each, f"profiles[{i}].pluginConfig[{j}].args", problems)
            for j, each in enumerate(profile.plugin_config)
        )
        profiles.append(replace(profile, plugin_config=configs))
    return replace(config, profiles=tuple(profiles))


def _typed_args(config: PluginConfig, path: str, problems: list[str]) -> PluginConfig:
    """The arguments of a default plugin as their struct; they may have an apiVersion and kind."""
    if config.args is None:
        return config
    if not isinstance(config.args, Mapping):
        problems.append(f"{path}: expected an object with the plugin's arguments")
        return config
    kind = ARGS_BY_PLUGIN.get(config.name)
    if kind is None:
        return config
    body = dict(config.args)
    version, named = body.pop("apiVersion", None), body.pop("kind", None)
    if version not in (None, API_VERSION):
        problems.append(f"{path}.apiVersion: expected {API_VERSION} or nothing, got {version}")
    if named not in (None, kind.__name__):
        problems.append(
            f"{path}: args for plugin {config.name} were not of type {kind.__name__}.{GROUP}, "
            f"got {named}.{GROUP}; remove kind or correct it"
        )
    return replace(config, args=decode(body, kind, path, problems))


def read_document(path: Path) -> Any:
    """The single document in a YAML or JSON file, without duplicate keys."""
    text = read_text(path)
    try:
        documents = load_documents(text, str(path))
        nodes = compose_documents(text, str(path))
    except InputError as error:
        raise ConfigError([error.reason], error.where) from None
    if len(documents) != 1:
        count = "no" if not documents else str(len(documents))
        raise ConfigError([f"expected one document, the file has {count}"], str(path))
    if problems := duplicate_keys(nodes):
        raise ConfigError(problems, str(path))
    return documents[0]


def duplicate_keys(documents: Iterable[yaml.Node]) -> list[str]:
    """A line for each key that is given twice in a map."""
    problems: list[str] = []
    for node in documents:
        _check_keys(node, "", problems)
    return problems


def _check_keys(node: Any, path: str, problems: list[str]) -> None:
    """Report duplicate keys: YAML keeps the last one and drops the first, which is never intended."""
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _check_keys(item, f"{path}[{index}]", problems)
    elif isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            below = child(path, str(key.value))
            if str(key.value) in seen:
                problems.append(f"{below}: given twice (line {key.start_mark.line + 1}); keep one")
            seen.add(str(key.value))
            _check_keys(value, below, problems)
