"""Resource claims: created from templates for pods, reserved for pods bound without a scheduler, deallocated.

Two controllers: one reconciles pods and creates their claims, the other reconciles claims and removes
reservations of pods that no longer need them.
"""

from __future__ import annotations

from typing import Final

from moorage.api.manifests import Manifest, annotations_of, copy
from moorage.client.informer import EventType, Index
from moorage.client.kinds import POD, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE
from moorage.http.errors import RequestError
from moorage_cluster.controllers.cluster import Cluster, controller_of
from moorage_cluster.controllers.controller import Controller
from moorage_cluster.controllers.node_conditions import patch_pod_status
from moorage_cluster.controllers.pods import is_finished

COMPONENT: Final = "resource_claim"
POD_CLAIM: Final = "resource.kubernetes.io/pod-claim-name"
"""Annotation of a claim from a template: its name in the pod's spec."""
DELETE_PROTECTION: Final = "resource.kubernetes.io/delete-protection"
"""The finalizer of claims that may hold devices."""
_MAX_BASE_LENGTH: Final = 57
"""Maximum length of a generated name's base: leaves room for a hyphen and five random characters."""


class PodResourceClaims(Controller):
    """Reconciles pods that use claims."""

    name = "resourceclaim-controller"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._pods = cluster.informer(POD)
        self._claims = cluster.informer(RESOURCE_CLAIM)
        self._templates = cluster.informer(RESOURCE_CLAIM_TEMPLATE)
        self._owned = cluster.owned(RESOURCE_CLAIM)
        self._pods_by_claim = Index(self._pods, _claim_keys)
        self._pods_by_template = Index(self._pods, _template_keys)
        self.watch(POD, self._pod_changed)
        self.watch(RESOURCE_CLAIM, self._claim_changed)
        self.watch(RESOURCE_CLAIM_TEMPLATE, self._template_changed)

    def _pod_changed(self, type: EventType, pod: Manifest, before: Manifest | None) -> None:
        if pod["spec"].get("resourceClaims"):
            self._enqueue(pod)

    def _claim_changed(self, type: EventType, claim: Manifest, before: Manifest | None) -> None:
        for pod in self._pods_by_claim.get(_key(claim)):
            self._enqueue(pod)

    def _template_changed(self, type: EventType, template: Manifest, before: Manifest | None) -> None:
        for pod in self._pods_by_template.get(_key(template)):
            self._enqueue(pod)

    def _enqueue(self, pod: Manifest) -> None:
        self.enqueue(pod["metadata"]["namespace"], pod["metadata"]["name"])

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Create the claims of one pod."""
        pod = self._pods.get(namespace, name)
        if pod is None or "deletionTimestamp" in pod["metadata"] or is_finished(pod):
            return None
        made: dict[str, str] = {}
        for entry in pod["spec"].get("resourceClaims") or ():
            if entry.get("resourceClaimTemplateName") and not self._has_claim(pod, entry):
                made[entry["name"]] = await self._make(pod, entry)
        if made:
            statuses = [{"name": entry, "resourceClaimName": claim} for entry, claim in made.items()]
            pod = await patch_pod_status(self.cluster, pod, {"resourceClaimStatuses": statuses})
        if pod["spec"].get("nodeName"):
            await self._reserve(pod)
        return None

    def _has_claim(self, pod: Manifest, entry: Manifest) -> bool:
        """Whether a pod's claim was created, or does not have to be."""
        known = _status_of(pod, entry)
        if known is None:
            return False
        name = known.get("resourceClaimName")
        if not name:
            return True
        claim = self._claims.get(pod["metadata"]["namespace"], name)
        return claim is not None and _is_made_for(claim, pod)

    async def _make(self, pod: Manifest, entry: Manifest) -> str:
        """The name of a claim for a pod: an existing one, or a new one."""
        for claim in self._owned.get(pod["metadata"]["uid"]):
            if annotations_of(claim).get(POD_CLAIM) == entry["name"]:
                return str(claim["metadata"]["name"])
        namespace, template_name = pod["metadata"]["namespace"], entry["resourceClaimTemplateName"]
        template = self._templates.get(namespace, template_name)
        if template is None:
            missing = f'resourceclaimtemplate.resource.k8s.io "{template_name}" not found'
            problem = f'resource claim template "{template_name}": {missing}'
            await self._record_event(pod, entry, problem)
            raise RequestError(404, "NotFound", problem)
        try:
            made = await self.cluster.create(RESOURCE_CLAIM, namespace, _claim(pod, entry, template))
        except RequestError as error:
            await self._record_event(pod, entry, f"create ResourceClaim : {error.message}")
            raise
        return str(made["metadata"]["name"])

    async def _record_event(self, pod: Manifest, entry: Manifest, problem: str) -> None:
        message = f"PodResourceClaim {entry['name']}: {problem}"
        await self.cluster.record_event(pod, "Warning", "FailedResourceClaimCreation", message, COMPONENT)

    async def _reserve(self, pod: Manifest) -> None:
        """Reserve allocated claims for a pod that was bound without a scheduler."""
        meta = pod["metadata"]
        for entry in pod["spec"].get("resourceClaims") or ():
            name = _claim_name(pod, entry)
            claim = self._claims.get(meta["namespace"], name) if name else None
            if claim is None or (entry.get("resourceClaimTemplateName") and not _is_made_for(claim, pod)):
                continue
            status = claim.get("status") or {}
            holders = status.get("reservedFor") or []
            if status.get("allocation") and all(each["uid"] != meta["uid"] for each in holders):
                new = copy(claim)
                holder = {"resource": "pods", "name": meta["name"], "uid": meta["uid"]}
                new["status"]["reservedFor"] = [*holders, holder]
                await self.cluster.update(RESOURCE_CLAIM, new, "status")


class ResourceClaimRelease(Controller):
    """Reconciles claims: removes reservations of finished consumers, and deallocates claims without any."""

    name = "resourceclaim-release-controller"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._pods = cluster.informer(POD)
        self._claims = cluster.informer(RESOURCE_CLAIM)
        self.watch(RESOURCE_CLAIM)
        self.watch(POD, self._pod_changed)

    def _pod_changed(self, type: EventType, pod: Manifest, before: Manifest | None) -> None:
        if type == "DELETED" or _is_done(pod):
            namespace = pod["metadata"]["namespace"]
            for name in _claim_names(pod):
                self.enqueue(namespace, name)
            extended = (pod.get("status") or {}).get("extendedResourceClaimStatus")
            if extended:
                self.enqueue(namespace, extended["resourceClaimName"])

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Remove the reservations of one claim that are no longer needed."""
        claim = self._claims.get(namespace, name)
        if claim is None:
            return None
        holders = (claim.get("status") or {}).get("reservedFor") or []
        left = [each for each in holders if await self._is_still_reserved(claim, each)]
        is_protected = DELETE_PROTECTION in (claim["metadata"].get("finalizers") or ())
        is_terminating = "deletionTimestamp" in claim["metadata"]
        if len(left) < len(holders):
            claim = await self._keep_holders(claim, left, give_back=is_protected and not left)
        if is_protected and not left and (holders or is_terminating):
            await self._unprotect(claim)
        elif not left:
            await self._delete_unused(claim)
        return None

    async def _is_still_reserved(self, claim: Manifest, holder: Manifest) -> bool:
        if holder.get("apiGroup") or holder["resource"] != "pods":
            return True  # Not a pod: only its own controller can release the claim.
        namespace = claim["metadata"]["namespace"]
        pod = self._pods.get(namespace, holder["name"])
        if pod is None:
            # The informer may not have seen the pod yet: a live read decides.
            try:
                pod = await self.cluster.client.get(POD, namespace, holder["name"])
            except RequestError as error:
                if not error.is_not_found:
                    raise
                return False
        return pod["metadata"]["uid"] == holder["uid"] and not _is_done(pod)

    async def _keep_holders(self, claim: Manifest, holders: list[Manifest], *, give_back: bool) -> Manifest:
        new = copy(claim)
        new["status"]["reservedFor"] = holders
        if give_back:
            new["status"].pop("allocation", None)
        return await self.cluster.update(RESOURCE_CLAIM, new, "status")

    async def _unprotect(self, claim: Manifest) -> None:
        """Deallocate a claim and remove its finalizer, so that it can be deleted or allocated again."""
        if (claim.get("status") or {}).get("allocation"):
            claim = await self._keep_holders(claim, [], give_back=True)
        new = copy(claim)
        new["metadata"]["finalizers"] = [
            each for each in claim["metadata"].get("finalizers") or () if each != DELETE_PROTECTION
        ]
        await self.cluster.update(RESOURCE_CLAIM, new)

    async def _delete_unused(self, claim: Manifest) -> None:
        """Delete a claim that was created for a pod once the pod has finished, even if it still exists."""
        owner = controller_of(claim)
        if not owner or (owner["apiVersion"], owner["kind"]) != ("v1", "Pod"):
            return
        pod = self._pods.get(claim["metadata"]["namespace"], owner["name"])
        is_over = pod is not None and (pod["metadata"]["uid"] != owner["uid"] or _is_done(pod))
        if is_over and "deletionTimestamp" not in claim["metadata"]:
            await self.cluster.delete(RESOURCE_CLAIM, claim)


def _claim(pod: Manifest, entry: Manifest, template: Manifest) -> Manifest:
    given = template["spec"].get("metadata") or {}
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": pod["metadata"]["name"],
        "uid": pod["metadata"]["uid"],
        "controller": True,
    }
    return {
        "apiVersion": RESOURCE_CLAIM.api_version,
        "kind": RESOURCE_CLAIM.name,
        "metadata": {
            "generateName": _base_name(pod["metadata"]["name"], entry["name"]),
            "labels": given.get("labels") or {},
            "annotations": {**(given.get("annotations") or {}), POD_CLAIM: entry["name"]},
            "ownerReferences": [owner],
        },
        "spec": template["spec"]["spec"],
    }


def _base_name(pod_name: str, entry_name: str) -> str:
    """The prefix of a claim's name; both parts of a long one are shortened."""
    base = f"{pod_name}-{entry_name}-"
    if len(base) <= _MAX_BASE_LENGTH:
        return base
    cut = pod_name[: len(pod_name) * _MAX_BASE_LENGTH // len(base)]
    return f"{cut}-{entry_name[: len(entry_name) * _MAX_BASE_LENGTH // len(base)]}"


def _status_of(pod: Manifest, entry: Manifest) -> Manifest | None:
    statuses = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    return next((each for each in statuses if each["name"] == entry["name"]), None)


def _claim_name(pod: Manifest, entry: Manifest) -> str:
    """The name of the claim for a pod's entry; empty if there is none yet, or none is needed."""
    if entry.get("resourceClaimName"):
        return str(entry["resourceClaimName"])
    return str((_status_of(pod, entry) or {}).get("resourceClaimName") or "")


def _claim_names(pod: Manifest) -> list[str]:
    names = (_claim_name(pod, entry) for entry in pod["spec"].get("resourceClaims") or ())
    return [name for name in names if name]


def _claim_keys(pod: Manifest) -> list[str]:
    return [f"{pod['metadata']['namespace']}/{name}" for name in _claim_names(pod)]


def _template_keys(pod: Manifest) -> list[str]:
    entries = pod["spec"].get("resourceClaims") or ()
    names = {entry.get("resourceClaimTemplateName") for entry in entries} - {None}
    return [f"{pod['metadata']['namespace']}/{name}" for name in names]


def _key(obj: Manifest) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"


def _is_made_for(claim: Manifest, pod: Manifest) -> bool:
    owner = controller_of(claim)
    return owner is not None and owner["uid"] == pod["metadata"]["uid"]


def _is_done(pod: Manifest) -> bool:
    """Whether a pod has finished, or will never start."""
    return is_finished(pod) or ("deletionTimestamp" in pod["metadata"] and not pod["spec"].get("nodeName"))
