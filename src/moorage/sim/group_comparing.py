"""How the cycle of a group ended, compared with a recorded one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from moorage.engine.group_result import GroupDecision, GroupResult, member_message
from moorage.sim.difference import Differ, Difference
from moorage.sim.group_recording import RecordedCycle, RecordedResult

_SEVERAL_DOMAINS: Final = "more than 1 domain found for pod group: "


def compare_results(recorded: RecordedCycle, decision: GroupDecision, differ: Differ) -> Iterator[Difference]:
    """Compare outcomes, messages and nominations."""
    ours: dict[str, tuple[object, ...]] = {}
    messages: dict[str, str | None] = {}
    for result in decision.leaves():
        ours[str(result.info.key)] = _outcome(result)
        messages.update(messages_of(result))
    for key, theirs in recorded.results.items():
        if not are_equal(ours.get(key), outcome := _recorded_outcome(theirs)):
            yield differ("result", outcome, ours.get(key), key)
    if messages != recorded.messages:
        for key in sorted(messages.keys() | recorded.messages.keys()):
            if not are_equal((messages.get(key),), (recorded.messages.get(key),)):
                yield differ("message", recorded.messages.get(key), messages.get(key), key)
    nominated = {
        pod.key: decision.nominated[pod.uid]
        for pod in decision.root.all_pods()
        if decision.nominated.get(pod.uid)
    }
    if decision.result.is_waiting_on_preemption and nominated != recorded.nominated:
        yield differ("nominated", recorded.nominated, nominated)


def _outcome(result: GroupResult) -> tuple[object, ...]:
    if result.status.is_success:
        placed = len(result.assignments)
        return (result.outcome, placed, len(result.members) - placed)
    return (result.outcome, result.message)


def _recorded_outcome(recorded: RecordedResult) -> tuple[object, ...]:
    if recorded.outcome == "Scheduled":
        return (recorded.outcome, recorded.scheduled, recorded.unschedulable)
    return (recorded.outcome, recorded.message)


def messages_of(result: GroupResult) -> dict[str, str | None]:
    """The message of each member that does not go on to binding."""
    return {
        member.pod.key: message
        for member in result.members
        if (message := member_message(result, member)) is not None
    }


def are_equal(ours: tuple[object, ...] | None, recorded: tuple[object, ...] | None) -> bool:
    """Whether two outcomes are equal, but for which domains a group in several of them names first."""
    if ours is None or recorded is None:
        return ours is recorded
    return list(map(_sorted_domains, ours)) == list(map(_sorted_domains, recorded))


def _sorted_domains(text: object) -> object:
    before, marker, domains = str(text).partition(_SEVERAL_DOMAINS)
    return (before, sorted(domains.split(", "))) if marker else text
