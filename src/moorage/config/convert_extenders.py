"""Conversion of extenders of the Policy format and v1alpha2.

Their fields were decoded case-insensitively (`BindVerb`, `enableHttps`), and timeouts were numbers of
nanoseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from moorage.config.duration import Duration
from moorage.config.types import Extender, ExtenderManagedResource, ExtenderTLSConfig


def convert_extenders(raw: Any, notes: list[str]) -> Any:
    """Old extenders in v1 form; values of a wrong type are left for validation to reject."""
    if not isinstance(raw, list):
        return raw
    return [_extender(each, f"extenders[{index}]", notes) for index, each in enumerate(raw)]


def _extender(raw: Any, path: str, notes: list[str]) -> Any:
    converted = _renamed(raw, Extender, path, notes)
    if not isinstance(converted, dict):
        return converted
    timeout = converted.get("httpTimeout")
    if isinstance(timeout, int) and not isinstance(timeout, bool) and abs(timeout) < 1 << 63:
        converted["httpTimeout"] = str(Duration.from_nanoseconds(timeout))
        notes.append(f"{path}.httpTimeout: {timeout} nanoseconds are now written {converted['httpTimeout']}")
    if "tlsConfig" in converted:
        converted["tlsConfig"] = _renamed(
            converted["tlsConfig"], ExtenderTLSConfig, f"{path}.tlsConfig", notes
        )
    managed = converted.get("managedResources")
    if isinstance(managed, list):
        converted["managedResources"] = [
            _renamed(each, ExtenderManagedResource, f"{path}.managedResources[{index}]", notes)
            for index, each in enumerate(managed)
        ]
    return converted


def _renamed(raw: Any, kind: type[msgspec.Struct], path: str, notes: list[str]) -> Any:
    """An object with its fields named as in the type; unknown fields are dropped."""
    if not isinstance(raw, Mapping):
        return raw
    known = {name.lower(): name for name in kind.__struct_encode_fields__}
    renamed = {}
    for key, value in raw.items():
        name = known.get(str(key).lower())
        if name is None:
            notes.append(f"{path}.{key}: dropped; extenders have no such field")
            continue
        if name != key:
            notes.append(f"{path}.{key}: now written {name}")
        renamed[name] = value
    return renamed
