"""What the answers so far have shown: names to hit again, revisions and tokens to go on from."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.apiserver.fuzzing.request import Kind, Shot

_MAX_ENTRIES = 200
DEFINITION = "CustomResourceDefinition"


@dataclass(slots=True)
class Known:
    """An object that was there when we last heard of it."""

    kind: Kind
    namespace: str
    name: str
    obj: Any

    @property
    def uid(self) -> Any:
        """What it was known by."""
        metadata = self.obj.get("metadata") if isinstance(self.obj, dict) else None
        return metadata.get("uid", "") if isinstance(metadata, dict) else ""


class Memory:
    """The latest of everything."""

    def __init__(self) -> None:
        self._objects: dict[tuple[str, str, str], Known] = {}
        self.objects: list[Known] = []
        self.revisions: deque[str] = deque(maxlen=_MAX_ENTRIES)
        self.tokens: deque[str] = deque(maxlen=_MAX_ENTRIES)
        self.bearers: deque[str] = deque(maxlen=20)
        """Tokens of service accounts."""
        self.customs: deque[Kind] = deque(maxlen=20)

    def learn(self, shot: Shot, code: int, answer: Any) -> None:
        """Note what is of use later."""
        metadata = answer.get("metadata") if isinstance(answer, dict) else None
        if code >= 400 or not isinstance(metadata, dict):
            return
        if revision := metadata.get("resourceVersion"):
            self.revisions.append(revision)
        if token := metadata.get("continue"):
            self.tokens.append(token)
        if answer.get("kind") == "TokenRequest":
            self.bearers.append(answer["status"]["token"])
        name = metadata.get("name")
        if shot.kind is None or not name or answer.get("kind") != shot.kind.kind:
            return
        if shot.method in ("POST", "PUT", "PATCH") and "dryRun" not in shot.query:
            self._keep(Known(shot.kind, metadata.get("namespace", ""), name, answer))
            if shot.kind.kind == DEFINITION:
                self.customs.extend(_kinds_of(answer))
        elif shot.method == "DELETE" and not metadata.get("deletionTimestamp"):
            self._objects.pop((shot.kind.plural, metadata.get("namespace", ""), name), None)
            self.objects = list(self._objects.values())

    def _keep(self, known: Known) -> None:
        key = (known.kind.plural, known.namespace, known.name)
        self._objects.pop(key, None)
        self._objects[key] = known
        if len(self._objects) > _MAX_ENTRIES:
            del self._objects[next(iter(self._objects))]
        self.objects = list(self._objects.values())


def _kinds_of(definition: dict[str, Any]) -> Iterator[Kind]:
    spec = definition["spec"]
    names, namespaced = spec["names"], spec["scope"] == "Namespaced"
    for version in spec["versions"]:
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        parts = ("status", "scale")
        yield Kind(spec["group"], version["name"], names["kind"], names["plural"], namespaced, parts, schema)
