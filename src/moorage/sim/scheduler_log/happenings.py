"""What happened according to a scheduler's log at -v=10, kube-scheduler's or our own, in order.

kube-scheduler v1.36 and v1.37 write the same messages here. Bindings and evictions run beside the cycles:
what the log says of them later is added to the attempt that they belong to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from moorage.api.pod import Pod
from moorage.engine.decision import NO_NODES
from moorage.sim.scheduler_log.entries import Entry, EntryReader
from moorage.sim.scheduler_log.logged_objects import pod_in_body

_Values = Mapping[str, str]

_OVERRIDE: Final = "1"
"""The value of nominatingMode with which a nomination is set or cleared."""


@dataclass(slots=True)
class LoggedAttempt:
    """An attempt. `scores` are by node and plugin, and empty if fewer than two nodes were scored."""

    pod: str
    is_member: bool = False
    """Whether the pod was attempted as a member of a group."""
    has_begun: bool = True
    """Whether its beginning is in the log."""
    node: str | None = None
    message: str | None = None
    error: str | None = None
    """Why the attempt failed, where it was not for lack of a node."""
    is_refused_at_node: bool = False
    """Whether a plugin refused the pod after a node had been chosen."""
    scores: dict[str, dict[str, int]] = field(default_factory=dict)
    evaluated_count: int = 0
    feasible_count: int = 0
    nominated: str | None = None
    """The node that preemption chose."""
    victims: set[str] = field(default_factory=set)
    victim_count: int | None = None

    @property
    def has_ended(self) -> bool:
        """Whether the log tells how it ended."""
        return self.node is not None or self.message is not None or self.error is not None

    @property
    def is_failed(self) -> bool:
        """Whether it failed for another reason than that the pod fits nowhere."""
        if self.node is not None or not self.has_ended:
            return False
        return self.error is not None or self.is_refused_at_node or bool(self.scores)

    @property
    def known_victims(self) -> list[str] | None:
        """The victims; None if the log does not have all of them."""
        if self.victim_count not in (None, len(self.victims)):
            return None
        return sorted(self.victims)


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    """The end of an attempt, which is that of its binding where it has one."""

    attempt: LoggedAttempt


class What(Enum):
    """A kind of event."""

    SCHEDULER_STARTED = auto()
    """The subject is the version."""
    NODE_ADDED = auto()
    NODE_UPDATED = auto()
    NODE_DELETED = auto()
    PENDING_POD_ADDED = auto()
    PENDING_POD_DELETED = auto()
    """Also if it is not pending any more because it was bound."""
    BOUND_POD_ADDED = auto()
    BOUND_POD_UPDATED = auto()
    BOUND_POD_DELETED = auto()
    POD_EVICTED = auto()
    NOMINATED = auto()
    """The subject is a pod, the node is that of its nomination, or empty."""
    NODE_CLAIMED = auto()
    """The subject is a preemptor, the node is the one on which it makes room."""


@dataclass(frozen=True, slots=True)
class Event:
    """A change of the cluster as the scheduler saw it."""

    what: What
    subject: str
    node: str = ""


@dataclass(frozen=True, slots=True)
class StoredPod:
    """A pod as the API server returned it."""

    pod: Pod


Happening = LoggedAttempt | AttemptEnded | Event | StoredPod

_NOMINATED: Final = "the target node for the preemption is determined"
_PREEMPTING: Final = "Start the preemption asynchronously"
_NOMINATION: Final = "Updating pod condition and nominated node name"
_EVENTS: Final = {
    "Starting Kubernetes Scheduler": (What.SCHEDULER_STARTED, "version"),
    "Add event for node": (What.NODE_ADDED, "node"),
    "Update event for node": (What.NODE_UPDATED, "node"),
    "Delete event for node": (What.NODE_DELETED, "node"),
    "Add event for unscheduled pod": (What.PENDING_POD_ADDED, "pod"),
    "Delete event for unscheduled pod": (What.PENDING_POD_DELETED, "pod"),
    "Add event for scheduled pod": (What.BOUND_POD_ADDED, "pod"),
    "Update event for scheduled pod": (What.BOUND_POD_UPDATED, "pod"),
    "Delete event for scheduled pod": (What.BOUND_POD_DELETED, "pod"),
    "Preemptor Pod preempted victim Pod": (What.POD_EVICTED, "victim"),
    _PREEMPTING: (What.NODE_CLAIMED, "preemptor"),
    "Preemption will not help schedule pod on any node": (What.NOMINATED, "pod"),
    "No preemption candidate is found; preemption is not helpful for scheduling": (What.NOMINATED, "pod"),
}
"""Messages that are events, with the key of the subject."""
_BEGINNINGS: Final = {
    "Attempting to schedule pod": False,
    "Attempting to schedule a pod belonging to a pod group": True,
}
"""Messages with which attempts begin, and whether they are attempts of members of groups."""
_VICTIMS: Final = {
    "Preemptor Pod preempted victim Pod": "victim",
    "Victim Pod is already deleted": "victim",
    "Victim Pod is already being deleted, skipping the API call for it": "victim",
    "Preemptor preempted a waiting pod": "waitingPod",
    "Preemptor rejected a pod in preBind": "podInPreBind",
}
"""Messages about victims of preemption, with the key of the victim."""
_BODY: Final = "Response Body"


class LogReader:
    """Reads logs of one scheduler, one after another: each continues the one before."""

    def __init__(self) -> None:
        self.happenings: list[Happening] = []
        self.version = ""
        """The scheduler's version, if its start is in the log."""
        self._last: dict[str, LoggedAttempt] = {}
        """The last attempt of each pod."""
        self._preemptions: dict[str, LoggedAttempt] = {}
        """The last attempt of each preemptor that led to evictions, which go on during later attempts."""
        self._entries = EntryReader(
            {
                *_EVENTS,
                *_BEGINNINGS,
                *_DETAILS,
                *_ENDS,
                *_VICTIMS,
                _NOMINATED,
                _PREEMPTING,
                _NOMINATION,
                _BODY,
            }
        )

    @property
    def cut_count(self) -> int:
        """Number of entries that are not whole."""
        return self._entries.cut_count

    @property
    def attempts(self) -> Iterator[LoggedAttempt]:
        """All attempts, in the order in which they began."""
        return (each for each in self.happenings if isinstance(each, LoggedAttempt))

    def read(self, lines: Iterable[str]) -> None:
        """Read a log."""
        for entry in self._entries.read(lines):
            self._read_attempt(entry)
            self.happenings.extend(self._events(entry))

    def _read_attempt(self, entry: Entry) -> None:
        message, values = entry.message, entry.values
        pod = values.get("pod", "")
        if message in _BEGINNINGS:
            self._last[pod] = LoggedAttempt(pod, _BEGINNINGS[message])
            self.happenings.append(self._last[pod])
        elif message in _DETAILS:
            _DETAILS[message](self._attempt_of(pod), values)
        elif message in _ENDS:
            attempt = self._attempt_of(pod)
            _ENDS[message](attempt, values)
            self.happenings.append(AttemptEnded(attempt))
        elif message == _NOMINATED:
            self._preemptions[pod] = attempt = self._attempt_of(pod)
            attempt.nominated = values.get("node")
        elif (preemption := self._preemptions.get(values.get("preemptor", ""))) is not None:
            if message in _VICTIMS:
                preemption.victims.add(values.get(_VICTIMS[message], ""))
            elif message == _PREEMPTING:
                preemption.victim_count = _number(values, "numVictims")

    def _attempt_of(self, pod: str) -> LoggedAttempt:
        """The last attempt of a pod; one that has begun before the log is put before everything else."""
        if pod not in self._last:
            self._last[pod] = LoggedAttempt(pod, has_begun=False)
            self.happenings.insert(0, self._last[pod])
        return self._last[pod]

    def _events(self, entry: Entry) -> Iterator[Happening]:
        values = entry.values
        if (known := _EVENTS.get(entry.message)) is not None:
            what, key = known
            if what is What.SCHEDULER_STARTED:
                self.version = values.get(key, "")
            yield Event(what, values.get(key, ""), values.get("node", "") if key != "node" else "")
        elif entry.message == _NOMINATION and values.get("nominatingMode") == _OVERRIDE:
            yield Event(What.NOMINATED, values.get("pod", ""), values.get("nominatedNodeName", ""))
        elif entry.message == _BODY and (pod := pod_in_body(values.get("body", ""))) is not None:
            yield StoredPod(pod)


def _score(attempt: LoggedAttempt, values: _Values) -> None:
    by_plugin = attempt.scores.setdefault(values.get("node", ""), {})
    by_plugin[values.get("plugin", "")] = _number(values, "score")


def _choose(attempt: LoggedAttempt, values: _Values) -> None:
    attempt.node = values.get("node")


def _bind(attempt: LoggedAttempt, values: _Values) -> None:
    attempt.node = values.get("node")
    attempt.evaluated_count = _number(values, "evaluatedNodes")
    attempt.feasible_count = _number(values, "feasibleNodes")


def _reject(attempt: LoggedAttempt, values: _Values) -> None:
    attempt.message = values.get("err", NO_NODES)


def _fail(attempt: LoggedAttempt, values: _Values) -> None:
    attempt.error = values.get("err", "")


def _refuse_at_node(attempt: LoggedAttempt, values: _Values) -> None:
    attempt.is_refused_at_node = True


def _number(values: _Values, key: str) -> int:
    """A number; 0 if the entry does not have it."""
    text = values.get(key, "")
    return int(text) if text.lstrip("-").isdecimal() else 0


_DETAILS: Final[dict[str, Callable[[LoggedAttempt, _Values], None]]] = {
    "Plugin scored node for pod": _score,
    "Attempting to bind pod to node": _choose,
    "Pod rejected by plugin": _refuse_at_node,
    "Pod rejected while waiting on permit": _refuse_at_node,
}
"""Messages about attempts, with what they add."""
_ENDS: Final[dict[str, Callable[[LoggedAttempt, _Values], None]]] = {
    "Successfully bound pod to node": _bind,
    "Unable to schedule pod; no fit; waiting": _reject,
    "Unable to schedule pod; no nodes are registered to the cluster; waiting": _reject,
    "Unable to schedule pod belonging to a pod group; waiting": _reject,
    "Error scheduling pod; retrying": _fail,
}
"""Messages with which attempts end."""
