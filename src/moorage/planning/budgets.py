"""Disruption budgets, with the eviction API's arithmetic and the disruption controller's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.api.selectors import Selector, SelectorError, label_selector
from moorage.api.workloads import PodDisruptionBudget

SEVERAL_BUDGETS: Final = "more than one disruption budget covers it, which the eviction API does not support"
_ALWAYS: Final = "AlwaysAllow"


@dataclass(slots=True)
class _State:
    """A budget at one point of a plan."""

    budget: PodDisruptionBudget
    selector: Selector
    healthy: int
    desired: int
    allowed: int

    def covers(self, pod: Pod) -> bool:
        """Whether it is about a pod."""
        return pod.namespace == self.budget.namespace and self.selector.matches(pod.labels)


BudgetNumbers = tuple[tuple[int, int], ...]
"""The healthy pods and the allowed disruptions of all budgets at one point of a plan."""


class DisruptionBudgets:
    """The budgets of a cluster, while pods are evicted and created again.

    A budget with a status is taken as the API server shows it. One without, from a manifest, gets what the
    disruption controller would write, if the pods that are there are all that are expected.
    """

    def __init__(self, objects: Iterable[Object]) -> None:
        objects = list(objects)
        pods = [each for each in objects if isinstance(each, Pod)]
        self._states = [_state(each, pods) for each in objects if isinstance(each, PodDisruptionBudget)]

    def refusal(self, pod: Pod) -> tuple[str, str]:
        """Why the API server would not evict a pod now, and which budget forbids it; empty if it would."""
        if not pod.spec.node_name or pod.finished or pod.terminating:
            return "", ""
        covering = self._covering(pod)
        if len(covering) > 1:
            return SEVERAL_BUDGETS, ", ".join(each.budget.name for each in covering)
        for each in covering:
            if each.allowed <= 0 and not _is_free(each, pod):
                text = f"budget {each.budget.name} needs {each.desired} healthy pods and has {each.healthy}"
                return text, each.budget.name
        return "", ""

    def evicted(self, pod: Pod) -> None:
        """A pod is gone."""
        for each in self._covering(pod) if is_ready(pod) else ():
            each.healthy -= 1
            each.allowed -= 1

    def recreated(self, pod: Pod) -> None:
        """The successor of a pod is on a node, and ready."""
        for each in self._covering(pod):
            each.healthy += 1
            each.allowed = max(0, min(each.allowed + 1, each.healthy - each.desired))

    def numbers(self) -> BudgetNumbers:
        """The present state, for `restore`."""
        return tuple((each.healthy, each.allowed) for each in self._states)

    def restore(self, numbers: BudgetNumbers) -> None:
        """Go back to an earlier state."""
        for each, (healthy, allowed) in zip(self._states, numbers, strict=True):
            each.healthy, each.allowed = healthy, allowed

    def _covering(self, pod: Pod) -> list[_State]:
        return [each for each in self._states if each.covers(pod)]


def is_ready(pod: Pod) -> bool:
    """Whether a pod counts as healthy: a pod on a node that says nothing about it does."""
    said = [each.status for each in pod.status.conditions if each.type == "Ready"]
    return bool(pod.spec.node_name) and not pod.terminating and said in ([], ["True"])


def _is_free(state: _State, pod: Pod) -> bool:
    """Whether a pod that is not ready may go although no disruption is allowed."""
    if is_ready(pod):
        return False
    policy = state.budget.spec.unhealthy_pod_eviction_policy
    return policy == _ALWAYS or state.healthy >= state.desired > 0


def _state(budget: PodDisruptionBudget, pods: list[Pod]) -> _State:
    try:
        selector = label_selector(budget.spec.selector)
    except SelectorError:
        selector = label_selector(None)
    status = budget.status
    if status.expected_pods or status.current_healthy:
        return _State(
            budget, selector, status.current_healthy, status.desired_healthy, status.disruptions_allowed
        )
    if status.disruptions_allowed:
        return _State(budget, selector, status.disruptions_allowed, 0, status.disruptions_allowed)
    matching = [
        pod
        for pod in pods
        if pod.namespace == budget.namespace and not pod.finished and selector.matches(pod.labels)
    ]
    healthy, desired = sum(map(is_ready, matching)), _desired(budget, len(matching))
    return _State(budget, selector, healthy, desired, max(0, healthy - desired))


def _desired(budget: PodDisruptionBudget, expected: int) -> int:
    """How many pods must stay healthy of those that are expected."""
    spec = budget.spec
    if spec.max_unavailable is not None:
        return max(0, expected - _scaled(spec.max_unavailable, expected))
    return _scaled(spec.min_available, expected) if spec.min_available is not None else 0


def _scaled(amount: int | str, expected: int) -> int:
    """A number, or a percentage of the expected pods, rounded up."""
    if isinstance(amount, int):
        return amount
    text = amount.removesuffix("%")
    return -(-int(text) * expected // 100) if text.isdecimal() else 0
