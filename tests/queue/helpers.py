"""A queue with scripted plugins, on a virtual clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from moorage.api.pod import DEFAULT_SCHEDULER, Pod
from moorage.clock import VirtualClock
from moorage.cluster.nominations import Nominations
from moorage.queue.cluster_events import Action, EventIndex, Interest, Resource, on
from moorage.queue.flushing import Flusher
from moorage.queue.observer import QueueObserver
from moorage.queue.queued_pod import QueuedPod
from moorage.queue.queueing_rules import QueueRules
from moorage.queue.scheduling_queue import Place, SchedulingQueue
from tests.builders import make_node, make_pod

GATE = "Gate"
START = 1000.25
"""A time within a second, so that backoff and whole seconds differ."""


def named(pod: Pod, old: Any, new: Any) -> bool:
    """A hint: an object helps the pod named in its label `helps`."""
    return any(each is not None and each.labels.get("helps") == pod.name for each in (old, new))


def labelled(pod: Pod, old: Any, new: Any) -> bool:
    """A hint that reads the equivalence key only: an object helps pods with its label `a`."""
    return new is not None and pod.labels.get("a") is not None and pod.labels["a"] == new.labels.get("a")


def broken(pod: Pod, old: Any, new: Any) -> bool:
    """A hint that raises."""
    raise RuntimeError("this hint is broken")


def never(pod: Pod, old: Any, new: Any) -> bool:
    """A hint that is always false."""
    return False


BY_LABEL = EventIndex(
    lambda pod: [pod.labels["a"]] if "a" in pod.labels else [],
    lambda old, new: [new.labels["a"]] if "a" in new.labels else [],
)
"""The keys that `labelled` reads."""

INTERESTS: dict[str, Sequence[Interest]] = {
    "Any": (on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),),
    "Named": (on(Resource.NODE, Action.ADD, named),),
    "Template": (on(Resource.NODE, Action.ADD, labelled, per_equivalence_class=True),),
    "EventIndex": (on(Resource.NODE, Action.ADD, labelled, per_equivalence_class=True, index=BY_LABEL),),
    "Broken": (on(Resource.NODE, Action.ADD, broken),),
    "Never": (on(Resource.NODE, Action.ALL, never),),
    "Pods": (on(Resource.POD, Action.DELETE),),
    "Labels": (on(Resource.POD, Action.UPDATE_POD_LABEL),),
    "Silent": (),
    GATE: (on(Resource.PERSISTENT_VOLUME, Action.ADD), on(Resource.POD, Action.UPDATE_POD_LABEL)),
}


def helping(name: str) -> Any:
    """A node that helps the pod of a name."""
    return make_node(f"for-{name}", labels={"helps": name})


def by_priority(queued: QueuedPod) -> tuple[int, float]:
    """The default order."""
    return (-queued.pod.priority, queued.timestamp)


class Observer(QueueObserver):
    """Counts calls."""

    times_hints = True

    def __init__(self) -> None:
        self.came: Counter[tuple[str, str]] = Counter()
        self.hints: Counter[tuple[str, str, str]] = Counter()

    def incoming(self, queue: str, event: str, queued: QueuedPod) -> None:
        self.came[queue, event] += 1

    def hint_asked(self, plugin: str, event: str, outcome: str, seconds: float) -> None:
        assert seconds >= 0
        self.hints[plugin, event, outcome] += 1


class Case:
    """A queue and its collaborators."""

    made: ClassVar[list[Case]] = []
    is_corrupt = False

    def __init__(self, interests: dict[str, Sequence[Interest]] = INTERESTS, **options: Any) -> None:
        self.made.append(self)
        self.clock = VirtualClock(START)
        self.closed: set[str] = set()
        """The names of gated pods."""
        self.gate_asked: list[tuple[str, str]] = []
        self.observer = Observer()
        self.nominations = Nominations()
        self.wakes = 0
        self.queue = SchedulingQueue(
            {DEFAULT_SCHEDULER: QueueRules(self._gate, interests)},
            by_priority,
            self.clock,
            nominations=self.nominations,
            observer=self.observer,
            **options,
        )
        self.queue.changed = self._wake
        self.flusher = Flusher(self.queue, self.clock)

    def _gate(self, pod: Pod, ask_first: str) -> str:
        self.gate_asked.append((pod.name, ask_first))
        return GATE if pod.name in self.closed else ""

    def _wake(self) -> None:
        self.wakes += 1

    def add(self, *names: str, **fields: Any) -> list[Pod]:
        """Add new pods."""
        pods = [make_pod(name, uid=name, **fields) for name in names]
        for pod in pods:
            self.queue.add(pod)
        return pods

    def pop(self) -> str | None:
        """Pop a pod; its name."""
        queued = self.queue.pop_now()
        return None if queued is None else queued.pod.name

    def pop_all(self) -> list[str]:
        """The names of all pods that can be popped."""
        names = []
        while (name := self.pop()) is not None:
            names.append(name)
        return names

    def attempt(self, name: str) -> QueuedPod:
        """Pop a pod, which must be the first."""
        queued = self.queue.pop_now()
        assert queued is not None
        assert queued.pod.name == name
        return queued

    def fail(
        self, queued: QueuedPod, *plugins: str, pending: Iterable[str] = (), pod: Pod | None = None
    ) -> Place:
        """An attempt fails: rejected by plugins, or without any by an error."""
        return self.queue.put_back(
            queued, pod or queued.pod, unschedulable_plugins=plugins, pending_plugins=pending
        )

    def refused(self, name: str, *plugins: str, pending: Iterable[str] = (), **fields: Any) -> Pod:
        """A pod that plugins rejected; its backoff is over, and it waits for an event."""
        [pod] = self.add(name, **fields)
        place = self.fail(self.attempt(name), *plugins, pending=pending)
        assert place is Place.UNSCHEDULABLE
        self.clock.advance(60)
        return pod

    def where(self, name: str) -> Place | None:
        """Where a pod is."""
        return self.queue.place_of(name)
