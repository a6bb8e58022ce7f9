"""What plugins say about queueing, arranged to be asked fast: who may be helped by an event?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from moorage.api.pod import Pod
from moorage.queue.cluster_events import Action, ClusterEvent, Interest
from moorage.queue.equivalent_pods import ProfilePlugin


@dataclass(frozen=True, slots=True)
class QueueRules:
    """One profile's say in the queue.

    gate: the plugin that keeps a pod from being tried, or ""; called with the pod and with the plugin that
        kept it away last time, which is best asked first.
    interests: by plugin, the events that may help pods which it refused.
    """

    gate: Callable[[Pod, str], str]
    interests: Mapping[str, Sequence[Interest]]


@dataclass(frozen=True, slots=True)
class Interested:
    """Whom to ask about an event.

    interests: what each plugin with an interest in it wants to know; by profile.
    one_by_one: those of them who look at more of a pod than its template.
    """

    interests: Mapping[ProfilePlugin, tuple[Interest, ...]]
    one_by_one: frozenset[ProfilePlugin]


class InterestTable:
    """The interests of all profiles, by event."""

    def __init__(self, rules: Mapping[str, QueueRules]) -> None:
        self._rules = rules
        self._by_event: dict[ClusterEvent, Interested] = {}

    def about(self, event: ClusterEvent) -> Interested:
        """Whom to ask about an event; worked out once for each that occurs."""
        interested = self._by_event.get(event)
        if interested is None:
            interested = self._by_event[event] = self._interested(event)
        return interested

    def _interested(self, event: ClusterEvent) -> Interested:
        interests = {
            (profile, plugin): matching
            for profile, rules in self._rules.items()
            for plugin, interests in rules.interests.items()
            if (matching := tuple(each for each in interests if each.event.covers(event)))
        }
        one_by_one = (
            plugin
            for plugin, matching in interests.items()
            if any(each.hint is not None and not each.per_equivalence_class for each in matching)
        )
        return Interested(interests, frozenset(one_by_one))


def watched_actions(rules: Iterable[QueueRules]) -> dict[str, Action]:
    """By kind of object, what has to be watched for: what some plugin of some profile has an interest in."""
    actions: dict[str, Action] = {}
    for each in rules:
        for interests in each.interests.values():
            for interest in interests:
                event = interest.event
                actions[event.resource] = actions.get(event.resource, Action(0)) | event.action
    return actions
