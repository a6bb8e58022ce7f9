"""Workloads: deployments and the like, jobs, and the disruption budgets of their pods."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from moorage.api.manifests import Manifest
from moorage.api.text import qualified
from moorage_cluster.apiserver.tables.base import Printer, TableColumn
from moorage_cluster.apiserver.tables.cells import (
    INVALID,
    NONE,
    UNSET,
    ago,
    at,
    being_deleted,
    comma_separated,
    has_condition,
    items,
    labels_cell,
    mapping,
    number,
    selector_cell,
    text,
)
from moorage_cluster.apiserver.tables.columns import (
    AGED,
    NAMED,
    Columns,
    Shown,
    count_at,
    derived,
    name_of,
    size_of,
    text_at,
    timed,
)

_JOB_STATES: Final = ("Suspended", "FailureTarget", "SuccessCriteriaMet")


def _containers(template: str, *, wide: bool = True) -> tuple[Shown, Shown]:
    """The names and images of the containers in the pod template at a dotted path."""
    path = [*template.split("."), "spec", "containers"]

    def all_of(field: str, obj: Manifest) -> str:
        return comma_separated(text(each, field) for each in items(obj, *path))

    return (
        derived("Containers", lambda obj: all_of("name", obj), "The containers of each pod.", wide=wide),
        derived("Images", lambda obj: all_of("image", obj), "The images they run.", wide=wide),
    )


def _selector(path: str = "spec.selector", **otherwise: str) -> Shown:
    fields = path.split(".")
    return derived(
        "Selector",
        lambda obj: selector_cell(at(obj, *fields), **otherwise),
        "Which pods count as its own.",
        wide=True,
    )


def _ready_of_desired(obj: Manifest) -> str:
    return f"{number(obj, 'status', 'readyReplicas')}/{number(obj, 'spec', 'replicas')}"


_READY_OF_DESIRED = derived("Ready", _ready_of_desired, "How many of the wanted pods are ready.")
_REPLICAS = (
    count_at("Desired", "spec.replicas", "How many pods are wanted."),
    count_at("Current", "status.replicas", "How many pods there are."),
    count_at("Ready", "status.readyReplicas", "How many pods are ready."),
)


def _job_status(job: Manifest) -> str:
    if has_condition(job, "Complete"):
        return "Complete"
    if has_condition(job, "Failed"):
        return "Failed"
    if being_deleted(job):
        return "Terminating"
    return next((state for state in _JOB_STATES if has_condition(job, state)), "Running")


def _job_completions(job: Manifest) -> str:
    succeeded = number(job, "status", "succeeded")
    if at(job, "spec", "completions") is not None:
        return f"{succeeded}/{number(job, 'spec', 'completions')}"
    parallelism = number(job, "spec", "parallelism")
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(job: Manifest, now: datetime) -> str:
    started, completed = at(job, "status", "startTime"), at(job, "status", "completionTime")
    if not started:
        return ""
    try:
        return ago(started, datetime.fromisoformat(completed) if completed else now)
    except (ValueError, TypeError):
        return INVALID


def _suspended(job: Manifest) -> str:
    value = at(job, "spec", "suspend")
    return str(value) if isinstance(value, bool) else UNSET


def _last_schedule(job: Manifest, now: datetime) -> str:
    moment = at(job, "status", "lastScheduleTime")
    return ago(moment, now) if moment else NONE


def _controller(revision: Manifest) -> str:
    for owner in items(revision, "metadata", "ownerReferences"):
        if owner.get("controller") is True:
            group, _, _ = text(owner, "apiVersion").rpartition("/")
            kind = qualified(text(owner, "kind"), group).lower()
            return f"{kind}/{text(owner, 'name')}" if kind else text(owner, "name")
    return NONE


def _how_many(field: str) -> Callable[[Manifest], str]:
    """A cell with a number or a share of pods."""

    def cell(budget: Manifest) -> str:
        value = at(budget, "spec", field)
        return "N/A" if value is None else str(value)

    return cell


_APPS: Final[dict[tuple[str, str], Printer]] = {
    ("apps", "Deployment"): Columns(
        NAMED,
        _READY_OF_DESIRED,
        count_at("Up-to-date", "status.updatedReplicas", "Pods of the newest template.", type="string"),
        count_at("Available", "status.availableReplicas", "Pods ready for long enough.", type="string"),
        AGED,
        *_containers("spec.template"),
        _selector(nothing="", wrong=INVALID),
    ),
    ("apps", "ReplicaSet"): Columns(NAMED, *_REPLICAS, AGED, *_containers("spec.template"), _selector()),
    ("apps", "StatefulSet"): Columns(NAMED, _READY_OF_DESIRED, AGED, *_containers("spec.template")),
    ("apps", "DaemonSet"): Columns(
        NAMED,
        count_at("Desired", "status.desiredNumberScheduled", "How many nodes should run its pod."),
        count_at("Current", "status.currentNumberScheduled", "How many of these nodes run it."),
        count_at("Ready", "status.numberReady", "How many nodes have a ready pod."),
        count_at("Up-to-date", "status.updatedNumberScheduled", "Nodes with a pod of the newest template."),
        count_at("Available", "status.numberAvailable", "Nodes with a pod ready for long enough."),
        derived(
            "Node Selector",
            lambda obj: labels_cell(mapping(obj, "spec", "template", "spec", "nodeSelector")),
            "The labels that its nodes must have.",
        ),
        AGED,
        *_containers("spec.template"),
        _selector(),
    ),
    ("apps", "ControllerRevision"): Columns(
        NAMED,
        derived("Controller", _controller, "Whose state this is."),
        count_at("Revision", "revision", "Where it stands in the history.", type="string"),
        AGED,
    ),
}

_BATCH: Final[dict[tuple[str, str], Printer]] = {
    ("batch", "Job"): Columns(
        NAMED,
        derived("Status", _job_status, "How the job is doing."),
        derived("Completions", _job_completions, "How many of the needed pods have succeeded."),
        timed("Duration", _job_duration, "How long the job ran, or has been running."),
        AGED,
        *_containers("spec.template"),
        _selector(),
    ),
    ("batch", "CronJob"): Columns(
        NAMED,
        text_at("Schedule", "spec.schedule", "When jobs start, in cron's notation."),
        text_at("Timezone", "spec.timeZone", "The zone in which the schedule is read.", missing=NONE),
        derived("Suspend", _suspended, "Whether no more jobs are started.", type="boolean"),
        size_of("Active", "status.active", "How many of its jobs are running."),
        timed("Last Schedule", _last_schedule, "How long ago a job was last started."),
        AGED,
        *_containers("spec.jobTemplate.spec.template"),
        _selector("spec.jobTemplate.spec.selector"),
    ),
}

PRINTERS: Final[dict[tuple[str, str], Printer]] = {
    **_APPS,
    **_BATCH,
    ("", "PodTemplate"): Columns(
        NAMED,
        *_containers("template", wide=False),
        derived(
            "Pod Labels",
            lambda obj: labels_cell(mapping(obj, "template", "metadata", "labels")),
            "The labels of each pod.",
        ),
    ),
    ("", "ReplicationController"): Columns(
        NAMED,
        *_REPLICAS,
        AGED,
        *_containers("spec.template"),
        derived(
            "Selector",
            lambda obj: labels_cell(mapping(obj, "spec", "selector")),
            "Which pods count as its own.",
            wide=True,
        ),
    ),
    ("policy", "PodDisruptionBudget"): Columns(
        NAMED,
        derived("Min Available", _how_many("minAvailable"), "How many pods must stay available."),
        derived("Max Unavailable", _how_many("maxUnavailable"), "How many pods may be unavailable."),
        count_at("Allowed Disruptions", "status.disruptionsAllowed", "How many pods may be evicted now."),
        AGED,
    ),
    ("autoscaling", "Scale"): Columns(
        Shown(TableColumn("Name", description="The name of what is scaled."), lambda obj, _: name_of(obj)),
        count_at("Desired", "spec.replicas", "How many pods are wanted."),
        count_at("Available", "status.replicas", "How many pods there are."),
        AGED,
    ),
}
"""The tables of this family, by group and kind."""
