"""What selectors can distinguish of a pod."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from moorage.api.pod import Pod

_MAX_SHARED_CLASSES: Final = 1024
"""Number of classes that are kept to be shared."""
_MAX_SHARED_LABELS: Final = 16
"""Number of labels up to which a class is shared: labels are chosen by users."""

Label = tuple[str, str]
"""A label's key and value."""


class PodClass(NamedTuple):
    """What selectors can distinguish of a pod; every selector matches all pods of a class or none."""

    namespace: str
    labels: frozenset[Label]
    terminating: bool


def class_of(pod: Pod) -> PodClass:
    """The class of a pod; mostly the same object for pods of one class."""
    labels = pod.labels
    make = _shared_class if len(labels) <= _MAX_SHARED_LABELS else _new_class
    return make(pod.namespace, tuple(labels.items()), pod.terminating)


def _new_class(namespace: str, labels: tuple[Label, ...], terminating: bool) -> PodClass:
    return PodClass(namespace, frozenset(labels), terminating)


_shared_class = lru_cache(maxsize=_MAX_SHARED_CLASSES)(_new_class)
