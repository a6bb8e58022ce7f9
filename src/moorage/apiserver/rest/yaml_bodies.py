"""YAML bodies, read as Kubernetes reads them, without what makes small bodies expensive.

Python's YAML is that of 1.1: `1:30:00` is a number to it, and takes a time that grows with the square of its
length. Kubernetes' is not, and there it is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import yaml

from moorage.apiserver import errors
from moorage.apiserver.text import quoted

MAX_YAML_BYTES: Final = 1024 * 1024
"""The longest body; YAML takes a hundred times as long to read as JSON."""
_TAG: Final = "tag:yaml.org,2002:"
_NUMBERS: Final = {
    f"{_TAG}int": re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]+|0|[1-9][0-9_]*)"),
    f"{_TAG}float": re.compile(
        r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*|[0-9][0-9_]*(?=[eE]))(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
    ),
}


class _JsonLoader(yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader):  # type: ignore[misc]
    """YAML's JSON part: times stay text, and no aliases, which can say much in few bytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not supported")
        return super().compose_node(parent, index)

    def checked_number(self, node: Any) -> Any:
        """A number, also where a tag says that a text is one."""
        text = self.construct_scalar(node)
        if not _NUMBERS[node.tag].fullmatch(text):
            raise yaml.YAMLError(f"{text[:50]!r} is not a number")
        read = self.construct_yaml_int if node.tag.endswith("int") else self.construct_yaml_float
        return read(node)


_JsonLoader.yaml_implicit_resolvers = {
    first: [
        (tag, re.compile(rf"(?:{_NUMBERS[tag].pattern})\Z") if tag in _NUMBERS else pattern)
        for tag, pattern in resolvers
        if tag != f"{_TAG}timestamp"
    ]
    for first, resolvers in _JsonLoader.yaml_implicit_resolvers.items()
}
for _tag in _NUMBERS:
    _JsonLoader.add_constructor(_tag, _JsonLoader.checked_number)


def repeated_keys(body: bytes) -> list[str]:
    """A sentence for each key that a YAML body has twice in one map; none if it cannot be read."""
    if len(body) > MAX_YAML_BYTES:
        return []
    try:
        root = yaml.compose(body, _JsonLoader)
        return [
            f"line {line + 1}: key {quoted(key)} already set in map" for line, key in sorted(_repeated(root))
        ]
    except (yaml.YAMLError, RecursionError, ValueError):
        return []


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


def load_yaml(body: bytes) -> Any:
    """A YAML value that JSON could say too; ApiError (400, 413) if it cannot be read."""
    if len(body) > MAX_YAML_BYTES:
        raise errors.too_large(MAX_YAML_BYTES)
    try:
        return msgspec.json.decode(msgspec.json.encode(yaml.load(body, _JsonLoader)))
    except (yaml.YAMLError, msgspec.MsgspecError, RecursionError, TypeError, ValueError) as error:
        said = " ".join(str(error).split())
        raise errors.bad_request(f"error converting YAML to JSON: {said}") from None
