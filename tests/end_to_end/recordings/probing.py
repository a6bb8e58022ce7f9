"""Finding out whether the scheduler has seen what was changed.

Each kind of objects comes to it by a watch of its own, so that a pod could overtake a node or a claim. Probes
are pods that are refused for another reason once the scheduler has seen the last change of a kind; within a
kind, changes come in order.
"""

from __future__ import annotations

from itertools import count
from typing import Final

from moorage.api.manifests import Manifest
from moorage.client.kinds import RESOURCE_CLAIM
from tests.apiserver.client import pod as new_pod
from tests.end_to_end.recordings.cluster import Found, RecordedCluster, key_of
from tests.end_to_end.recordings.reading import refusal_of

_SEEN: Final = "seen"
_MORE_THAN_ANY_NODE_HAS: Final = {"requests": {"cpu": "1M"}}
_numbers = count()


async def probe_nodes(cluster: RecordedCluster, node: Found) -> None:
    """Returns once the scheduler has seen all that has happened to nodes; a label is put on one of them.

    The pod can only go to the node with the label, and is too big for it.
    """
    name = f"probe-{next(_numbers)}"
    await cluster.label(node, **{_SEEN: name})
    pod = new_pod(name, nodeSelector={_SEEN: name}, tolerations=[{"operator": "Exists"}])
    pod["spec"]["containers"][0]["resources"] = _MORE_THAN_ANY_NODE_HAS
    await _until_refused(cluster, pod, "Insufficient cpu")


async def probe_claims(cluster: RecordedCluster) -> None:
    """Returns once the scheduler has seen all that has happened to claims for devices.

    The pod uses a new claim for devices of a class that does not exist.
    """
    name = f"probe-{next(_numbers)}"
    request = {"name": "none", "exactly": {"deviceClassName": name, "count": 1}}
    claim = {
        "apiVersion": RESOURCE_CLAIM.api_version,
        "kind": RESOURCE_CLAIM.name,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [request]}},
    }
    await cluster.create(claim)
    pod = new_pod(name, resourceClaims=[{"name": name, "resourceClaimName": name}])
    await _until_refused(cluster, pod, f"device class {name} does not exist")
    await cluster.delete(RESOURCE_CLAIM, key_of(claim))


async def _until_refused(cluster: RecordedCluster, pod: Manifest, reason: str) -> None:
    stored = await cluster.create(pod)
    await cluster.until(
        f"{pod['metadata']['name']} is refused: {reason}",
        lambda: any(reason in refusal_of(state) for state in cluster.states(stored)),
    )
    await cluster.delete_pod(key_of(stored))
