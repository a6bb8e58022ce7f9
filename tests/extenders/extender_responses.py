"""Extenders for tests: in the same process, answering what a test says, and noting what they were asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from moorage.http.client_transport import Endpoint
from moorage.http.transport import Request, Response

URL = "http://extender.example/v1"

Answer = Callable[[Any], Any]
"""An answer, from a question: a value that becomes JSON, bytes, a Response, or an exception to raise."""


class Asked(NamedTuple):
    """What an extender was asked."""

    url: str
    question: Any


class Service:
    """Answers as told, by the end of a question's path (`filter`); is what extenders are reached with."""

    def __init__(self, **answers: Answer) -> None:
        self.answers = answers
        self.asked: list[Asked] = []
        self.endpoints: list[Endpoint] = []
        self.may_answer = asyncio.Event()
        """Cleared, nothing is answered until it is set."""
        self.may_answer.set()
        self.closed = 0

    def connect(self, endpoint: Endpoint) -> _Way:
        self.endpoints.append(endpoint)
        return _Way(self, endpoint)

    def questions(self, verb: str) -> list[Any]:
        """What was asked for, in order."""
        return [each.question for each in self.asked if each.url.endswith(f"/{verb}")]

    async def answer(self, url: str, request: Request) -> Response:
        assert request.method == "POST"
        assert request.headers["content-type"] == "application/json"
        question = msgspec.json.decode(request.body)
        self.asked.append(Asked(url, question))
        await self.may_answer.wait()
        answer = self.answers[url.rpartition("/")[2]](question)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Response):
            return answer
        return Response(200, answer if isinstance(answer, bytes) else msgspec.json.encode(answer))


class _Way:
    def __init__(self, service: Service, endpoint: Endpoint) -> None:
        self._service = service
        self._url = endpoint.url.rstrip("/")

    async def handle(self, request: Request) -> Response:
        return await self._service.answer(f"{self._url}{request.path}", request)

    async def close(self) -> None:
        self._service.closed += 1


def names_in(question: Any) -> list[str]:
    """The nodes that a question is about."""
    if question["NodeNames"] is not None:
        return list(question["NodeNames"])
    return [node["metadata"]["name"] for node in question["Nodes"]["items"]]


def keeping(*wanted: str, why: str = "not wanted", unresolvable: bool = False) -> Answer:
    """Lets nodes of these names pass; of the others it says why not."""

    def answer(question: Any) -> Any:
        names = names_in(question)
        refused = {name: why for name in names if name not in wanted}
        passed = [name for name in names if name in wanted]
        return {
            "NodeNames": passed,
            "Nodes": {"items": [{"metadata": {"name": name}} for name in passed]},
            "FailedAndUnresolvableNodes" if unresolvable else "FailedNodes": refused,
        }

    return answer


def scoring(**scores: int) -> Answer:
    """Scores nodes."""
    return lambda question: [{"Host": name, "Score": score} for name, score in scores.items()]


def configuration_with(config: dict[str, Any]) -> dict[str, Any]:
    """A KubeSchedulerConfiguration with this in it."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        **config,
    }
