"""A request to send, in a form that can be saved and sent again."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

TOKEN = "{token}"
"""Stands for the server's token, which is another one at every start."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A resource as the generator knows it."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    subresources: tuple[str, ...] = ()
    schema: Any = None
    """Custom kinds: their OpenAPI schema."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", _escaped(namespace)]
        parts.append(self.plural)
        if name:
            parts.append(_escaped(name))
        if subresource:
            parts.append(subresource)
        return "/" + "/".join(parts)


def _escaped(name: str) -> str:
    return quote(name, safe="", errors="replace")


@dataclass(slots=True)
class Shot:
    """One request, and which kind it is about."""

    method: str
    path: str
    query: str = ""
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    kind: Kind | None = None

    @property
    def body_kind(self) -> str:
        """What its body says it is; `none` without one."""
        content_type = dict(self.headers).get("content-type", "")
        return content_type.removeprefix("application/")[:40] or "untyped" if self.body else "none"

    def saved(self) -> dict[str, Any]:
        """As JSON; bytes are Latin-1 text."""
        return {
            "method": self.method,
            "path": self.path,
            "query": self.query,
            "headers": self.headers,
            "body": self.body.decode("latin-1"),
        }

    @staticmethod
    def loaded(saved: dict[str, Any]) -> Shot:
        headers = [(name, value) for name, value in saved["headers"]]
        return Shot(saved["method"], saved["path"], saved["query"], headers, saved["body"].encode("latin-1"))

    def __str__(self) -> str:
        query = f"?{self.query}" if self.query else ""
        lines = [f"{self.method} {self.path}{query}", *(f"{name}: {value}" for name, value in self.headers)]
        return "\n".join([*lines, "", repr(self.body) if len(self.body) < 4000 else f"{self.body[:4000]!r}…"])


def saved_line(shot: Shot) -> str:
    """A request as a line of a file."""
    return json.dumps(shot.saved())


def save(shots: list[Shot], path: Path) -> None:
    """Write requests to a file, one a line."""
    path.write_text("".join(saved_line(shot) + "\n" for shot in shots))


def load(path: Path) -> list[Shot]:
    """Read what `save` wrote."""
    return [Shot.loaded(json.loads(line)) for line in path.read_text().splitlines()]
