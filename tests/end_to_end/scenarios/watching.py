"""What happens to objects, one change after another, as `kubectl get --watch` tells it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.apiserver.running import Kubectl

HAPPENS_WITHIN_SECONDS = 100


class Change(NamedTuple):
    """One thing that happened to an object: ADDED, MODIFIED or DELETED."""

    type: str
    object: Any

    @property
    def name(self) -> str:
        return str(self.object["metadata"]["name"])

    @property
    def uid(self) -> str:
        return str(self.object["metadata"]["uid"])


class Watch:
    """A watch of objects; `changes` is what it has seen so far."""

    def __init__(self, kubectl: Kubectl, *what: str) -> None:
        self._process = kubectl.start("get", *what, "--watch", "--output-watch-events", "-o", "json")
        self._received = threading.Condition()
        self._is_over = False
        self.changes: list[Change] = []
        self.now: dict[str, Any] = {}
        """The objects that there are, by name."""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            event = json.loads(line)
            with self._received:
                self._take(Change(event["type"], event["object"]))
                self._received.notify_all()
        with self._received:
            self._is_over = True
            self._received.notify_all()

    def _take(self, change: Change) -> None:
        self.changes.append(change)
        self.now = {name: each for name, each in self.now.items() if name != change.name}
        if change.type != "DELETED":
            self.now[change.name] = change.object

    def until(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait until something holds of the objects that there are, and return these."""
        with self._received:
            self._received.wait_for(lambda: self._is_over or holds(self.now), HAPPENS_WITHIN_SECONDS)
            there = self.now
        assert holds(there), f"it did not happen: {json.dumps(there, indent=1)}"
        return there

    def until_bound(self, count: int) -> dict[str, Any]:
        """Wait until so many pods have nodes."""
        return self.until(lambda pods: sum("nodeName" in pod["spec"] for pod in pods.values()) >= count)

    @property
    def nodes_by_uid(self) -> dict[str, set[str]]:
        """All nodes that each pod has ever been on; one that is bound twice shows here."""
        seen: dict[str, set[str]] = {}
        for change in list(self.changes):
            if node := change.object["spec"].get("nodeName"):
                seen.setdefault(change.uid, set()).add(node)
        return seen

    def close(self) -> None:
        """End it, if it has not been ended."""
        assert self._process.stdout is not None
        if self._process.stdout.closed:
            return
        self._process.kill()
        self._reader.join()
        self._process.communicate()
