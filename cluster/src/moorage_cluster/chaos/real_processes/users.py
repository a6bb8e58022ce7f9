"""Users: they create and delete pods, and remember what was acknowledged."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random
from typing import Final

from moorage.api.manifests import Manifest
from moorage.client.client import Client
from moorage.client.kinds import POD
from moorage.http.errors import AnswerLost, ConnectionFailed, RequestError

NAMESPACE: Final = "default"
CPUS: Final = ("250m", "500m", "1")
_MAX_PODS: Final = 40
"""Number of pods beyond which users only delete: somewhat more than fits."""
_MEAN_PAUSE_SECONDS: Final = 0.1
_PAUSE_AFTER_FAILURE_SECONDS: Final = 0.2
_NOT_FOUND: Final = 404
_UNKNOWN: Final = (ConnectionFailed, AnswerLost, TimeoutError)


@dataclass(slots=True)
class Ledger:
    """What users have been told, by pods' names."""

    present: dict[str, str] = field(default_factory=dict)
    """Pods whose creation was acknowledged, with their uids, and not their deletion."""
    gone: set[str] = field(default_factory=set)
    """Pods whose deletion was acknowledged, or whose creation was refused."""
    unknown: set[str] = field(default_factory=set)
    """Pods with a request whose answer was lost."""
    acknowledged: int = 0
    """Number of acknowledged writes."""
    failed: int = 0
    """Number of requests that failed."""

    def differences(self, stored: dict[str, str]) -> list[str]:
        """What contradicts that these pods, with their uids, are stored."""
        lost = [
            f"pod {name} is lost, whose creation was acknowledged"
            for name, uid in self.present.items()
            if stored.get(name) != uid and name not in self.unknown
        ]
        back = [
            f"pod {name} is there, whose deletion was acknowledged or creation refused"
            for name in sorted(self.gone - self.unknown)
            if name in stored
        ]
        return lost + back


class User:
    """Creates and deletes pods of its own until stopped."""

    def __init__(self, name: str, client: Client, random: Random, ledger: Ledger, share: int) -> None:
        self._name = name
        self._client = client
        self._random = random
        self._ledger = ledger
        self._max_pods = _MAX_PODS // share
        self._pods: list[str] = []
        self._count = 0

    async def work(self, stopped: asyncio.Event) -> None:
        """Work until the event is set."""
        while not stopped.is_set():
            try:
                await self._step()
                pause = self._random.expovariate(1 / _MEAN_PAUSE_SECONDS)
            except (RequestError, ConnectionFailed, TimeoutError):
                self._ledger.failed += 1
                pause = _PAUSE_AFTER_FAILURE_SECONDS
            await asyncio.sleep(pause)

    async def _step(self) -> None:
        share = len(self._pods) / self._max_pods
        if self._pods and self._random.random() < share * share:
            await self._delete(self._pods.pop(self._random.randrange(len(self._pods))))
        else:
            self._count += 1
            await self._create(f"{self._name}-{self._count}")

    async def _create(self, name: str) -> None:
        ledger = self._ledger
        try:
            created = await self._client.create(POD, NAMESPACE, _pod(name, self._random.choice(CPUS)))
        except _UNKNOWN:
            ledger.unknown.add(name)
            self._pods.append(name)
            raise
        except RequestError:
            ledger.gone.add(name)
            raise
        ledger.present[name] = created["metadata"]["uid"]
        ledger.acknowledged += 1
        self._pods.append(name)

    async def _delete(self, name: str) -> None:
        ledger = self._ledger
        try:
            await self._client.delete(POD, NAMESPACE, name, grace_seconds=0)
        except _UNKNOWN:
            ledger.unknown.add(name)
            self._pods.append(name)
            raise
        except RequestError as error:
            if error.code != _NOT_FOUND:
                self._pods.append(name)
                raise
            if name not in ledger.unknown:
                return  # It is still in the ledger, and will be missed.
        # From now on it is known what became of it.
        ledger.unknown.discard(name)
        ledger.present.pop(name, None)
        ledger.gone.add(name)
        ledger.acknowledged += 1


def _pod(name: str, cpu: str) -> Manifest:
    container: Manifest = {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container]},
    }
