"""Asks a web service for nodes: one POST for each shape and zone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from moorage import Handle, Node, Pod, Quantity, WebServiceError, plain, pod_requests
from moorage.optional_plugins.node_request.provisioning import Answer, NodesWanted, ProvisioningError

_FORM: Final = {"apiVersion": "moorage.io/v1", "kind": "NodeRequest"}


class Service(Protocol):
    """A web service that takes and answers JSON."""

    async def post(self, content: Any) -> Any:
        """The answer to some content; WebServiceError if there is none."""


class Webhook:
    """Asks a service."""

    def __init__(self, service: Service, handle: Handle) -> None:
        self._service = service
        self._random = handle.random
        calls = "Number of calls of the web service for nodes, by outcome: accepted, refused or failed."
        name = "moorage_node_request_webhook_calls_total"
        self._calls = handle.metrics.counter(name, calls, ("result",))

    async def ask(self, wanted: NodesWanted) -> Answer:
        """What the service answers; ProvisioningError if it gives no answer that can be understood."""
        try:
            answer = _read(await self._service.post(self._question(wanted)), len(wanted.nodes))
        except (WebServiceError, ValueError) as error:
            self._calls.labels("failed").inc()
            raise ProvisioningError(f"webhook: {error}") from None
        self._calls.labels("accepted" if answer.accepted else "refused").inc()
        return answer

    async def complete(self, nodes: Sequence[Node]) -> None:
        """Nothing: the service makes the nodes."""

    def _question(self, wanted: NodesWanted) -> dict[str, Any]:
        return {
            **_FORM,
            "id": f"{self._random.getrandbits(64):016x}",
            "shape": plain(wanted.offer.shape),
            "zone": wanted.offer.zone,
            "count": len(wanted.nodes),
            "names": [node.name for node in wanted.nodes],
            "pods": [_pod(pod, message) for pod, message in wanted.pods],
        }


def _pod(pod: Pod, message: str) -> dict[str, Any]:
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
        "requests": plain({name: Quantity(amount) for name, amount in pod_requests(pod).items()}),
        "message": message,
    }


def _read(answer: Any, wanted: int) -> Answer:
    """An answer such as {"accepted": true, "nodes": ["a", "b"]}; ValueError if it is none."""
    if not isinstance(answer, Mapping) or not isinstance(answer.get("accepted"), bool):
        raise ValueError('the answer must be an object with "accepted": true or false')
    reason, names = answer.get("reason", ""), answer.get("nodes")
    if not isinstance(reason, str):
        raise ValueError('"reason" of the answer must be a text')
    if not answer["accepted"]:
        return Answer(0, (), reason or "refused without a reason")
    if names is None:
        return Answer(wanted)
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise ValueError('"nodes" of the answer must be a list of names')
    if len(names) > wanted or len(set(names)) < len(names):
        raise ValueError(f'"nodes" of the answer must be different names, at most {wanted}')
    return Answer(len(names), tuple(names), reason or "fewer nodes accepted than asked for")
