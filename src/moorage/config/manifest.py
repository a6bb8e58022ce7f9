"""From a configuration back to a document that people can read and that can be loaded again."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import yaml

from moorage.config.args import PluginArgs
from moorage.config.duration import Duration
from moorage.config.types import API_VERSION, KIND, SchedulerConfiguration


def to_manifest(config: SchedulerConfiguration) -> dict[str, Any]:
    """The whole configuration, defaults included, as a v1 document."""
    encoded: dict[str, Any] = encode(config)
    return {"apiVersion": API_VERSION, "kind": KIND, **encoded}


def encode(value: Any) -> Any:
    """A struct as plain data; fields whose default is empty are left out if they are empty."""
    if isinstance(value, msgspec.Struct):
        return _encode_struct(value)
    if isinstance(value, Duration):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return {key: encode(item) for key, item in value.items()}
    return value


def _encode_struct(value: msgspec.Struct) -> dict[str, Any]:
    encoded: dict[str, Any] = {}
    if isinstance(value, PluginArgs):
        encoded = {"apiVersion": API_VERSION, "kind": type(value).__name__}
    for field in msgspec.structs.fields(value):
        item = getattr(value, field.name)
        plain = encode(item)
        if plain in (None, "", [], {}) and item == _default(field):
            continue
        encoded[field.encode_name] = plain
    return encoded


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default


class _Dumper(yaml.SafeDumper):
    """YAML without anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        """Never refer to an earlier value."""
        return True


def dump_yaml(document: dict[str, Any]) -> str:
    """A document as YAML, in its own order."""
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    return text
