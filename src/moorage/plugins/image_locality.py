"""ImageLocality: prefer nodes that have the pod's images, the more so the larger and more common they are."""

from __future__ import annotations

import numpy as np

from moorage.api.pod import Pod
from moorage.client.kinds import Kind
from moorage.cluster.object_tables import Objects
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.dependencies import DependsOn
from moorage.framework.interface.extension_points import MAX_SCORE, Scores, uniform_scores
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.nodes import Nodes

_MEGABYTE = 1024 * 1024
MIN_BYTES = 23 * _MEGABYTE
"""Minimum size of images on a node that gives a score, in bytes."""
MAX_BYTES_PER_IMAGE = 1000 * _MEGABYTE


def full_image_name(name: str) -> str:
    """An image's name with its tag."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


class ImageLocality:
    """Scores the bytes that need not be pulled, scaled by how many nodes have them.

    The scaling keeps pods from concentrating on the only node that has an image.
    """

    name = "ImageLocality"
    watched_kinds: tuple[Kind, ...] = ()

    def __init__(self, handle: Handle) -> None:
        self._counts_volumes = handle.version.counted_image_volumes

    def depends_on(self, pod: Pod, objects: Objects) -> DependsOn:
        """The node's images, and how many nodes have them."""
        return DependsOn(images=True, reads=(self._image_count(pod), _image_names(pod)))

    def score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Scores:
        """From 0 (up to 23 MB) to 100 (1000 MB for each image)."""
        wanted = _image_names(pod)
        total_nodes = len(nodes.snapshot)
        known = [image for name in wanted if (image := nodes.snapshot.images.get(full_image_name(name)))]
        if not known:
            return uniform_scores(0, len(nodes))
        present = np.zeros(len(nodes), np.int64)
        for image in known:
            spread = len(image.rows) / total_nodes
            present += int(image.size_bytes * spread) * nodes.pick(image.mask(total_nodes))
        most = MAX_BYTES_PER_IMAGE * self._image_count(pod)
        clipped = np.minimum(np.maximum(present, MIN_BYTES), max(most, MIN_BYTES))
        return MAX_SCORE * (clipped - MIN_BYTES) // max(most - MIN_BYTES, 1)

    def _image_count(self, pod: Pod) -> int:
        spec = pod.spec
        mounted = sum(volume.image is not None for volume in spec.volumes) if self._counts_volumes else 0
        return len(spec.init_containers) + len(spec.containers) + mounted


def _image_names(pod: Pod) -> tuple[str, ...]:
    """The images of a pod's containers and image volumes."""
    spec = pod.spec
    names = [container.image for container in (*spec.init_containers, *spec.containers)]
    names += [volume.image.reference for volume in spec.volumes if volume.image is not None]
    return tuple(names)
