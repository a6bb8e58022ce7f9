"""What-if as a feature of a cluster: pods and configurations to edit, validation, and answers.

Nothing is ever written to the cluster; it is read with the user's permissions, once for each question.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Final, TypeVar
from urllib.parse import unquote

import msgspec

from moorage.api.decode import InputError
from moorage.api.manifests import Manifest
from moorage.client.client import Client
from moorage.client.kinds import PRIORITY_CLASS
from moorage.client.server_version import server_version
from moorage.emulation.kubernetes_version import KubernetesVersion
from moorage.explain.cluster_reader import read_cluster, read_pod
from moorage.explain.loading import NewReading
from moorage.framework.loading.registry import RegistryError
from moorage.http.errors import RequestError
from moorage.http.transport import Request, Response
from moorage.scheduler.watched_kinds import read_kinds
from moorage.services.responses import document
from moorage.ui.application import API, problem
from moorage.ui.sources.source import Feature
from moorage.ui.what_if.configurations import configuration_text, read_configuration_text
from moorage.ui.what_if.documents import Answer, Problems, Text, TextProblem, Texts, WhatIf
from moorage.ui.what_if.evaluation import Evaluator, Question, Reading
from moorage.ui.what_if.pods import pod_text, read_pod_text
from moorage.ui.what_if.texts import TextError

_MAX_EVALUATIONS: Final = 2
"""Number of questions that are evaluated at a time."""
_MAX_BODY_BYTES: Final = 1024 * 1024
_MANIFEST: Final = "/manifest"

BodyT = TypeVar("BodyT")


class WhatIfPages:
    """The documents of what-if."""

    def __init__(self, reading: NewReading, evaluator: Evaluator) -> None:
        self._reading = reading
        self._evaluator = evaluator
        self._room = asyncio.Semaphore(_MAX_EVALUATIONS)

    def feature(self) -> Feature:
        """All of them."""
        return Feature(
            "what-if",
            {
                "pods/": self.manifest,
                "what-if": self.answer,
                "what-if/configuration": self.configuration,
                "what-if/validate": self.validate,
            },
        )

    async def manifest(self, request: Request) -> Response:
        """A pod of the cluster as YAML, as far as scheduling reads it."""
        path = unquote(request.path).removeprefix(f"{API}pods/")
        namespace, _, name = path.removesuffix(_MANIFEST).partition("/")
        if not path.endswith(_MANIFEST) or not namespace or not name or "/" in name:
            return problem(HTTPStatus.BAD_REQUEST, "pods/NAMESPACE/NAME/manifest is expected")
        async with self._reading() as client:
            return document(Text(text=pod_text(await read_pod(client, namespace, name))))

    async def configuration(self, request: Request) -> Response:
        """The configuration in force as YAML."""
        async with self._reading() as client:
            version = self._evaluator.version(await server_version(client))
        return document(Text(text=configuration_text(self._evaluator.configuration(version))))

    async def validate(self, request: Request) -> Response:
        """All problems of texts."""
        texts = _body(request, Texts)
        async with self._reading() as client:
            version = self._evaluator.version(await server_version(client))
            classes = await _priority_classes(client)
        found = await asyncio.to_thread(self._problems, texts, version, classes)
        return document(Problems(problems=tuple(found)))

    def _problems(
        self, texts: Texts, version: KubernetesVersion, classes: list[Manifest]
    ) -> list[TextProblem]:
        found: list[TextProblem] = []
        try:
            if texts.pod is not None:
                read_pod_text(texts.pod, classes)
        except TextError as error:
            found += error.problems
        try:
            if texts.config is not None:
                own = self._evaluator.configuration(version)
                config = read_configuration_text(texts.config, version, own)
                self._evaluator.cluster(config, version)
        except TextError as error:
            found += error.problems
        except (InputError, RegistryError) as error:
            found.append(TextProblem(message=str(error), of="config"))
        return found

    async def answer(self, request: Request) -> Response:
        """The pod now and then, and the differences; or the problems of the texts."""
        asked = _body(request, WhatIf)
        async with self._room:
            return document(await asyncio.to_thread(self._answered, asked))

    def _answered(self, asked: WhatIf) -> Answer:
        try:
            question, reading = asyncio.run(self._read(asked))
            return question.answer(reading)
        except TextError as error:
            return Answer(problems=error.problems)
        except RegistryError as error:
            raise InputError("", str(error)) from None

    async def _read(self, asked: WhatIf) -> tuple[Question, Reading]:
        namespace, _, name = asked.of.partition("/")
        if asked.of and not (namespace and name and "/" not in name):
            raise InputError("of", "NAMESPACE/NAME is expected")
        async with self._reading() as client:
            question = Question(asked, self._evaluator, await server_version(client))
            pod = await read_pod(client, namespace, name) if asked.of else None
            classes = [] if asked.pod is None else await _priority_classes(client)
            content = await read_cluster(client, read_kinds(question.profiles))
        return question, Reading(pod, content, classes)


async def _priority_classes(client: Client) -> list[Manifest]:
    """The cluster's classes, as far as they may be read."""
    try:
        answer = await client.exchange("GET", PRIORITY_CLASS.path())
    except RequestError:
        return []
    items = msgspec.json.decode(answer).get("items") or []
    return [{**each, "kind": "PriorityClass", "apiVersion": PRIORITY_CLASS.api_version} for each in items]


def _body(request: Request, kind: type[BodyT]) -> BodyT:
    if request.method != "POST":
        raise InputError("", "POST is expected")
    if len(request.body) > _MAX_BODY_BYTES:
        raise InputError("", f"the body is longer than {_MAX_BODY_BYTES} bytes")
    try:
        return msgspec.json.decode(request.body, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError("", f"the body cannot be used: {error}") from None
