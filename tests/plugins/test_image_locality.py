"""ImageLocality: bytes that need not be pulled, scaled by the share of nodes that have them."""

from __future__ import annotations

import pytest

from tests.builders import container, make_node, make_pod
from tests.plugins.plugin_rules import scores

MB = 1024 * 1024

RULES: dict[str, tuple[list[tuple[str, int]], list[tuple[str, int]], list[str], dict[str, int]]] = {
    "an image that no node has": ([], [], ["app:1"], {"a": 0, "b": 0}),
    "up to 23 MB count for nothing": (
        [("app:1", 23 * MB)],
        [("app:1", 23 * MB)],
        ["app:1"],
        {"a": 0, "b": 0},
    ),
    # (33 MB - 23 MB) / (1000 MB - 23 MB)
    "from there on a preference grows": (
        [("app:1", 33 * MB)],
        [("app:1", 33 * MB)],
        ["app:1"],
        {"a": 1, "b": 1},
    ),
    "1000 MB for each container are the most": (
        [("app:1", 3000 * MB)],
        [("app:1", 3000 * MB)],
        ["app:1"],
        {"a": 100, "b": 100},
    ),
    # (1000 MB * 1/2 - 23 MB) / (1000 MB - 23 MB)
    "an image on half of the nodes counts half": ([("app:1", 1000 * MB)], [], ["app:1"], {"a": 48, "b": 0}),
    # (1000 MB - 23 MB) / (2000 MB - 23 MB)
    "the limit grows with the containers": (
        [("app:1", 1000 * MB)],
        [("app:1", 1000 * MB)],
        ["app:1", "other:1"],
        {"a": 49, "b": 49},
    ),
    "an image without a tag is :latest": (
        [("app:latest", 1000 * MB)],
        [("app:latest", 1000 * MB)],
        ["app"],
        {"a": 100, "b": 100},
    ),
    "another tag is another image": ([("app:1", 1000 * MB)], [], ["app:2"], {"a": 0, "b": 0}),
}


@pytest.mark.parametrize(("on_a", "on_b", "images", "expected"), RULES.values(), ids=RULES.keys())
def test_score(
    on_a: list[tuple[str, int]], on_b: list[tuple[str, int]], images: list[str], expected: dict[str, int]
) -> None:
    nodes = [
        make_node(name, images=[((image,), size) for image, size in there])
        for name, there in (("a", on_a), ("b", on_b))
    ]
    pod = make_pod("p", containers=[container(name=f"c{n}", image=image) for n, image in enumerate(images)])
    assert scores("ImageLocality", pod, *nodes) == expected
