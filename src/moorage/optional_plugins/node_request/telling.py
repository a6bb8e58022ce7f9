"""What users are told: events in cluster autoscaler's words, parts of statuses, and metrics."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from typing import Final

from moorage import Handle, Offer, Pod
from moorage.optional_plugins.node_request.demands import Demand
from moorage.optional_plugins.node_request.requested import RequestedNode

PREFIX: Final = "node request: "
LOOKING: Final = f"{PREFIX}a node is being looked for."
_MAX_NAMES: Final = 5
"""Number of nodes that a status names."""
_MAX_REASONS: Final = 10_000
"""Number of pods and groups whose last reason is remembered; of more, the oldest are forgotten."""


class Telling:
    """Writes events and metrics, and remembers the reasons of those for which no node is asked."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._reasons: OrderedDict[Hashable, str] = OrderedDict()
        nodes = "Number of nodes by shape and what became of them: requested, ready or failed."
        self._nodes = handle.metrics.counter("moorage_node_request_nodes_total", nodes, ("shape", "result"))
        expected = "Number of nodes that were requested and are not ready yet."
        self._expected = handle.metrics.gauge("moorage_node_request_expected_nodes", expected).labels()

    def known(self, demand: Demand) -> str:
        """What is known about a demand in the next batch."""
        reason = self._reasons.get(demand.key)
        return LOOKING if reason is None else refused(reason)

    def waiting(self, requested: Sequence[RequestedNode]) -> str:
        """Which nodes are being waited for; empty: none."""
        if len(requested) > _MAX_NAMES:
            return f"{PREFIX}waiting for {len(requested)} nodes."
        names = ", ".join(each.expected or f"a node of {each.offer.prefix}" for each in requested)
        return f"{PREFIX}waiting for {names}." if names else ""

    def requested(self, offer: Offer, count: int, expected: int) -> None:
        """Nodes were asked for. expected: how many are, of all shapes."""
        self.ended(offer, "requested", count, expected)

    def triggered(self, requested: RequestedNode, pods: Iterable[Pod], before: int, after: int) -> None:
        """A request for pods was accepted."""
        shape = requested.offer.shape
        most = "" if shape.max is None else f" (max: {shape.max})"
        note = f"pod triggered scale-up: [{{{shape.name} {before}->{after}{most}}}]"
        for pod in pods:
            self._reasons.pop(pod.uid, None)
            self._handle.record_event(pod, "TriggeredScaleUp", note)

    def not_triggered(self, demand: Demand, reason: str) -> None:
        """No node is asked for."""
        if self._reasons.pop(demand.key, None) != reason:
            for pod in demand.pods:
                note = f"pod didn't trigger scale-up: {reason}"
                self._handle.record_event(pod, "NotTriggerScaleUp", note)
        self._reasons[demand.key] = reason
        if len(self._reasons) > _MAX_REASONS:
            self._reasons.popitem(last=False)

    def failed(self, pod: Pod, reason: str) -> None:
        """The node for a pod will not come."""
        note = f"node request failed: {reason}"
        self._handle.record_event(pod, "FailedToScaleUp", note, type="Warning")

    def ended(self, offer: Offer, result: str, count: int, expected: int) -> None:
        """Count nodes."""
        self._nodes.labels(offer.shape.name, result).inc(count)
        self._expected.set(expected)


def refused(reason: str) -> str:
    """The part of a status that says why no node is asked for."""
    return f"{PREFIX}no node is requested: {reason}."
