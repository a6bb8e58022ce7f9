"""The eviction subresource: deletes a pod if its disruption budget allows it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Final

from moorage.api.conditions import find_condition, is_ready, set_condition
from moorage.api.manifests import Manifest, labels_of, timestamp, utc_now
from moorage.api.selectors import valid_selector
from moorage.apimachinery import errors

MAX_DISRUPTED_PODS: Final = 2000
_REFUSED: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_RETRY_SECONDS: Final = 10


@dataclass(frozen=True, slots=True)
class EvictionDecision:
    """What to store and delete so that a pod is evicted. In a dry run nothing is stored."""

    pod: Manifest
    """The pod as it is stored before its deletion, with the DisruptionTarget condition."""
    budget: Manifest | None = None
    """The disruption budget after this eviction, if there is one to be stored."""


def evict(
    pod: Manifest,
    pdbs: Iterable[Manifest],
    eviction: Manifest | None = None,
    now: datetime | None = None,
) -> EvictionDecision:
    """Decide whether a pod may be evicted, given the budgets of its namespace and the Eviction object.

    ApiError if it may not. The caller stores the budget and the pod, then deletes the pod with the
    eviction's delete options; all on one event loop, so nothing changes in between.
    """
    moment = now or utc_now()
    decision = EvictionDecision(_as_target(pod, moment))
    _check_preconditions(pod, ((eviction or {}).get("deleteOptions") or {}).get("preconditions") or {})
    status = pod.get("status") or {}
    if status.get("phase") in ("Succeeded", "Failed", "Pending") or pod["metadata"].get("deletionTimestamp"):
        return decision
    budgets = [pdb for pdb in pdbs if _covers(pdb, pod)]
    if not budgets:
        return decision
    if len(budgets) > 1:
        text = (
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
        raise errors.ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, "", text)
    budget = budgets[0]
    if not is_ready(pod) and _allows_unhealthy_eviction(budget):
        return decision
    return EvictionDecision(decision.pod, _take_one(budget, pod["metadata"]["name"], moment))


def _as_target(pod: Manifest, now: datetime) -> Manifest:
    status = pod.get("status") or {}
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    conditions = set_condition(status.get("conditions") or (), condition, now)
    return {**pod, "metadata": dict(pod["metadata"]), "status": {**status, "conditions": conditions}}


def _check_preconditions(pod: Manifest, wanted: Manifest) -> None:
    meta = pod["metadata"]
    for key, spoken, hint in (
        ("uid", "UID", "The object might have been deleted and then recreated"),
        ("resourceVersion", "ResourceVersion", "The object might have been modified"),
    ):
        value = wanted.get(key)
        if value and value != meta.get(key, ""):
            why = (
                f"the {spoken} in the precondition ({value}) does not match the {spoken} in record "
                f"({meta.get(key, '')}). {hint}"
            )
            raise errors.conflict("", "Pod", meta["name"], why)


def _covers(pdb: Manifest, pod: Manifest) -> bool:
    if pdb["metadata"].get("namespace") != pod["metadata"].get("namespace"):
        return False
    return valid_selector((pdb.get("spec") or {}).get("selector")).matches(labels_of(pod))


def _allows_unhealthy_eviction(budget: Manifest) -> bool:
    """Whether an unready pod may be evicted: if the policy allows it, or if enough others are healthy."""
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired: int = status.get("desiredHealthy", 0)
    return desired > 0 and status.get("currentHealthy", 0) >= desired


def _take_one(budget: Manifest, pod_name: str, now: datetime) -> Manifest:
    name, status = budget["metadata"]["name"], budget.get("status") or {}
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise still_processing(name)
    allowed = status.get("disruptionsAllowed", 0)
    disrupted = status.get("disruptedPods") or {}
    if allowed < 0:
        raise _forbidden(name, "pdb disruptions allowed is negative")
    if len(disrupted) > MAX_DISRUPTED_PODS:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise _forbidden(name, why)
    if allowed == 0:
        causes = [{"reason": "DisruptionBudget", "message": _blocking_message(name, status)}]
        raise errors.too_many_requests(_REFUSED, causes)
    changed = {
        **status,
        "disruptionsAllowed": allowed - 1,
        "disruptedPods": {**disrupted, pod_name: timestamp(now)},
    }
    if allowed == 1:
        condition = {
            "type": "DisruptionAllowed",
            "status": "False",
            "reason": "InsufficientPods",
            "message": "",
            "observedGeneration": status.get("observedGeneration", 0),
        }
        changed["conditions"] = set_condition(status.get("conditions") or (), condition, now)
    return {**budget, "metadata": dict(budget["metadata"]), "status": changed}


def still_processing(budget_name: str) -> errors.ApiError:
    """The error for a budget with a status that is not up to date yet: the client retries."""
    message = f"The disruption budget {budget_name} is still being processed by the server."
    causes = [{"reason": "DisruptionBudget", "message": message}]
    return errors.too_many_requests(_REFUSED, causes, _RETRY_SECONDS)


def _forbidden(name: str, why: str) -> errors.ApiError:
    return errors.forbidden("policy", "poddisruptionbudget", name, why)


def _blocking_message(name: str, status: Manifest) -> str:
    condition = find_condition(status, "DisruptionAllowed") or {}
    sync_error = condition.get("message") if condition.get("status") == "False" else ""
    desired, current = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    not_now = f"The disruption budget {name} does not allow evicting pods currently"
    if sync_error and condition.get("reason") == "SyncFailed":
        # The other counters are meaningless when the budget could not be computed.
        return f"{not_now} because it failed sync: {sync_error}"
    if current <= desired:
        return f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"
    return f"{not_now} ({condition.get('reason', '')}): {sync_error}" if sync_error else not_now
