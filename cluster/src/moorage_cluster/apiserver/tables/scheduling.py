"""Inputs of the scheduler: priorities, pod groups, and devices with the claims on them."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.tables.base import NAME_AND_AGE, Printer
from moorage_cluster.apiserver.tables.cells import NONE, ago, at, being_deleted, comma_separated, items, text
from moorage_cluster.apiserver.tables.columns import (
    AGED,
    NAMED,
    Columns,
    count_at,
    derived,
    flag_at,
    text_at,
    timed,
)


def _group_policy(group: Manifest) -> str:
    return "Basic" if at(group, "spec", "schedulingPolicy", "gang") is None else "Gang"


def _group_status(group: Manifest) -> str:
    conditions = {text(each, "type"): each for each in items(group, "status", "conditions")}
    if disrupted := conditions.get("DisruptionTarget"):
        return text(disrupted, "reason")
    scheduled = conditions.get("PodGroupInitiallyScheduled") or conditions.get("PodGroupScheduled")
    if scheduled is None:
        return "Pending"
    return "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"


def _group_workload(group: Manifest) -> str:
    if at(group, "spec", "workloadRef") is not None:
        return text(group, "spec", "workloadRef", "workloadName")
    if at(group, "spec", "podGroupTemplateRef") is not None:  # In v1.36.
        return text(group, "spec", "podGroupTemplateRef", "workload", "workloadName")
    return NONE


def _claim_state(claim: Manifest) -> str:
    states = ["deleted"] if being_deleted(claim) else []
    if at(claim, "status", "allocation") is not None:
        states.append("allocated")
        if items(claim, "status", "reservedFor"):
            states.append("reserved")
    elif not states:
        states.append("pending")
    return comma_separated(states)


def _time_tainted(rule: Manifest, now: datetime) -> str:
    added = at(rule, "spec", "taint", "timeAdded")
    return ago(added, now) if added else ""


PRINTERS: Final[dict[tuple[str, str], Printer]] = {
    ("scheduling.k8s.io", "PriorityClass"): Columns(
        NAMED,
        count_at("Value", "value", "The priority of its pods."),
        flag_at("Global-Default", "globalDefault", "Whether pods without a class are of this one."),
        AGED,
        text_at("PreemptionPolicy", "preemptionPolicy", "Whether its pods may push others out."),
    ),
    ("scheduling.k8s.io", "PodGroup"): Columns(
        NAMED,
        derived("Policy", _group_policy, "Whether its pods are placed together or one by one."),
        derived("Workload", _group_workload, "The workload that it is a part of."),
        derived("Status", _group_status, "Whether it is placed."),
        AGED,
    ),
    ("scheduling.k8s.io", "CompositePodGroup"): Columns(
        NAMED,
        derived("Policy", _group_policy, "Whether its groups are placed together or one by one."),
        derived("Workload", _group_workload, "The workload that it is a part of."),
        AGED,
    ),
    ("scheduling.k8s.io", "Workload"): NAME_AND_AGE,
    ("resource.k8s.io", "DeviceClass"): NAME_AND_AGE,
    ("resource.k8s.io", "DeviceTaintRule"): Columns(
        NAMED,
        text_at("Key", "spec.taint.key", "The key of the taint."),
        text_at("Value", "spec.taint.value", "The value of the taint."),
        text_at("Effect", "spec.taint.effect", "What the taint does to claims that do not tolerate it."),
        timed("TimeAdded", _time_tainted, "How long ago the taint was added."),
        AGED,
    ),
    ("resource.k8s.io", "ResourceClaimTemplate"): NAME_AND_AGE,
    ("resource.k8s.io", "ResourceClaim"): Columns(
        NAMED, derived("State", _claim_state, "Whether it has its devices, and whether pods use them."), AGED
    ),
    ("resource.k8s.io", "ResourceSlice"): Columns(
        NAMED,
        text_at("Node", "spec.nodeName", "The node that has the devices."),
        text_at("Driver", "spec.driver", "The driver that offers the devices."),
        text_at("Pool", "spec.pool.name", "The pool that the devices belong to."),
        AGED,
    ),
}
"""The tables of this family, by group and kind."""
