"""The Workload and the PodGroup of a job, through which its pods are scheduled together.

Each job that no other controller owns gets both before its first pod, as with the feature gate
WorkloadWithJob of v1.37. A job that another controller owns gets a group only where an annotation names a
template of that controller's Workload. Jobs whose template names a group itself are left alone.
"""

from __future__ import annotations

import logging
from typing import Final

from moorage.api.conditions import find_condition
from moorage.api.manifests import Manifest, annotations_of, status_of
from moorage.client.kinds import JOB
from moorage.http.errors import RequestError
from moorage_cluster.controllers.cluster import Cluster, controller_of, owner_reference
from moorage_cluster.controllers.pod_groups import POD_GROUP, WORKLOAD
from moorage_cluster.controllers.templates import content_hash

_TEMPLATE_NAME: Final = "scheduling.k8s.io/group-template-name"
_MAX_NAME_LENGTH: Final = 253
_COPIED: Final = (
    "schedulingPolicy", "schedulingConstraints", "disruptionMode", "priorityClassName", "resourceClaims",
    "priority",
)  # fmt: skip
"""The fields of a template that its groups have as well."""

log = logging.getLogger(__name__)


class JobGroups:
    """Creates the groups of jobs, and keeps the minimum of a gang."""

    def __init__(self, cluster: Cluster, component: str) -> None:
        self._cluster = cluster
        self._component = component
        self._workloads = cluster.owned(WORKLOAD)
        self._groups = cluster.owned(POD_GROUP)

    async def group_of(self, job: Manifest, pods: list[Manifest]) -> Manifest | None:
        """The group that new pods of a job belong to, created with the job's first pods."""
        if "schedulingGroup" in job["spec"]["template"]["spec"]:
            return None
        is_new = _is_new(job, pods)
        if (owner := controller_of(job)) is None:
            return await self._own_group(job, is_new)
        if _TEMPLATE_NAME in annotations_of(job):
            return await self._delegated_group(job, owner, is_new)
        return None

    async def _own_group(self, job: Manifest, is_new: bool) -> Manifest | None:
        workload = await self._workload(job, is_new)
        if workload is None:
            return None
        template, *others = workload["spec"].get("podGroupTemplates") or [{}]
        if others or not template:
            key = f"{job['metadata']['namespace']}/{job['metadata']['name']}"
            log.warning("workload of job %s: expected exactly one PodGroupTemplate", key)
            return None
        group = await self._group(job, workload, template, is_new, owners=[_reference(workload)])
        wanted = _template(job)["schedulingPolicy"].get("gang")
        if wanted is not None:
            await self._keep_minimum(workload, template, group, wanted["minCount"])
        return group

    async def _delegated_group(self, job: Manifest, owner: Manifest, is_new: bool) -> Manifest | None:
        workload = next(filter(lambda each: _is_of(each, owner), self._in_namespace(job)), None)
        name = annotations_of(job)[_TEMPLATE_NAME]
        templates = (workload or {"spec": {}})["spec"].get("podGroupTemplates") or ()
        template = next((each for each in templates if not name or each["name"] == name), None)
        if workload is None or template is None:
            return None
        group = await self._group(job, workload, template, is_new, owners=[])
        gang = template["schedulingPolicy"].get("gang")
        if gang is not None:
            await self._keep_group_minimum(group, gang["minCount"])
        return group

    def _in_namespace(self, job: Manifest) -> list[Manifest]:
        return self._cluster.within(WORKLOAD).get(job["metadata"]["namespace"])

    async def _workload(self, job: Manifest, is_new: bool) -> Manifest | None:
        meta = job["metadata"]
        found = [each for each in self._workloads.get(meta["uid"]) if _is_of(each, owner_reference(job))]
        if len(found) > 1:
            log.warning("found %d Workloads of job %s/%s", len(found), meta["namespace"], meta["name"])
        if found or not is_new:
            return found[0] if len(found) == 1 else None
        try:
            made = await self._cluster.create(WORKLOAD, meta["namespace"], _new_workload(job))
        except RequestError as error:
            why = f"Failed to create Workload for Job {meta['name']}: {error}"
            await self._cluster.record_event(job, "Warning", "FailedWorkloadCreate", why, self._component)
            raise
        message = f"Created Workload {made['metadata']['name']} for Job {meta['name']}"
        await self._cluster.record_event(job, "Normal", "WorkloadCreated", message, self._component)
        return made

    async def _group(
        self, job: Manifest, workload: Manifest, template: Manifest, is_new: bool, owners: list[Manifest]
    ) -> Manifest | None:
        meta, name = job["metadata"], workload["metadata"]["name"]
        found = [
            each
            for each in self._groups.get(meta["uid"])
            if (each["spec"].get("workloadRef") or {}).get("workloadName") == name
        ]
        if found or not is_new:
            return found[0] if len(found) == 1 else None
        group = _new_group(workload, template, [owner_reference(job), *owners])
        made = await self._cluster.create(POD_GROUP, meta["namespace"], group)
        message = f"Created PodGroup {made['metadata']['name']} for Job {meta['name']}"
        await self._cluster.record_event(job, "Normal", "PodGroupCreated", message, self._component)
        return made

    async def _keep_minimum(
        self, workload: Manifest, template: Manifest, group: Manifest | None, count: int
    ) -> None:
        """Let a gang follow the minimum of its job."""
        gang = template["schedulingPolicy"].get("gang")
        if gang is not None and gang["minCount"] != count:
            changed = {**template, "schedulingPolicy": {"gang": {"minCount": count}}}
            await self._cluster.patch(WORKLOAD, workload, {"spec": {"podGroupTemplates": [changed]}})
        await self._keep_group_minimum(group, count)

    async def _keep_group_minimum(self, group: Manifest | None, count: int) -> None:
        gang = group["spec"]["schedulingPolicy"].get("gang") if group else None
        if group and gang and gang["minCount"] != count:
            patch = {"spec": {"schedulingPolicy": {"gang": {"minCount": count}}}}
            await self._cluster.patch(POD_GROUP, group, patch)


def join_group(pod: Manifest, group: Manifest) -> None:
    """Make a new pod a member of a group.

    The group does not own it: a pod of a deleted job would wait for its group, which waits for its pods.
    """
    pod["spec"]["schedulingGroup"] = {"podGroupName": group["metadata"]["name"]}


def _reference(obj: Manifest) -> Manifest:
    """An owner reference that is not the controller's."""
    meta = obj["metadata"]
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": meta["name"], "uid": meta["uid"]}


def _is_new(job: Manifest, pods: list[Manifest]) -> bool:
    """Whether nothing has happened to a job: later it is too late for a group."""
    status = status_of(job)
    began = pods or any(status.get(key) for key in ("startTime", "succeeded", "failed"))
    return not began and find_condition(status, "Suspended") is None


def _is_of(workload: Manifest, owner: Manifest) -> bool:
    """Whether a workload names an object as its controller."""
    controller = workload["spec"].get("controllerRef") or {}
    wanted = (owner["apiVersion"].rpartition("/")[0], owner["kind"], owner["name"])
    return (controller.get("apiGroup", ""), controller.get("kind"), controller.get("name")) == wanted


def _template(job: Manifest) -> Manifest:
    """The template of a job's group: basic, or as the job says."""
    given = job["spec"].get("scheduling") or {}
    policy = given.get("schedulingPolicy") or {"basic": {}}
    if "gang" in policy:
        count = policy["gang"].get("minCount") or max(1, job["spec"].get("parallelism", 1))
        policy = {"gang": {"minCount": count}}
    template: Manifest = {"name": f"{job['metadata']['name']}-pgt-0", "schedulingPolicy": policy}
    if class_name := job["spec"]["template"]["spec"].get("priorityClassName"):
        template["priorityClassName"] = class_name
    if (given.get("schedulingConstraints") or {}).get("topology"):
        template["schedulingConstraints"] = given["schedulingConstraints"]
    for key in ("disruptionMode", "resourceClaims"):
        if given.get(key):
            template[key] = given[key]
    return template


def _new_workload(job: Manifest) -> Manifest:
    meta, owner = job["metadata"], owner_reference(job)
    suffix = f"-{content_hash(meta['uid'])}"
    controller = {"apiGroup": JOB.group, "kind": owner["kind"], "name": owner["name"]}
    return {
        "apiVersion": WORKLOAD.api_version,
        "kind": WORKLOAD.name,
        "metadata": {
            "name": f"{meta['name'][: _MAX_NAME_LENGTH - len(suffix)]}{suffix}",
            "ownerReferences": [owner],
        },
        "spec": {"controllerRef": controller, "podGroupTemplates": [_template(job)]},
    }


def _new_group(workload: Manifest, template: Manifest, owners: list[Manifest]) -> Manifest:
    workload_name = workload["metadata"]["name"]
    suffix = f"-{content_hash([workload_name, template['name']])}"
    spec: Manifest = {key: template[key] for key in _COPIED if key in template}
    spec["workloadRef"] = {"workloadName": workload_name, "templateName": template["name"]}
    prefix = f"{workload_name}-{template['name']}"
    return {
        "apiVersion": POD_GROUP.api_version,
        "kind": POD_GROUP.name,
        "metadata": {
            "name": f"{prefix[: _MAX_NAME_LENGTH - len(suffix)]}{suffix}",
            "ownerReferences": owners,
        },
        "spec": spec,
    }
