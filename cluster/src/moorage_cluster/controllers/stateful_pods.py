"""The pods of a StatefulSet: each has an ordinal, which determines its name, its labels and its claims."""

from __future__ import annotations

import re
from typing import Final

from moorage.api.manifests import Manifest, copy, labels_of
from moorage_cluster.controllers.pods import pod_from_template
from moorage_cluster.controllers.revisions import REVISION_LABEL, name_of, template_of

POD_NAME_LABEL: Final = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL: Final = "apps.kubernetes.io/pod-index"
_NAME_RE: Final = re.compile(r"(.*)-([0-9]+)", re.ASCII)
_MAX_ORDINAL: Final = 2**31 - 1


def is_member(stateful_set: Manifest, pod: Manifest) -> bool:
    """Whether a pod's name belongs to a set."""
    return parent_name(name_of(pod)) == name_of(stateful_set)


def parent_name(pod_name: str) -> str:
    """The name of the set in a pod's name; empty if there is none."""
    match = _NAME_RE.fullmatch(pod_name)
    return match[1] if match else ""


def ordinal_of(pod: Manifest) -> int:
    """A pod's ordinal; -1 if its name has none."""
    match = _NAME_RE.fullmatch(name_of(pod))
    number = int(match[2]) if match else -1
    return number if number <= _MAX_ORDINAL else -1


def ordinals(stateful_set: Manifest) -> range:
    """The ordinals of a set's desired pods."""
    spec = stateful_set["spec"]
    start = int((spec.get("ordinals") or {}).get("start", 0))
    return range(start, start + int(spec.get("replicas", 1)))


def revision_name(pod: Manifest) -> str:
    """The name of a pod's revision."""
    return labels_of(pod).get(REVISION_LABEL, "")


def identity_labels(stateful_set: Manifest, ordinal: int) -> dict[str, str]:
    """The labels that identify a pod within its set."""
    return {POD_NAME_LABEL: f"{name_of(stateful_set)}-{ordinal}", POD_INDEX_LABEL: str(ordinal)}


def new_pod(stateful_set: Manifest, revision: Manifest, ordinal: int) -> Manifest:
    """A set's pod of an ordinal, from a revision."""
    pod = pod_from_template(stateful_set, template_of(revision))
    meta, spec = pod["metadata"], pod["spec"]
    meta["name"] = f"{name_of(stateful_set)}-{ordinal}"
    del meta["generateName"]
    meta["labels"] |= identity_labels(stateful_set, ordinal) | {REVISION_LABEL: name_of(revision)}
    spec["hostname"] = meta["name"]
    spec["subdomain"] = stateful_set["spec"].get("serviceName") or ""
    claims = {
        name: {"name": name, "persistentVolumeClaim": {"claimName": name_of(each)}}
        for name, each in claims_for(stateful_set, ordinal).items()
    }
    others = [volume for volume in spec.get("volumes") or [] if volume["name"] not in claims]
    if claims or others:
        spec["volumes"] = [*claims.values(), *others]
    return pod


def claims_for(stateful_set: Manifest, ordinal: int) -> dict[str, Manifest]:
    """The claims of the pod of an ordinal, by volume name."""
    selected = (stateful_set["spec"].get("selector") or {}).get("matchLabels") or {}
    found = {}
    for template in stateful_set["spec"].get("volumeClaimTemplates") or []:
        claim: Manifest = copy(template)
        claim.pop("status", None)
        volume = name_of(template)
        meta = claim["metadata"]
        meta["name"] = f"{volume}-{name_of(stateful_set)}-{ordinal}"
        meta["namespace"] = stateful_set["metadata"]["namespace"]
        meta["labels"] = {**(meta.get("labels") or {}), **selected}
        found[volume] = {**claim, "apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    return found
