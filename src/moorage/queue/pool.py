"""Pods that wait for something to happen: refused by plugins, or not let in at all (gated).

They are found by who refused them, so that an event is put only to pods it may help.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from moorage.queue.entry import QueuedPod

Refuser = tuple[str, str]
"""A profile and a plugin of it."""


class UnschedulablePods:
    """Pods by uid, and by the plugins that refused them."""

    def __init__(self) -> None:
        self.gated_count = 0
        self._pods: dict[str, QueuedPod] = {}
        self._indexed: dict[str, tuple[tuple[Refuser, ...], bool]] = {}
        """What the index holds of each pod: who refused it, and whether it is gated."""
        self._by_refuser: dict[Refuser, dict[str, QueuedPod]] = {}

    def put(self, queued: QueuedPod) -> None:
        """Add a pod, or take note of who refuses it now if it is here."""
        refusers = tuple((queued.profile, plugin) for plugin in sorted(queued.refusing_plugins()))
        state = (refusers, bool(queued.gating_plugin))
        if self._indexed.get(queued.uid) == state:
            return
        self.remove(queued.uid)
        self._pods[queued.uid] = queued
        self._indexed[queued.uid] = state
        self.gated_count += state[1]
        for refuser in refusers:
            self._by_refuser.setdefault(refuser, {})[queued.uid] = queued

    def remove(self, uid: str) -> QueuedPod | None:
        """Take a pod out; None if it is not here."""
        queued = self._pods.pop(uid, None)
        if queued is None:
            return None
        refusers, gated = self._indexed.pop(uid)
        self.gated_count -= gated
        for refuser in refusers:
            members = self._by_refuser[refuser]
            del members[uid]
            if not members:
                del self._by_refuser[refuser]
        return queued

    def get(self, uid: str) -> QueuedPod | None:
        """A pod by its uid."""
        return self._pods.get(uid)

    def refused_by(self, refusers: Iterable[Refuser]) -> list[QueuedPod]:
        """The pods that any of some plugins refused, each once."""
        groups = [self._by_refuser[refuser] for refuser in refusers if refuser in self._by_refuser]
        if len(groups) == 1:
            return list(groups[0].values())
        found: dict[str, QueuedPod] = {}
        for group in groups:
            found.update(group)
        return list(found.values())

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._pods.values())

    def __len__(self) -> int:
        return len(self._pods)

    def validate(self) -> None:
        """Raise AssertionError unless the index says of every pod what the pod does, and of no other."""
        assert self._indexed.keys() == self._pods.keys()
        assert self.gated_count == sum(bool(queued.gating_plugin) for queued in self)
        expected: dict[Refuser, set[str]] = {}
        for uid, queued in self._pods.items():
            assert uid == queued.uid == queued.pod.uid
            assert queued.refused, f"nothing would ever wake {uid}"
            assert not queued.gating_plugin or queued.gating_plugin in queued.unschedulable_plugins, uid
            for plugin in queued.refusing_plugins():
                expected.setdefault((queued.profile, plugin), set()).add(uid)
        assert {refuser: set(members) for refuser, members in self._by_refuser.items()} == expected
