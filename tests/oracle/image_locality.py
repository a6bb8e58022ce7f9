"""The oracle for ImageLocality."""

from __future__ import annotations

from moorage.api.node import Node
from tests.oracle.cluster import OraclePlugin

MIB = 2**20


class ImageLocality(OraclePlugin):
    """Better the nodes that have the pod's images already, the more so the larger the images are.

    An image counts with its size times the share of nodes that have it, so that a first node does not draw
    all pods to itself. 23 MiB in all score 0, 1000 MiB an image score 100, with a straight line between.
    Before v1.37, image volumes are not among the images that are counted.
    """

    name = "ImageLocality"
    scores = True

    def size(self, image: str) -> int:
        """An image's size, as the first node reported it."""
        return next(
            each.size_bytes
            for node in self.cluster.nodes
            for each in node.status.images
            if image in each.names
        )

    def score(self, node: Node, feasible: list[Node]) -> int:
        """The sum over containers and image volumes."""
        spec = self.pod.spec
        containers = (*spec.init_containers, *spec.containers)
        images = [each.image for each in containers]
        images += [each.image.reference for each in spec.volumes if each.image is not None]
        total = 0
        for image in map(with_tag, images):
            if has(node, image):
                share = sum(has(each, image) for each in self.cluster.nodes) / len(self.cluster.nodes)
                total += int(self.size(image) * share)
        count = len(images) if self.cluster.version.counted_image_volumes else len(containers)
        least, most = 23 * MIB, 1000 * MIB * count
        return 100 * (min(max(total, least), most) - least) // (most - least)


def with_tag(image: str) -> str:
    """An image's name with a tag: `latest` unless the last part of the name has one."""
    return image if ":" in image.rsplit("/", 1)[-1] else f"{image}:latest"


def has(node: Node, image: str) -> bool:
    """Whether a node reports an image under this name."""
    return any(image in each.names for each in node.status.images)
