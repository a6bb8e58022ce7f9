"""What must hold after every write: no node over-committed, no pod moved, nothing written by a former leader.

These are checks of their own: they share nothing with the plugins that keep the rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from moorage.api.manifests import Manifest
from moorage.api.quantity import parse_quantity
from moorage.clock import Clock
from moorage.http.transport import Request
from moorage_cluster.apiserver.store import Change, Collection, Store
from moorage_cluster.chaos.traffic import DELETE, LEADERS_ONLY

MAX_VIOLATIONS: Final = 20
"""Number of violations that are kept of a run."""
_NODES: Final = "/nodes"
_PODS: Final = "/pods"
_CLAIMS: Final = "resource.k8s.io/resourceclaims"
_LEASES: Final = "coordination.k8s.io/leases"
_FINISHED: Final = ("Succeeded", "Failed")

Amounts = Counter[str]
Device = tuple[str, str, str]


@dataclass(slots=True)
class Placed:
    """A pod on a node."""

    name: str
    node: str
    amounts: Amounts
    ports: frozenset[tuple[str, int]]


@dataclass(slots=True)
class Lease:
    """The lease as it was last written, on the monotonic clock."""

    holder: str = ""
    ends_at: float = 0.0


@dataclass(slots=True)
class Monitor:
    """Follows the writes of an API server."""

    clock: Clock
    elects: bool
    violations: list[str] = field(default_factory=list)
    bound: Counter[str] = field(default_factory=Counter)
    """How often each pod was bound, by uid."""
    _placed: dict[str, Placed] = field(default_factory=dict)
    _nodes: dict[str, Manifest] = field(default_factory=dict)
    _devices: dict[Device, str] = field(default_factory=dict)
    _lease: Lease = field(default_factory=Lease)
    _priorities: dict[str, int] = field(default_factory=dict)
    """The priority of each pod, by uid."""
    _max_priority: int = 0
    """The highest priority of all pods so far."""

    def attach(self, store: Store) -> None:
        """Follow a server's store from now on."""
        store.listeners.append(self.changed)

    def failed(self, what: str) -> None:
        """Note a violation."""
        if len(self.violations) < MAX_VIOLATIONS:
            self.violations.append(f"{self.clock.now():.3f} s: {what}")

    def changed(self, collection: Collection, change: Change) -> None:
        """Something was written."""
        match collection.name:
            case "/pods":
                self._pod_changed(change)
            case "/nodes":
                self._node_changed(change)
            case "resource.k8s.io/resourceclaims":
                self._claim_changed(change)
            case "coordination.k8s.io/leases":
                self._lease_changed(change.stored.obj)

    # -- pods on nodes

    def _node_changed(self, change: Change) -> None:
        name = change.stored.obj["metadata"]["name"]
        if change.type == "DELETED":
            self._nodes.pop(name, None)
        else:
            self._nodes[name] = change.stored.obj

    def _pod_changed(self, change: Change) -> None:
        pod = change.stored.obj
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName", "")
        priority = int(pod["spec"].get("priority") or 0)
        self._priorities[uid] = priority
        self._max_priority = max(self._max_priority, priority)
        before = self._placed.get(uid)
        if change.type == "DELETED" or (pod.get("status") or {}).get("phase") in _FINISHED:
            self._placed.pop(uid, None)
        elif before is not None and before.node != node:
            self.failed(f"pod {before.name} was moved from node {before.node} to {node or 'no node'}")
        elif before is None and node:
            self._placed[uid] = Placed(pod["metadata"]["name"], node, amounts_of(pod), frozenset(_ports(pod)))
            self.bound[uid] += 1
            self._check_node(node, uid)

    def _check_node(self, name: str, uid: str) -> None:
        """The node has room for the pod that was bound last."""
        node = self._nodes.get(name)
        if node is None:
            return  # It was deleted meanwhile: the pod is going to be deleted, too.
        here = [each for each in self._placed.values() if each.node == name]
        new = self._placed[uid]
        used = sum((each.amounts for each in here), Amounts())
        allocatable = node["status"]["allocatable"]
        for resource in new.amounts:
            room = billionths(allocatable.get(resource, "0"))
            if used[resource] > room:
                self.failed(
                    f"node {name} is over-committed by pod {new.name}: {resource} {used[resource]} of {room}"
                )
        for other in here:
            if other is not new and other.ports & new.ports:
                self.failed(f"pods {other.name} and {new.name} have the same host port on node {name}")

    # -- devices

    def _claim_changed(self, change: Change) -> None:
        claim = change.stored.obj
        uid, name = claim["metadata"]["uid"], claim["metadata"]["name"]
        devices = set() if change.type == "DELETED" else devices_of(claim)
        for device in [each for each, owner in self._devices.items() if owner == uid and each not in devices]:
            del self._devices[device]
        for device in devices:
            if self._devices.setdefault(device, uid) != uid:
                self.failed(
                    f"claim {name} got device {'/'.join(device)}, which is allocated to another claim"
                )

    # -- leaders

    def _lease_changed(self, lease: Manifest) -> None:
        spec = lease["spec"]
        if lease["metadata"]["name"] == "kube-scheduler":
            seconds = float(spec.get("leaseDurationSeconds") or 0)
            self._lease = Lease(spec.get("holderIdentity") or "", self.clock.now() + seconds)

    def issued(self, identity: str, what: str, request: Request) -> None:
        """A request is about to leave a scheduler process."""
        if what == DELETE and self._priorities.get(_uid(request)) == self._max_priority:
            self.failed(f"{identity} evicts a pod of the highest priority: {request.path}")
        if not self.elects or what not in LEADERS_ONLY:
            return
        lease = self._lease
        if lease.holder != identity:
            holder = lease.holder or "nobody"
            self.failed(f"{identity} sent {request.method} {request.path}, but the lease is held by {holder}")
        elif self.clock.now() > lease.ends_at:
            self.failed(f"{identity} sent {request.method} {request.path} after its lease had ended")


def _uid(request: Request) -> str:
    """The object that a deletion is about, whatever has its name by now."""
    options = msgspec.json.decode(request.body) if request.body else {}
    return str((options.get("preconditions") or {}).get("uid", ""))


def amounts_of(pod: Manifest) -> Amounts:
    """What a pod takes of a node, in billionths of units; it counts as one of the node's pods."""
    amounts = Amounts({"pods": billionths("1")})
    for container in pod["spec"]["containers"]:
        for resource, quantity in ((container.get("resources") or {}).get("requests") or {}).items():
            amounts[resource] += billionths(quantity)
    return amounts


def billionths(quantity: Any) -> int:
    """A quantity in billionths of its unit."""
    return int(parse_quantity(str(quantity)))


def _ports(pod: Manifest) -> Iterator[tuple[str, int]]:
    for container in pod["spec"]["containers"]:
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                yield port.get("protocol", "TCP"), port["hostPort"]


def devices_of(claim: Manifest) -> set[Device]:
    """The devices that are allocated to a claim."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or ()
    return {(each["driver"], each["pool"], each["device"]) for each in results}
