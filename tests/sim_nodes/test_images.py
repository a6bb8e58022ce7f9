from __future__ import annotations

import pytest

from moorage_cluster.nodes.addresses import Addresses, PodAddresses
from moorage_cluster.nodes.images import Images, digest_name, full_name, size_of


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("nginx", "docker.io/library/nginx:latest"),
        ("nginx:1.27", "docker.io/library/nginx:1.27"),
        ("bitnami/redis", "docker.io/bitnami/redis:latest"),
        ("localhost/app", "localhost/app:latest"),
        ("registry:5000/app", "registry:5000/app:latest"),
        ("registry.k8s.io/pause:3.10", "registry.k8s.io/pause:3.10"),
        ("registry.k8s.io/pause@sha256:abc", "registry.k8s.io/pause@sha256:abc"),
    ],
)
def test_full_names(image: str, name: str) -> None:
    assert full_name(image) == name


def test_an_image_is_pulled_once() -> None:
    images = Images()
    assert images.need("nginx", 10.0, 5.0) == 15.0
    assert images.need("docker.io/library/nginx:latest", 12.0, 5.0) == 15.0
    assert images.need("nginx", 20.0, 5.0) == 20.0
    assert images.listed(14.0) == []
    names = [digest_name("nginx"), "docker.io/library/nginx:latest"]
    assert images.listed(15.0) == [{"names": names, "sizeBytes": size_of("nginx")}]


def test_a_node_lists_its_fifty_largest_images() -> None:
    images = Images()
    for index in range(60):
        images.need(f"app-{index}", 0.0, 0.0)
    sizes = [each["sizeBytes"] for each in images.listed(0.0)]
    assert len(sizes) == 50
    assert sizes == sorted(sizes, reverse=True)


def test_unused_images_are_collected() -> None:
    images = Images([{"names": ["registry.example/known:1"], "sizeBytes": 1000}])
    images.need("nginx", 0.0, 0.0)
    assert images.bytes_used == 1000 + size_of("nginx")
    assert images.collect(["nginx"]) == 1000
    assert images.has("nginx")
    assert not images.has("registry.example/known:1")


def test_addresses_come_again_only_when_given_back() -> None:
    network = PodAddresses("10.1.2.0/29")
    given = [network.take(f"pod-{index}") for index in range(6)]
    assert given == ["10.1.2.2", "10.1.2.3", "10.1.2.4", "10.1.2.5", "10.1.2.6", ""]
    network.release("pod-2")
    assert network.take("another") == "10.1.2.4"
    network.release("pod-2")
    assert network.take("yet another") == "", "an address is given back by who has it"


def test_addresses_that_are_taken_are_left_out() -> None:
    addresses = Addresses()
    addresses.taken("10.0.0.1", "10.128.0.0/24")
    assert (addresses.host(), addresses.network()) == ("10.0.0.2", "10.128.1.0/24")
