"""Validation of pod updates: few fields of the spec may change, most of the status may."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from moorage.admission.pods.scheduling import REQUIRED_TERMS
from moorage.admission.pods.validation import (
    MIRROR_ANNOTATION,
    validate_pod,
    validate_pod_annotations,
)
from moorage.api.manifests import Manifest, annotations_of, take
from moorage.apimachinery.fields import IMMUTABLE, FieldError, duplicate, forbidden, invalid
from moorage.apimachinery.validation.checks import MAX_INT32, check_range
from moorage.apimachinery.validation.names import check_qualified_name, check_subdomain
from moorage.apimachinery.validation.network_addresses import check_address, is_dual_stack
from moorage_cluster.apiserver.kinds.pods.differences import described, same

_UPDATABLE: Final = ",".join(
    (
        "`spec.containers[*].image`",
        "`spec.initContainers[*].image`",
        "`spec.activeDeadlineSeconds`",
        "`spec.tolerations` (only additions to existing tolerations)",
        "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
    )
)
_APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
_OWN_CONDITIONS: Final = frozenset(("PodScheduled", "Ready", "Initialized", "ContainersReady"))
_AFFINITY_PATH: Final = f"spec.affinity.nodeAffinity.{REQUIRED_TERMS}.nodeSelectorTerms"


def validate_pod_update(new: Manifest, old: Manifest) -> list[FieldError]:
    """Validation errors of a regular update, except those of the metadata."""
    errors = validate_annotation_update(new, old)
    now, before = new["spec"], old["spec"]
    if now == before:
        return errors
    errors += validate_pod(new)
    for key in ("containers", "initContainers"):
        if len(now.get(key) or ()) != len(before.get(key) or ()):
            errors.append(forbidden(f"spec.{key}", "pod updates may not add or remove containers"))
            return errors
    errors += _deadline_errors(now.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds"))
    errors += _toleration_errors(now.get("tolerations") or (), before.get("tolerations") or ())
    errors += _gate_errors(now.get("schedulingGates") or (), before.get("schedulingGates") or ())
    rest = _without_allowed_changes(now, before)
    if before.get("schedulingGates"):
        errors += _tightened(rest, before)
    if not same(rest, before):
        difference = described(rest, before, "spec")
        problem = f"pod updates may not change fields other than {_UPDATABLE}\n{difference}"
        errors.append(forbidden("spec", problem))
    return errors


def validate_annotation_update(new: Manifest, old: Manifest) -> list[FieldError]:
    """Validation errors of an update of the annotations with a meaning for pods."""
    now, before = annotations_of(new), annotations_of(old)
    if now == before:
        return []
    errors: list[FieldError] = []
    for key, value in before.items():
        if now.get(key) != value:
            errors += _guarded(key, "may not remove or update")
    for key in now:
        if key not in before:
            errors += _guarded(key, "may not add")
    return errors + validate_pod_annotations(now, new["spec"], "metadata.annotations")


def _guarded(key: str, refusal: str) -> list[FieldError]:
    path = f"metadata.annotations[{key}]"
    if key == MIRROR_ANNOTATION:
        return [forbidden(path, f"{refusal} mirror pod annotation")]
    if key.startswith(_APP_ARMOR):
        return [forbidden(path, f"{refusal} AppArmor annotations")]
    return []


def _deadline_errors(new: int | None, old: int | None) -> list[FieldError]:
    path = "spec.activeDeadlineSeconds"
    if new is None:
        if old is None:
            return []
        return [invalid(path, None, "must not update from a positive integer to nil value")]
    if errors := check_range(new, 0, MAX_INT32, path):
        return errors
    if old is not None and old < new:
        return [invalid(path, new, "must be less than or equal to previous value")]
    return []


def _toleration_errors(new: Sequence[Manifest], old: Sequence[Manifest]) -> list[FieldError]:
    kept = set(map(_without_seconds, new))
    if all(_without_seconds(toleration) in kept for toleration in old):
        return []
    problem = "existing toleration can not be modified except its tolerationSeconds"
    return [forbidden("spec.tolerations", problem)]


def _without_seconds(toleration: Manifest) -> frozenset[tuple[str, Any]]:
    return frozenset(
        (key, value) for key, value in toleration.items() if key != "tolerationSeconds" and value
    )


def _gate_errors(new: Sequence[Manifest], old: Sequence[Manifest]) -> list[FieldError]:
    before = {gate.get("name", "") for gate in old}
    return [
        forbidden(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name', '')}'",
        )
        for index, gate in enumerate(new)
        if gate.get("name", "") not in before
    ]


def _without_allowed_changes(new: Manifest, old: Manifest) -> Manifest:
    """The new spec with all allowed changes reverted, so that the remaining differences are forbidden."""
    rest = dict(new)
    for key in ("containers", "initContainers"):
        if key in new:
            rest[key] = [
                {**container, "image": before.get("image", "")}
                for container, before in zip(new[key], old.get(key) or (), strict=True)
            ]
    for key in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        take(rest, old, key)
    grace = old.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0 and new.get("terminationGracePeriodSeconds") == 1:
        rest["terminationGracePeriodSeconds"] = grace
    return rest


def _tightened(rest: Manifest, old: Manifest) -> list[FieldError]:
    """Validation errors of changed node constraints of a gated pod; reverts the allowed changes in `rest`."""
    errors: list[FieldError] = []
    selector, selector_before = rest.get("nodeSelector") or {}, old.get("nodeSelector") or {}
    if any(selector.get(key) != value for key, value in selector_before.items()):
        problem = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        errors.append(invalid("spec.nodeSelector", selector, problem))
    take(rest, old, "nodeSelector")
    affinity, affinity_before = rest.get("affinity") or {}, old.get("affinity") or {}
    now, before = affinity.get("nodeAffinity"), affinity_before.get("nodeAffinity")
    if not same(now, before):
        errors += _affinity_errors(_terms(now), _terms(before))
        changed = dict(affinity)
        take(changed, affinity_before, "nodeAffinity")
        if changed or "affinity" in old:
            rest["affinity"] = changed
        else:
            rest.pop("affinity", None)
    return errors


def _terms(affinity: Manifest | None) -> list[Manifest]:
    terms: list[Manifest] = ((affinity or {}).get(REQUIRED_TERMS) or {}).get("nodeSelectorTerms") or []
    return terms


def _affinity_errors(new: list[Manifest], old: list[Manifest]) -> list[FieldError]:
    if not old:
        return []
    if len(new) != len(old):
        problem = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [invalid(_AFFINITY_PATH, new or None, problem)]
    return [
        invalid(f"{_AFFINITY_PATH}[{index}]", term, "only additions are allowed (no mutations or deletions)")
        for index, (term, before) in enumerate(zip(new, old, strict=True))
        if not _only_adds(term, before)
    ]


def _only_adds(new: Manifest, old: Manifest) -> bool:
    kinds = ("matchExpressions", "matchFields")
    # A term without expressions matches nothing, so adding some would make it match more.
    if not any(old.get(kind) for kind in kinds) and any(new.get(kind) for kind in kinds):
        return False
    return all(same((new.get(kind) or [])[: len(old.get(kind) or [])], old.get(kind) or []) for kind in kinds)


def validate_status_update(new: Manifest, old: Manifest) -> list[FieldError]:
    """Validation errors of an update of the status, except those of the metadata."""
    errors = validate_annotation_update(new, old)
    now: Manifest = new.get("status") or {}
    before: Manifest = old.get("status") or {}
    for index, condition in enumerate(now.get("conditions") or ()):
        where = f"status.conditions[{index}]"
        errors += _generation_errors(condition, where)
        kind = condition.get("type", "")
        if kind not in _OWN_CONDITIONS:
            errors += check_qualified_name(kind, f"{where}.Type")
    nominated = now.get("nominatedNodeName")
    if nominated and nominated != before.get("nominatedNodeName"):
        path = "status.nominatedNodeName"
        errors += check_subdomain(nominated, path)
        if old["spec"].get("nodeName"):
            errors.append(forbidden(path, "may not be set on pods that are already bound to a node"))
    errors += _generation_errors(now, "status")
    if now.get("qosClass", "") != before.get("qosClass", ""):
        errors.append(invalid("status.qosClass", now.get("qosClass", ""), IMMUTABLE))
    errors += _transition_errors(now, before, old["spec"])
    if statuses := now.get("resourceClaimStatuses"):
        errors += _claim_status_errors(statuses, old["spec"].get("resourceClaims") or ())
    if now.get("podIPs"):
        errors += _address_errors(now["podIPs"], before.get("podIPs") or (), "status.podIPs")
    if addresses := now.get("hostIPs"):
        if addresses[0].get("ip", "") != now.get("hostIP", ""):
            problem = "must be equal to `hostIP`"
            errors.append(invalid("status.hostIPs[0].ip", addresses[0].get("ip", ""), problem))
        errors += _address_errors(addresses, before.get("hostIPs") or (), "status.hostIPs")
    return errors


def _generation_errors(part: Manifest, path: str) -> list[FieldError]:
    generation = part.get("observedGeneration", 0)
    if generation >= 0:
        return []
    return [invalid(f"{path}.observedGeneration", generation, "must be a non-negative integer")]


def _transition_errors(new: Manifest, old: Manifest, spec: Manifest) -> list[FieldError]:
    """Terminated containers may not run again, unless their restart policy or rules allow it."""
    errors: list[FieldError] = []
    for key, kind in (
        ("containerStatuses", "containers"),
        ("initContainerStatuses", "initContainers"),
        ("ephemeralContainerStatuses", ""),
    ):
        if not old.get(key):
            continue
        now = {status.get("name"): status for status in reversed(new.get(key) or ())}
        for index, before in enumerate(old[key]):
            ended = (before.get("state") or {}).get("terminated")
            status = now.get(before.get("name"))
            if ended is None or status is None or (status.get("state") or {}).get("terminated") is not None:
                continue
            if not kind or not _restarts(before.get("name", ""), kind, ended.get("exitCode", 0), spec):
                problem = "may not be transitioned to non-terminated state"
                errors.append(forbidden(f"status.{key}[{index}].state", problem))
    return errors


def _restarts(name: str, kind: str, exit_code: int, spec: Manifest) -> bool:
    if any(
        _restarts_all(container)
        for each in ("initContainers", "containers")
        for container in spec.get(each) or ()
    ):
        return True
    container = next((each for each in spec.get(kind) or () if each.get("name") == name), None)
    if container is None:
        return False
    policy = container.get("restartPolicy")
    if policy is not None and any(
        _matches(rule, exit_code) for rule in container.get("restartPolicyRules") or ()
    ):
        return True
    policy = policy or spec.get("restartPolicy")
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def _restarts_all(container: Manifest) -> bool:
    return any(
        rule.get("action") == "RestartAllContainers" for rule in container.get("restartPolicyRules") or ()
    )


def _matches(rule: Mapping[str, Any], exit_code: int) -> bool:
    codes = rule.get("exitCodes") or {}
    listed = exit_code in (codes.get("values") or ())
    return listed if codes.get("operator") == "In" else codes.get("operator") == "NotIn" and not listed


def _claim_status_errors(statuses: Sequence[Manifest], claims: Sequence[Manifest]) -> list[FieldError]:
    errors: list[FieldError] = []
    known = {claim.get("name", "") for claim in claims}
    seen: set[str] = set()
    for index, status in enumerate(statuses):
        where, name = f"status.resourceClaimStatuses[{index}]", status.get("name", "")
        if name not in known:
            problem = "must match the name of an entry in `spec.resourceClaims`"
            errors.append(invalid(f"{where}.name", name, problem))
        if name in seen:
            errors.append(duplicate(f"{where}.name", name))
        seen.add(name)
        if claim := status.get("resourceClaimName"):
            errors += check_subdomain(claim, f"{where}.resourceClaimName")
    return errors


def _address_errors(new: Sequence[Manifest], old: Sequence[Manifest], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    before = {address.get("ip", "") for address in old}
    addresses = [address.get("ip", "") for address in new]
    for index, address in enumerate(addresses):
        if address not in before:
            errors += check_address(address, f"{path}[{index}]")
    if len(addresses) > 1 and not is_dual_stack(addresses):
        problem = "may specify no more than one IP for each IP family"
        errors.append(invalid(path, list(new), problem))
    return errors
