"""Parts of queueing hints that several plugins share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from moorage.api.pod import Pod
from moorage.api.selectors import Operator, Selector
from moorage.api.storage import PersistentVolumeClaim
from moorage.framework.interface.events import EventIndex, Hint
from moorage.klog import Logger, kobj
from moorage.plugins.volumes.persistent_volume_claims import claim_uses

log = Logger(__name__)


class Answer(NamedTuple):
    """Whether an event may help a pod, and why, in the words of kube-scheduler's log; from `-v=v` on."""

    helps: bool
    why: str
    v: int = 5


TOLERATES_MORE = Answer(
    True, "a new toleration is added for the unschedulable Pod, and it may make it schedulable"
)
OTHER_TOLERATES_MORE = Answer(
    False,
    "a new toleration is added for a Pod, but it's an unrelated Pod and wouldn't change "
    "the TaintToleration plugin's decision",
)


def explained(hint: Callable[[Pod, Any, Any], Answer], subject: str) -> Hint:
    """A hint that logs the reason for its answer.

    subject: the log key of the object of the event; empty: it is the pod itself.
    """

    def answer(pod: Pod, old: Any, new: Any) -> bool:
        found = hint(pod, old, new)
        if log.v >= found.v:
            _log_answer(found, pod, subject, old if new is None else new)
        return found.helps

    return answer


def _log_answer(answer: Answer, pod: Pod, subject: str, changed: Any) -> None:
    if subject:
        log.info(answer.v, answer.why, pod=kobj(pod), **{subject: kobj(changed)})
    else:
        log.info(answer.v, answer.why, pod=kobj(changed))


def is_placed(pod: Pod) -> bool:
    """Whether a pod is assigned or nominated to a node."""
    return bool(pod.spec.node_name or pod.status.nominated_node_name)


def about_itself(pod: Pod, old: Any, new: Pod) -> bool:
    """Whether an update is one of the waiting pod itself; for hints where only such updates help."""
    return new.uid == pod.uid


def uses_claim(pod: Pod, claim: PersistentVolumeClaim, *, ephemeral: bool = True) -> bool:
    """Whether a pod uses a claim; or, not counting claims of its ephemeral volumes, names it."""
    return claim.namespace == pod.namespace and any(
        use.name == claim.name and (ephemeral or not use.ephemeral) for use in claim_uses(pod)
    )


def _claims_used(pod: Pod) -> set[tuple[str, str]]:
    return {(pod.namespace, use.name) for use in claim_uses(pod)}


def _claim_named(old: Any, new: PersistentVolumeClaim) -> tuple[tuple[str, str]]:
    return ((new.namespace, new.name),)


USES_CLAIM = EventIndex(_claims_used, _claim_named)
"""For hints about claims that are added or updated: only pods that use them are affected."""


def selector_labels(selectors: Iterable[Selector]) -> set[tuple[str, str]] | None:
    """Labels of which every pod that a selector matches has one; None if there are no such labels."""
    labels: set[tuple[str, str]] = set()
    for selector in selectors:
        if selector.requirements is None:
            continue
        named = next((each for each in selector.requirements if each.operator is Operator.IN), None)
        if named is None:
            return None
        labels.update((named.key, value) for value in named.values)
    return labels


def event_labels(old: Pod | None, new: Pod | None) -> set[tuple[str, str]]:
    """The labels that a pod had or has."""
    return {label for each in (old, new) if each is not None for label in each.labels.items()}
