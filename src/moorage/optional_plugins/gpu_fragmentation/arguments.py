"""The arguments of GPUFragmentation, and what is wrong with them."""

from __future__ import annotations

from typing import Final

from moorage import ResourceList, Struct, resource_amounts
from moorage.optional_plugins.gpu_fragmentation.target import Shape

MAX_SHAPES: Final = 64
_MAX_UNIT: Final = 1_000_000
_MAX_WEIGHT: Final = 1_000_000


class ExpectedPods(Struct):
    """Pods that are to be expected: what one of them requests, and their number in relation to others."""

    requests: ResourceList = {}
    weight: int = 1


class GPUFragmentationArgs(Struct):
    """The resource of which fragments are counted, and the pods that are to be expected.

    unit: how much of the resource is one GPU. expected_pods: none are learned from the pods on nodes.
    max_shapes: of how many different shapes learned pods are.
    """

    resource: str = "nvidia.com/gpu"
    unit: int = 1
    expected_pods: tuple[ExpectedPods, ...] = ()
    max_shapes: int = 32

    def __post_init__(self) -> None:
        if not self.resource:
            raise ValueError("resource: must name the resource of GPUs, such as nvidia.com/gpu")
        _check_range("unit", self.unit, _MAX_UNIT)
        _check_range("maxShapes", self.max_shapes, MAX_SHAPES)
        if len(self.expected_pods) > MAX_SHAPES:
            raise ValueError(f"expectedPods: {len(self.expected_pods)} are too many; at most {MAX_SHAPES}")
        expected_shapes(self)


def expected_shapes(args: GPUFragmentationArgs) -> list[Shape]:
    """The shapes of expected pods; ValueError if an argument is not allowed."""
    return [
        _shape(f"expectedPods[{index}]", pods, args.resource) for index, pods in enumerate(args.expected_pods)
    ]


def _shape(place: str, pods: ExpectedPods, resource: str) -> Shape:
    _check_range(f"{place}.weight", pods.weight, _MAX_WEIGHT)
    requests = {name: amount for name, amount in resource_amounts(pods.requests).items() if amount}
    if resource not in requests:
        raise ValueError(
            f"{place}.requests: must have {resource}: pods without it change no score, leave them out"
        )
    return Shape(tuple(sorted(requests.items())), pods.weight)


def _check_range(place: str, number: int, at_most: int) -> None:
    if not 1 <= number <= at_most:
        raise ValueError(f"{place}: {number} is not in the range [1, {at_most}]")
