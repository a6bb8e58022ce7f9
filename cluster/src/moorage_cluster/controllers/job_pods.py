"""The pods of a job: their creation, and the finalizer that keeps them until they are counted."""

from __future__ import annotations

from typing import Final

from moorage.api.conditions import find_condition
from moorage.api.manifests import Manifest, status_of
from moorage.client.kinds import POD
from moorage.http.errors import RequestError
from moorage_cluster.controllers.cluster import Cluster
from moorage_cluster.controllers.job_indexes import INDEX
from moorage_cluster.controllers.pods import pod_from_template

FINALIZER: Final = "batch.kubernetes.io/job-tracking"
FAILURE_COUNT: Final = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURE_COUNT: Final = "batch.kubernetes.io/job-index-ignored-failure-count"
_INDEX_VARIABLE: Final = "JOB_COMPLETION_INDEX"
_MAX_PREFIX_LENGTH: Final = 58
_OUR_NAME: Final = "kubernetes.io/job-controller"


def is_tracked(pod: Manifest) -> bool:
    """Whether a pod has the tracking finalizer."""
    return FINALIZER in (pod["metadata"].get("finalizers") or [])


def is_finished_job(job: Manifest) -> bool:
    """Whether a job has completed or failed."""
    return finished_condition(job) is not None


def finished_condition(job: Manifest) -> Manifest | None:
    """The Complete or Failed condition of a job, if it has finished."""
    for type in ("Complete", "Failed"):
        found = find_condition(status_of(job), type)
        if found is not None and found["status"] == "True":
            return found
    return None


def is_ours(job: Manifest) -> bool:
    """Whether a job is managed by this controller and not by an external one."""
    return job["spec"].get("managedBy") in (None, _OUR_NAME)


async def untrack(cluster: Cluster, pod: Manifest) -> None:
    """Remove the tracking finalizer from a pod that is counted, or never will be."""
    if not is_tracked(pod):
        return
    change = {"metadata": {"uid": pod["metadata"]["uid"], "$deleteFromPrimitiveList/finalizers": [FINALIZER]}}
    try:
        await cluster.patch(POD, pod, change, "strategic")
    except RequestError as error:
        if not (error.is_not_found or error.is_conflict):
            raise


def job_pod(job: Manifest, index: int | None, annotations: dict[str, str]) -> Manifest:
    """A new pod of a job, for an index if the job is indexed."""
    pod = pod_from_template(job, job["spec"]["template"])
    meta = pod["metadata"]
    meta["finalizers"] = [
        *(each for each in meta.get("finalizers") or [] if each != FINALIZER),
        FINALIZER,
    ]
    if index is None:
        return pod
    name = job["metadata"]["name"]
    suffix = f"-{index}-"
    meta["generateName"] = f"{name[: _MAX_PREFIX_LENGTH - len(suffix)]}{suffix}"
    meta["annotations"] |= {INDEX: str(index), **annotations}
    meta["labels"][INDEX] = str(index)
    spec = pod["spec"]
    spec["hostname"] = f"{name}-{index}"
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
    for container in [*(spec.get("initContainers") or []), *spec["containers"]]:
        variables = container.get("env") or []
        if all(each["name"] != _INDEX_VARIABLE for each in variables):
            container["env"] = [*variables, {"name": _INDEX_VARIABLE, "valueFrom": source}]
    return pod
