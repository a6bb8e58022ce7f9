"""Explanations of pods for the page: what `moorage explain -o json` prints.

A cluster is read and evaluated in a thread, so that changes go on meanwhile; few at a time, because each
takes memory in proportion to the cluster.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qs, unquote

from moorage.api.decode import InputError
from moorage.explain.document import as_document
from moorage.explain.explanation import explain
from moorage.explain.loading import LoadedCluster, NewCluster, NewReading, load_with
from moorage.framework.loading.registry import RegistryError
from moorage.http.transport import Request, Response
from moorage.services.responses import document
from moorage.ui.application import API, problem
from moorage.ui.sources.source import Feature

_MAX_EVALUATIONS: Final = 2
"""Number of clusters that are evaluated at a time."""


def explain_feature(reading: NewReading, new_cluster: NewCluster) -> Feature:
    """Explains any pod of a cluster, with the configuration of `new_cluster`."""
    room = asyncio.Semaphore(_MAX_EVALUATIONS)

    async def explanation(request: Request) -> Response:
        namespace, _, name = unquote(request.path).removeprefix(f"{API}explain/").partition("/")
        if not namespace or not name:
            return problem(HTTPStatus.BAD_REQUEST, "explain/NAMESPACE/POD?node=NAME is expected")
        node = parse_qs(request.query).get("node", [""])[0]
        async with room:
            return document(await asyncio.to_thread(_explained, reading, new_cluster, namespace, name, node))

    return Feature("explain", {"explain/": explanation})


def _explained(
    reading: NewReading, new_cluster: NewCluster, namespace: str, name: str, node: str
) -> dict[str, Any]:
    try:
        loaded = asyncio.run(_loaded(reading, new_cluster, namespace, name))
    except RegistryError as error:
        raise InputError("", str(error)) from None
    if node and loaded.cluster.cache.node(node) is None:
        raise InputError("", f"there is no node {node}")
    explanation = explain(loaded.cluster, loaded.pod)
    explanation.notes[:0] = loaded.notes
    return as_document(explanation, node)


async def _loaded(reading: NewReading, new_cluster: NewCluster, namespace: str, name: str) -> LoadedCluster:
    async with reading() as client:
        return await load_with(client, namespace, name, new_cluster)
