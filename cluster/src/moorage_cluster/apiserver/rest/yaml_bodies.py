"""YAML bodies, parsed as Kubernetes does, without aliases, which make small bodies expensive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec
import yaml

from moorage.api.text import quoted
from moorage.api.yaml_reading import YamlError, YamlLimits, compose_all_yaml, load_yaml
from moorage.apimachinery import errors

MAX_YAML_BYTES: Final = 1024 * 1024
"""Maximum bytes of a body; YAML takes a hundred times as long to parse as JSON."""
_LIMITS: Final = YamlLimits(allows_aliases=False, max_nodes=50_000)
"""Limits of parsing time: a value takes ten microseconds, and aliases make many values of few bytes."""


def repeated_keys(body: bytes) -> list[str]:
    """A message for each duplicate key in a map of a YAML body; none if it is invalid."""
    if len(body) > MAX_YAML_BYTES:
        return []
    try:
        found = sorted(each for root in compose_all_yaml(body.decode(), _LIMITS) for each in _repeated(root))
    except (YamlError, UnicodeDecodeError):
        return []
    return [f"line {line + 1}: key {quoted(key)} already set in map" for line, key in found]


def _repeated(node: Any) -> Iterator[tuple[int, str]]:
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    yield key.start_mark.line, key.value
                seen.add(key.value)
            yield from _repeated(value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _repeated(item)


def parse_yaml_body(body: bytes) -> Any:
    """A YAML value that is valid as JSON; ApiError (400, 413) if it is invalid."""
    if len(body) > MAX_YAML_BYTES:
        raise errors.too_large(MAX_YAML_BYTES)
    try:
        return msgspec.json.decode(msgspec.json.encode(load_yaml(body.decode(), _LIMITS)))
    except (YamlError, msgspec.MsgspecError, OverflowError, TypeError, ValueError) as error:
        raise errors.bad_request(f"error converting YAML to JSON: {error}") from None
