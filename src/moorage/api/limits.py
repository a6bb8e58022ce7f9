"""Limits on the lists and maps of a pod, which bound the time of a scheduling attempt.

Every limit is far above what workloads need, and low enough that an attempt for the most expensive pod within
all of them takes at most about 50 ms at 5,000 nodes (bench/RELIABILITY.md). No plugin runs for a pod that
exceeds a limit: the attempt fails with an error that names the limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Final, NamedTuple

from moorage.api.base import LabelSelector, NodeSelectorTerm
from moorage.api.pod import Container, Pod, PodAffinity, PodAffinityTerm


class PodLimit(NamedTuple):
    """A description for users, the maximum count of one pod, and how to count."""

    what: str
    max_count: int
    count: Callable[[Pod], int]


class PodLimitError(Exception):
    """A pod exceeds a limit, which the message names."""


def check_pod(pod: Pod) -> None:
    """Raise PodLimitError if a pod exceeds a limit.

    The check itself takes bounded time: a list is counted before the lists of its items.
    """
    for what, max_count, count in POD_LIMITS:
        if (found := count(pod)) > max_count:
            raise PodLimitError(f"pod has {found} {what}, which exceeds the limit of {max_count}")


def has_too_many_terms(pod: Pod) -> bool:
    """Whether a pod's inter-pod affinity terms exceed a limit, so that they do not count for other pods."""
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return False
    return any(limit.count(pod) > limit.max_count for limit in _TERM_LIMITS)


def _node_terms(pod: Pod) -> Iterator[NodeSelectorTerm]:
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    if required is not None:
        yield from required.node_selector_terms
    for weighted in affinity.node_affinity.preferred_during_scheduling_ignored_during_execution:
        yield weighted.preference


def _count_node_terms(pod: Pod) -> int:
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return 0
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    preferred = affinity.node_affinity.preferred_during_scheduling_ignored_during_execution
    return len(preferred) + (0 if required is None else len(required.node_selector_terms))


def _count_node_requirements(pod: Pod) -> int:
    if pod.spec.affinity is None:
        return len(pod.spec.node_selector)
    terms = (len(term.match_expressions) + len(term.match_fields) for term in _node_terms(pod))
    return len(pod.spec.node_selector) + sum(terms)


def _count_node_values(pod: Pod) -> int:
    if pod.spec.affinity is None:
        return 0
    return sum(
        len(each.values)
        for term in _node_terms(pod)
        for each in chain(term.match_expressions, term.match_fields)
    )


def _pod_affinities(pod: Pod) -> Iterator[PodAffinity]:
    affinity = pod.spec.affinity
    if affinity is not None:
        yield from (each for each in (affinity.pod_affinity, affinity.pod_anti_affinity) if each is not None)


def count_pod_terms(pod: Pod) -> int:
    """The number of inter-pod affinity terms of a pod, required and preferred."""
    if pod.spec.affinity is None:
        return 0
    return sum(
        len(each.required_during_scheduling_ignored_during_execution)
        + len(each.preferred_during_scheduling_ignored_during_execution)
        for each in _pod_affinities(pod)
    )


def _pod_terms(pod: Pod) -> Iterator[PodAffinityTerm]:
    for each in _pod_affinities(pod):
        yield from each.required_during_scheduling_ignored_during_execution
        for weighted in each.preferred_during_scheduling_ignored_during_execution:
            yield weighted.pod_affinity_term


def _count_term_requirements(pod: Pod) -> int:
    if pod.spec.affinity is None:
        return 0
    selectors = ((term.label_selector, term.namespace_selector) for term in _pod_terms(pod))
    return _count_requirements(chain.from_iterable(selectors))


def _count_term_namespaces(pod: Pod) -> int:
    return 0 if pod.spec.affinity is None else sum(len(term.namespaces) for term in _pod_terms(pod))


def _count_requirements(selectors: Iterable[LabelSelector | None]) -> int:
    """The number of labels and values in selectors."""
    return sum(
        len(selector.match_labels) + sum(max(len(each.values), 1) for each in selector.match_expressions)
        for selector in selectors
        if selector is not None
    )


def _count_spread_requirements(pod: Pod) -> int:
    spreads = pod.spec.topology_spread_constraints
    if not spreads:
        return 0
    return _count_requirements(each.label_selector for each in spreads) + sum(
        len(each.match_label_keys) for each in spreads
    )


def _containers(pod: Pod) -> Iterable[Container]:
    spec = pod.spec
    return chain(spec.containers, spec.init_containers) if spec.init_containers else spec.containers


def _count_requests(pod: Pod) -> int:
    given = pod.spec.resources
    extra = len(pod.spec.overhead) + (0 if given is None else len(given.requests))
    return extra + sum(len(each.resources.requests) for each in _containers(pod))


def _count_resources(pod: Pod) -> int:
    if _count_requests(pod) <= MAX_RESOURCES:
        return 0
    return len(
        {name for each in _containers(pod) for name in each.resources.requests}.union(pod.spec.overhead)
    )


def _count_ports(pod: Pod) -> int:
    return sum(len(each.ports) for each in _containers(pod))


def _count_volumes(pod: Pod) -> int:
    volumes = pod.spec.volumes
    if len(volumes) <= MAX_STORAGE_VOLUMES:
        return 0
    return sum(each.concerns_scheduling for each in volumes)


MAX_RESOURCES: Final = 100
MAX_STORAGE_VOLUMES: Final = 128

_TERM_LIMITS: Final = (
    PodLimit("inter-pod affinity terms", 100, count_pod_terms),
    PodLimit("labels and values in inter-pod affinity terms", 2000, _count_term_requirements),
    PodLimit("namespaces in inter-pod affinity terms", 5000, _count_term_namespaces),
)

POD_LIMITS: Final = (
    PodLimit("labels", 500, lambda pod: len(pod.metadata.labels)),
    PodLimit("node affinity terms", 500, _count_node_terms),
    PodLimit("node selector requirements", 500, _count_node_requirements),
    PodLimit("values in node affinity terms", 5000, _count_node_values),
    *_TERM_LIMITS,
    PodLimit("topology spread constraints", 50, lambda pod: len(pod.spec.topology_spread_constraints)),
    PodLimit("labels and values in topology spread constraints", 1000, _count_spread_requirements),
    PodLimit("tolerations", 1000, lambda pod: len(pod.spec.tolerations)),
    PodLimit("containers", 1000, lambda pod: len(pod.spec.containers) + len(pod.spec.init_containers)),
    PodLimit("resource requests", 5000, _count_requests),
    PodLimit("different resources", MAX_RESOURCES, _count_resources),
    PodLimit("container ports", 1000, _count_ports),
    PodLimit("volumes with storage", MAX_STORAGE_VOLUMES, _count_volumes),
)
"""All limits on a pod."""
