"""Pod disruption budgets: how many pods of an application may be disrupted now."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from moorage.api.conditions import find_condition, is_ready
from moorage.api.manifests import Manifest, copy, labels_of, moment, status_of, timestamp
from moorage.api.selectors import Selector, valid_selector
from moorage.client.informer import EventType
from moorage.client.kinds import POD, POD_DISRUPTION_BUDGET
from moorage.http.errors import RequestError
from moorage_cluster.controllers.cluster import Cluster
from moorage_cluster.controllers.controller import Controller, Key
from moorage_cluster.controllers.disruption_scales import Scales, UnknownScaleError
from moorage_cluster.controllers.node_conditions import (
    DISRUPTION_TARGET,
    changed_condition,
    patch_pod_status,
)
from moorage_cluster.controllers.pods import is_finished
from moorage_cluster.controllers.statuses import share, without_condition

COMPONENT: Final = "controllermanager"
_DELETION_TIMEOUT: Final = timedelta(minutes=2)
"""Time limit for an allowed eviction to begin; after it the pod counts again."""
_STALE_AFTER: Final = timedelta(minutes=2)
_RETRY_SECONDS: Final = 5.0
_ALLOWED: Final = "DisruptionAllowed"


class Disruption(Controller):
    """Reconciles budgets."""

    name = "disruption-controller"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._budgets = cluster.informer(POD_DISRUPTION_BUDGET)
        self._pods = cluster.within(POD)
        self._scales = Scales(cluster)
        self._selectors: dict[str, dict[Key, Selector]] = {}
        self.watch(POD_DISRUPTION_BUDGET, self._budget_changed)
        self.watch(POD, self._pod_changed)

    def _budget_changed(self, type: EventType, budget: Manifest, before: Manifest | None) -> None:
        namespace, name = budget["metadata"]["namespace"], budget["metadata"]["name"]
        selectors = self._selectors.setdefault(namespace, {})
        if type == "DELETED":
            selectors.pop((namespace, name), None)
            if not selectors:
                del self._selectors[namespace]
        elif before is None or before["spec"] != budget["spec"]:
            selectors[namespace, name] = valid_selector(budget["spec"].get("selector"))
        self.enqueue(namespace, name)

    def _pod_changed(self, type: EventType, pod: Manifest, before: Manifest | None) -> None:
        if type == "MODIFIED" and before and _what_counts(pod) == _what_counts(before):
            return
        labels = [labels_of(each) for each in (pod, before) if each]
        for key, selector in self._selectors.get(pod["metadata"]["namespace"], {}).items():
            if any(selector.matches(each) for each in labels):
                self.enqueue(*key)

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Bring one budget's status up to date."""
        budget = self._budgets.get(namespace, name)
        if budget is None:
            return None
        selector = self._selectors[namespace][namespace, name]
        pods = [pod for pod in self._pods.get(namespace) if selector.matches(labels_of(pod))]
        if not pods:
            await self.cluster.record_event(budget, "Normal", "NoPods", "No matching pods found", COMPONENT)
        try:
            expected, desired = await self._expected(budget, pods)
        except (UnknownScaleError, RequestError) as error:
            message = f"Failed to calculate the number of expected pods: {error}"
            await self.cluster.record_event(
                budget, "Warning", "CalculateExpectedPodCountFailed", message, COMPONENT
            )
            await self._write(budget, self._failed_status(budget, str(error)))
            return _RETRY_SECONDS
        disrupted, recheck_after = await self._still_disrupted(budget, pods)
        healthy = sum(1 for pod in pods if _is_healthy(pod, disrupted))
        await self._write(budget, self._status(budget, healthy, desired, expected, disrupted))
        return recheck_after

    # -- expected pods

    async def _expected(self, budget: Manifest, pods: list[Manifest]) -> tuple[int, int]:
        """Numbers of expected pods and of pods that must be healthy."""
        spec = budget["spec"]
        if (wanted := spec.get("maxUnavailable")) is not None:
            expected = await self._expected_scale(budget, pods)
            return expected, max(0, expected - share(wanted, expected, round_up=True))
        wanted = spec.get("minAvailable")
        if isinstance(wanted, str):
            expected = await self._expected_scale(budget, pods)
            return expected, share(wanted, expected, round_up=True)
        return (len(pods), wanted) if wanted is not None else (0, 0)

    async def _expected_scale(self, budget: Manifest, pods: list[Manifest]) -> int:
        """Desired replicas of the controllers of pods, in total."""
        expected, unmanaged = await self._scales.total(pods)
        if unmanaged:
            message = (
                "Pods selected by this PodDisruptionBudget (selector: "
                f"{_selector_text(budget['spec'].get('selector'))}) were found to be unmanaged. As a result, "
                "the status of the PDB cannot be calculated correctly, which may result in undefined "
                'behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to an '
                "integer value."
            )
            await self.cluster.record_event(budget, "Warning", "UnmanagedPods", message, COMPONENT)
        return expected

    async def _still_disrupted(
        self, budget: Manifest, pods: Iterable[Manifest]
    ) -> tuple[dict[str, str], float | None]:
        """The pods with an allowed eviction that has not begun, and seconds until the first times out."""
        known: dict[str, str] = (budget.get("status") or {}).get("disruptedPods") or {}
        now = self.cluster.clock.utc_now()
        still: dict[str, str] = {}
        recheck_after: float | None = None
        for pod in pods if known else ():
            name = pod["metadata"]["name"]
            if name not in known or "deletionTimestamp" in pod["metadata"]:
                continue
            left = (moment(known[name]) + _DELETION_TIMEOUT - now).total_seconds()
            if left <= 0:
                where = budget["metadata"]["namespace"]
                message = f"Pod was expected by PDB {where}/{where} to be deleted but it wasn't"
                await self.cluster.record_event(pod, "Warning", "NotDeleted", message, COMPONENT)
                continue
            still[name] = known[name]
            recheck_after = left if recheck_after is None else min(recheck_after, left)
        return still, recheck_after

    # -- status

    def _status(
        self, budget: Manifest, healthy: int, desired: int, expected: int, disrupted: dict[str, str]
    ) -> Manifest:
        allowed = max(0, healthy - desired) if expected > 0 else 0
        status: Manifest = {
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
            "disruptionsAllowed": allowed,
            "observedGeneration": budget["metadata"].get("generation", 0),
        }
        if disrupted:
            status["disruptedPods"] = disrupted
        reason = "SufficientPods" if allowed else "InsufficientPods"
        return self._with_condition(budget, status, "True" if allowed else "False", reason, "")

    def _failed_status(self, budget: Manifest, problem: str) -> Manifest:
        status = {**_zeroes(), **(budget.get("status") or {}), "disruptionsAllowed": 0}
        return self._with_condition(budget, status, "False", "SyncFailed", problem)

    def _with_condition(
        self, budget: Manifest, status: Manifest, value: str, reason: str, message: str
    ) -> Manifest:
        new: Manifest = {
            "type": _ALLOWED,
            "status": value,
            "reason": reason,
            "message": message,
            "observedGeneration": status.get("observedGeneration", 0),
        }
        known = status_of(budget)
        new = (
            changed_condition(budget, new, self.cluster.clock.utc_now())
            or find_condition(known, _ALLOWED)
            or new
        )
        others = without_condition(known.get("conditions") or [], _ALLOWED)
        return {**status, "conditions": [*others, new]}

    async def _write(self, budget: Manifest, status: Manifest) -> None:
        if status != budget.get("status"):
            new = copy(budget)
            new["status"] = status
            await self.cluster.update(POD_DISRUPTION_BUDGET, new, "status")


class StaleDisruption(Controller):
    """Sets the DisruptionTarget condition of pods to False if they were not deleted within a timeout."""

    name = "disruption-controller-stale-pods"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._pods = cluster.informer(POD)
        self.watch(POD, self._pod_changed)

    def _pod_changed(self, type: EventType, pod: Manifest, before: Manifest | None) -> None:
        if type != "DELETED" and _is_to_be_disrupted(pod):
            self.enqueue(pod["metadata"]["namespace"], pod["metadata"]["name"])

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Set the condition of one pod to False, if it is stale."""
        pod = self._pods.get(namespace, name)
        if pod is None or not _is_to_be_disrupted(pod):
            return None
        threat = find_condition(status_of(pod), DISRUPTION_TARGET)
        if threat is None:
            return None
        now = self.cluster.clock.utc_now()
        left = moment(threat["lastTransitionTime"]) + _STALE_AFTER - now
        if left > timedelta(0):
            return left.total_seconds()
        taken_back = {
            "type": DISRUPTION_TARGET,
            "status": "False",
            "reason": None,
            "message": None,
            "lastTransitionTime": timestamp(now),
            "observedGeneration": pod["metadata"].get("generation", 0),
        }
        await patch_pod_status(self.cluster, pod, {"conditions": [taken_back]})
        return None


def _is_to_be_disrupted(pod: Manifest) -> bool:
    threat = find_condition(status_of(pod), DISRUPTION_TARGET)
    return (
        threat is not None
        and threat["status"] == "True"
        and threat.get("reason") != "TerminationByKubelet"
        and "deletionTimestamp" not in pod["metadata"]
        and not is_finished(pod)
    )


def _what_counts(pod: Manifest) -> tuple[object, ...]:
    """The fields of a pod that budgets depend on."""
    meta = pod["metadata"]
    is_terminating = "deletionTimestamp" in meta
    return is_terminating, is_ready(pod), meta.get("labels"), meta.get("ownerReferences")


def _is_healthy(pod: Manifest, disrupted: dict[str, str]) -> bool:
    meta = pod["metadata"]
    return "deletionTimestamp" not in meta and meta["name"] not in disrupted and is_ready(pod)


def _selector_text(selector: Manifest | None) -> str:
    """A selector as Kubernetes' messages show it."""
    given = selector or {}
    labels = ",".join(f"{key}: {value}" for key, value in sorted((given.get("matchLabels") or {}).items()))
    expressions = "".join(
        "LabelSelectorRequirement{"
        f"Key:{each['key']},Operator:{each['operator']},Values:[{' '.join(each.get('values') or ())}],"
        "},"
        for each in given.get("matchExpressions") or ()
    )
    labels_text = f"map[string]string{{{labels}{',' if labels else ''}}}"
    return (
        f"&LabelSelector{{MatchLabels:{labels_text},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


def _zeroes() -> Manifest:
    return {"currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}
