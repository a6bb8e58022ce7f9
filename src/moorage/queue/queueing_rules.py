"""What plugins register for the queue, arranged for lookup by event."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from moorage.api.pod import Pod
from moorage.queue.cluster_events import Action, ClusterEvent, Interest
from moorage.queue.equivalent_pods import ProfilePlugin


@dataclass(frozen=True, slots=True)
class QueueRules:
    """A profile's plugins as the queue uses them.

    gate: returns the plugin whose pre_enqueue rejects a pod, or ""; called with the pod and the plugin that
        rejected it last time, which is called first.
    interests: by plugin, the events that may requeue pods that it rejected.
    """

    gate: Callable[[Pod, str], str]
    interests: Mapping[str, Sequence[Interest]]


@dataclass(frozen=True, slots=True)
class Interested:
    """The plugins interested in an event.

    interests: the matching interests, by profile and plugin.
    one_by_one: plugins whose hints read more of a pod than its equivalence key.
    """

    interests: Mapping[ProfilePlugin, tuple[Interest, ...]]
    one_by_one: frozenset[ProfilePlugin]


class InterestTable:
    """The interests of all profiles, by event."""

    def __init__(self, rules: Mapping[str, QueueRules]) -> None:
        self._rules = rules
        self._by_event: dict[ClusterEvent, Interested] = {}

    def about(self, event: ClusterEvent) -> Interested:
        """The plugins interested in an event; computed once for each event."""
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
    """By kind of object, the actions that plugins of any profile are interested in."""
    actions: dict[str, Action] = {}
    for each in rules:
        for interests in each.interests.values():
            for interest in interests:
                event = interest.event
                actions[event.resource] = actions.get(event.resource, Action(0)) | event.action
    return actions
