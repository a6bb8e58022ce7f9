"""The claims of a pod: which they are, whether they are reserved for it, and whether devices are ready."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from moorage.api.base import Condition
from moorage.api.devices import (
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimConsumer,
    ResourceClaimStatus,
)
from moorage.api.pod import Pod, PodResourceClaim
from moorage.cluster.object_tables import ObjectTable

FINALIZER = "resource.kubernetes.io/delete-protection"
"""Finalizer that keeps an allocated claim from being deleted while it is in use."""


class ClaimError(Exception):
    """A pod's claim is not there, or not usable: the pod has to wait."""


class BindingFailedError(Exception):
    """A driver reports that a device will not get ready."""


def claim_uid(claim: ResourceClaim) -> str:
    """The claim's uid; the key for claims that were never stored."""
    return claim.metadata.uid or claim.key


# Which claims


def claims_of(pod: Pod, table: ObjectTable[ResourceClaim]) -> list[ResourceClaim]:
    """The claims that a pod names, and those that were made for it; ClaimError if one cannot be used."""
    claims = []
    for reference in pod.spec.resource_claims:
        name = _name(pod, reference)
        if name is None:
            continue
        claim = table.get(pod.namespace, name)
        if claim is None:
            raise ClaimError(f'could not find ResourceClaim "{pod.namespace}/{name}"')
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimError(f'resourceclaim "{claim.name}" is being deleted')
        if reference.resource_claim_name is None and not made_for(pod, claim):
            raise ClaimError(
                f"ResourceClaim {claim.key} was not created for Pod {pod.key} (Pod is not owner)"
            )
        claims.append(claim)
    return claims


def _name(pod: Pod, reference: PodResourceClaim) -> str | None:
    """A claim's name; None where none was made, on purpose."""
    if reference.resource_claim_name is not None:
        return reference.resource_claim_name
    if reference.resource_claim_template_name is None:
        raise ClaimError(
            f'pod "{pod.key}", spec.resourceClaim "{reference.name}": none of the supported fields are set'
        )
    for status in pod.status.resource_claim_statuses:
        if status.name == reference.name:
            return status.resource_claim_name
    raise ClaimError(f'pod "{pod.key}": ResourceClaim not created yet')


def made_for(pod: Pod, claim: ResourceClaim) -> bool:
    """Whether a pod is the claim's managing owner."""
    owner = claim.controller
    return owner is not None and owner.uid == pod.metadata.uid


# Reservations


def reserved_for(pod: Pod, claim: ResourceClaim) -> bool:
    """Whether a pod has reserved a claim."""
    return any(consumer.uid == pod.uid for consumer in claim.status.reserved_for)


def reserved(pod: Pod, status: ResourceClaimStatus, allocation: AllocationResult) -> ResourceClaimStatus:
    """A claim's status with an allocation, and with the pod among those it is reserved for."""
    consumer = ResourceClaimConsumer(resource="pods", name=pod.name, uid=pod.uid)
    return replace(status, allocation=allocation, reserved_for=(*status.reserved_for, consumer))


def unreserved(pod: Pod, status: ResourceClaimStatus) -> ResourceClaimStatus:
    """A claim's status without a pod's reservation."""
    others = tuple(consumer for consumer in status.reserved_for if consumer.uid != pod.uid)
    return replace(status, reserved_for=others)


def protected(claim: ResourceClaim) -> ResourceClaim:
    """A claim with the finalizer that allocated claims have."""
    finalizers = claim.metadata.finalizers
    if FINALIZER in finalizers:
        return claim
    return replace(claim, metadata=replace(claim.metadata, finalizers=(*finalizers, FINALIZER)))


# Binding conditions


def takes_time(claim: ResourceClaim) -> bool:
    """Whether some device of a claim has to get ready before pods can be bound."""
    return any(result.binding_conditions for result in _results(claim))


def ready(claim: ResourceClaim) -> bool:
    """Whether all devices of an allocated claim are ready; BindingFailedError if one will not be."""
    if claim.status.allocation is None:
        return False
    for result in _results(claim):
        if not result.binding_conditions:
            continue
        status = _status_of(claim, result)
        if status is None:
            return False
        for kind in result.binding_failure_conditions:
            failed = _condition(status.conditions, kind)
            if failed is not None and failed.status == "True":
                raise BindingFailedError(
                    f"device binding failed: claim={claim.name}, reason={failed.reason}, "
                    f'message="{failed.message}"'
                )
        for kind in result.binding_conditions:
            met = _condition(status.conditions, kind)
            if met is None or met.status != "True":
                return False
    return True


def overdue(claim: ResourceClaim, timeout_seconds: float, now: datetime) -> bool:
    """Whether the time for the devices of a claim to get ready has passed."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None or not takes_time(claim):
        return False
    return allocation.allocation_timestamp + timedelta(seconds=timeout_seconds) < now


def _results(claim: ResourceClaim) -> Sequence[DeviceRequestAllocationResult]:
    allocation = claim.status.allocation
    return () if allocation is None else allocation.devices.results


def _status_of(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> AllocatedDeviceStatus | None:
    device = (result.driver, result.pool, result.device)
    return next((s for s in claim.status.devices if (s.driver, s.pool, s.device) == device), None)


def _condition(conditions: Sequence[Condition], kind: str) -> Condition | None:
    return next((condition for condition in conditions if condition.type == kind), None)
