"""Inputs of the scheduler: priorities, pod groups, and devices with the claims on them."""

from __future__ import annotations

from typing import Final

from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.tables.base import NAME_AND_AGE, Printer
from moorage_cluster.apiserver.tables.cells import NONE, at, being_deleted, comma_separated, items, text
from moorage_cluster.apiserver.tables.columns import AGED, NAMED, Columns, count_at, derived, flag_at, text_at


def _group_policy(group: Manifest) -> str:
    return "Basic" if at(group, "spec", "schedulingPolicy", "gang") is None else "Gang"


def _group_status(group: Manifest) -> str:
    conditions = {text(each, "type"): each for each in items(group, "status", "conditions")}
    if disrupted := conditions.get("DisruptionTarget"):
        return text(disrupted, "reason")
    if scheduled := conditions.get("PodGroupScheduled"):
        return "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"
    return "Pending"


def _group_workload(group: Manifest) -> str:
    if at(group, "spec", "podGroupTemplateRef") is None:
        return NONE
    return text(group, "spec", "podGroupTemplateRef", "workload", "workloadName")


def _claim_state(claim: Manifest) -> str:
    states = ["deleted"] if being_deleted(claim) else []
    if at(claim, "status", "allocation") is not None:
        states.append("allocated")
        if items(claim, "status", "reservedFor"):
            states.append("reserved")
    elif not states:
        states.append("pending")
    return comma_separated(states)


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
    ("scheduling.k8s.io", "Workload"): NAME_AND_AGE,
    ("resource.k8s.io", "DeviceClass"): NAME_AND_AGE,
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
