"""Which pods on a node its NodeResourceTopology object accounts for already.

An object says what was left when an agent wrote it. Pods that came later are not in it, and which zones they
get is not known: they are subtracted from every zone. An object with a fingerprint accounts for the pods
whose fingerprint it has; one without, for the pods that the kubelet had started when the object arrived, and
for others as far as it says that as much is used as they hold: their statuses may arrive later.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from moorage import Handle, Pod
from moorage.optional_plugins.numa.fingerprint import PREFIX, fingerprint, pod_hash
from moorage.optional_plugins.numa.requests import Amounts, pinned_of, requests_of
from moorage.optional_plugins.numa.topology import NodeResourceTopology, used_in, zones_of

AUTODETECT, ALL_PODS, EXCLUSIVE = "Autodetect", "All", "OnlyExclusiveResources"
METHODS: Final = (AUTODETECT, ALL_PODS, EXCLUSIVE)
"""Which pods are in a fingerprint: as the object says, all, or those with exclusive resources."""
_FINGERPRINT: Final = "nodeTopologyPodsFingerprint"
_FINGERPRINT_METHOD: Final = "nodeTopologyPodsFingerprintMethod"
_EXCLUSIVE_ONLY: Final = "with-exclusive-resources"
_OLD_FINGERPRINT: Final = "topology.node.k8s.io/fingerprint"
"""The annotation that older agents write in place of the attribute."""
_MOST_GUESSES: Final = 32
"""Number of sets of pods whose fingerprints are compared with that of an object."""

_NO_PODS: Final[frozenset[str]] = frozenset()


class _Account:
    """One version of an object: the pods that it accounts for, by uid, and those of the version before.

    accounted: None while its fingerprint is of no set of pods that was tried.
    """

    __slots__ = ("accounted", "before", "topology")

    def __init__(self, topology: NodeResourceTopology, before: _Account | None) -> None:
        self.topology = topology
        self.before = before
        self.accounted: frozenset[str] | None = None

    @property
    def known(self) -> frozenset[str]:
        """The pods that are certain to be accounted for."""
        if self.accounted is not None:
            return self.accounted
        return _NO_PODS if self.before is None else self.before.known


class Accounting:
    """Follows the objects as they arrive, and keeps the pods that each accounts for."""

    def __init__(self, handle: Handle, method: str) -> None:
        self._handle = handle
        self._method = method
        self._arrived = handle.metrics.counter(
            "moorage_numa_objects_total",
            "Number of NodeResourceTopology objects that arrived, by what is known of their fingerprints.",
            ("fingerprint",),
        )
        self._accounts: dict[str, _Account] = {}
        self._position: int | None = None

    def accounted(self, topology: NodeResourceTopology, pods: Collection[Pod]) -> tuple[frozenset[str], bool]:
        """The uids of pods that an object accounts for, and whether that is all. pods: those on its node."""
        account = self._accounts.get(topology.name)
        if account is not None and account.topology is not topology and account.before is not None:
            account = account.before  # A cycle that waits reads the object that was there when it began.
        if account is None or account.topology is not topology:
            account = self._add(topology, pods)
        elif account.accounted is None:
            self._match(account, pods)
        return account.known, account.accounted is not None

    def is_accounted(self, pod: Pod) -> bool:
        """Whether the object of a pod's node accounts for it; true without an object."""
        account = self._accounts.get(pod.spec.node_name)
        return account is None or pod.uid in account.known

    def start(self) -> None:
        """Look at objects as they arrive from now on."""
        if self._position is not None:
            return
        objects, itself = self._handle.objects, weakref.ref(self)
        self._position = objects.of(NodeResourceTopology).changes.position

        def changed() -> None:
            following = itself()
            if following is None:
                unsubscribe()
            else:
                following._catch_up()

        unsubscribe = objects.subscribe(changed)

    def _catch_up(self) -> None:
        """Determine what the objects that have arrived account for."""
        table = self._handle.objects.of(NodeResourceTopology)
        position, self._position = self._position, table.changes.position
        if position is None or position == self._position:
            return
        keys = table.changes.since(position)
        for namespace, name in keys or ():
            topology = table.get(namespace, name)
            if topology is None:
                self._accounts.pop(name, None)
            else:
                account = self._add(topology, self._handle.pods_on(name))
                self._arrived.labels(_outcome(account)).inc()

    def _add(self, topology: NodeResourceTopology, pods: Collection[Pod]) -> _Account:
        before = self._accounts.get(topology.name)
        if before is not None and before.topology is topology:
            return before
        account = self._accounts[topology.name] = _Account(topology, before)
        self._match(account, pods)
        if before is not None:
            before.accounted, before.before = before.known, None
        return account

    def _match(self, account: _Account, pods: Collection[Pod]) -> None:
        """Find out which pods an object accounts for."""
        text = _fingerprint_of(account.topology)
        if text is None:
            account.accounted = frozenset(_explained(account.topology, pods))
            return
        hashes = {pod.uid: pod_hash(pod.namespace, pod.name) for pod in self._counted(account.topology, pods)}
        for guess in _guesses(pods):
            if fingerprint([hashes[uid] for uid in guess if uid in hashes]) == text:
                account.accounted = frozenset(guess)
                return

    def _counted(self, topology: NodeResourceTopology, pods: Iterable[Pod]) -> Iterable[Pod]:
        """Of some pods, those that are in a fingerprint."""
        method = self._method
        if method == AUTODETECT and topology.attribute(_FINGERPRINT_METHOD) == _EXCLUSIVE_ONLY:
            method = EXCLUSIVE
        if method != EXCLUSIVE:
            return pods
        listed = {resource.name for zone in topology.zones for resource in zone.resources}
        return [pod for pod in pods if _has_exclusive(pod, listed)]


def _has_exclusive(pod: Pod, listed: Collection[str]) -> bool:
    """Whether a container that runs on has something pinned; devices count if they are listed."""
    return any(
        name in listed or "/" not in name
        for container in requests_of(pod).containers
        if container.stays
        for name in container.pinned
    )


def is_started(pod: Pod) -> bool:
    """Whether the kubelet has admitted a pod, and so given it what it requests."""
    return pod.status.start_time is not None or pod.status.phase != "Pending"


def _fingerprint_of(topology: NodeResourceTopology) -> str | None:
    """The fingerprint of an object; None without one that can be compared."""
    text = topology.attribute(_FINGERPRINT) or topology.metadata.annotations.get(_OLD_FINGERPRINT)
    return text if text is not None and text.startswith(PREFIX) else None


def _explained(topology: NodeResourceTopology, pods: Collection[Pod]) -> Iterator[str]:
    """The started pods, and the first of the others for which an object says that enough is used."""
    others = []
    held: dict[str, int] = {}
    for pod in pods:
        if is_started(pod):
            yield pod.uid
            _add(held, pinned_of(pod))
        else:
            others.append(pod)
    used = used_in(zones_of(topology)) if others else {}
    for pod in others:
        _add(held, pinned_of(pod))
        if any(name in used and used[name] < amount for name, amount in held.items()):
            return
        yield pod.uid


def _add(total: dict[str, int], amounts: Amounts) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount


def _outcome(account: _Account) -> str:
    """What is known of an object's fingerprint, for the metric."""
    if _fingerprint_of(account.topology) is None:
        return "none"
    return "unknown" if account.accounted is None else "matched"


def _guesses(pods: Collection[Pod]) -> Iterator[list[str]]:
    """Sets of pods that an agent may have seen: the started ones and the first of the others.

    The same without pods that are being deleted.
    """
    started = [pod for pod in pods if is_started(pod)]
    others = [pod for pod in pods if not is_started(pod)]
    yield [pod.uid for pod in pods]
    for number in range(min(len(others), _MOST_GUESSES)):
        yield [pod.uid for pod in (*started, *others[:number])]
    staying = [pod.uid for pod in started if pod.metadata.deletion_timestamp is None]
    if len(staying) < len(started):
        yield staying
