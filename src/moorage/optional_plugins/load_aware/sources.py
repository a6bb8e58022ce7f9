"""Where the usage of nodes is read: metrics.k8s.io by the scheduler's client, or a Prometheus server.

A source raises ReadFailed, with the reason in one line, if it cannot be read as a whole. Nodes whose usage
cannot be read are left out.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

from moorage import (
    ConnectionFailed,
    Handle,
    InputError,
    RequestError,
    WebService,
    WebServiceError,
    decode_object,
)
from moorage.optional_plugins.load_aware.arguments import Prometheus
from moorage.optional_plugins.load_aware.readings import (
    NODE_METRICS,
    SECOND,
    NodeMetrics,
    NodeUsage,
    Usage,
    node_usage,
    usage_of,
)

_NODES_PER_TURN: Final = 200
"""Number of nodes whose usage is decoded before other tasks have their turn."""
_MAX_TIMESTAMP: Final = 1e11
"""The latest time of a sample that is read, in seconds since 1970."""
_QUERY_PATH: Final = "/api/v1/query"
_KIND: Final = {"apiVersion": NODE_METRICS.api_version, "kind": NODE_METRICS.name}


class ReadFailed(Exception):  # noqa: N818 -- it says what happened
    """The usage could not be read."""


class Source(Protocol):
    """Something that knows the usage of nodes."""

    async def read(self) -> Usage:
        """The usage of all nodes; ReadFailed if it cannot be read."""


class MetricsApi:
    """The API metrics.k8s.io, which metrics-server and others serve."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    async def read(self) -> Usage:
        """The usage of all nodes."""
        try:
            items = await self._handle.client.list(NODE_METRICS)
        except (RequestError, ConnectionFailed) as error:
            reason = "it is not served" if getattr(error, "is_not_found", False) else str(error)
            raise ReadFailed(f"nodes.metrics.k8s.io: {reason}") from None
        except KeyError:
            items = None
        if not isinstance(items, list):
            raise ReadFailed("nodes.metrics.k8s.io: the answer is no list")
        usage: dict[str, NodeUsage] = {}
        for index, item in enumerate(items):
            if index % _NODES_PER_TURN == _NODES_PER_TURN - 1:
                await asyncio.sleep(0)
            try:
                metrics = decode_object({**item, **_KIND})
                assert isinstance(metrics, NodeMetrics)
                usage[metrics.name] = usage_of(metrics)
            except (InputError, TypeError, ValueError, OverflowError, OSError):
                continue
        return usage


class PrometheusServer:
    """A Prometheus server, which is asked for cpu and memory one after the other."""

    def __init__(self, settings: Prometheus, timeout_seconds: float) -> None:
        self._settings = settings
        self._service = WebService(
            settings.url,
            ca_file=settings.ca_file,
            token_file=settings.token_file,
            timeout_seconds=timeout_seconds,
        )

    async def read(self) -> Usage:
        """The usage of the nodes of which both are known."""
        settings = self._settings
        cpu = await self._samples(settings.cpu_query)
        memory = await self._samples(settings.memory_query)
        usage = {}
        for node in cpu.keys() & memory.keys():
            (cpu_time, cores), (memory_time, size) = cpu[node], memory[node]
            end = round(min(cpu_time, memory_time) * SECOND)
            usage[node] = node_usage(round(cores * 1000), round(size), end, settings.window)
        return usage

    async def _samples(self, query: str) -> Mapping[str, tuple[float, float]]:
        """The time and the value of each node's sample."""
        try:
            asked = {"query": query.replace("$window", f"{round(self._settings.window)}s")}
            answer = await self._service.get(_QUERY_PATH, asked)
        except WebServiceError as error:
            raise ReadFailed(f"{self._settings.url}: {error}") from None
        return dict(self._read(answer))

    def _read(self, answer: Any) -> Iterator[tuple[str, tuple[float, float]]]:
        for series in _vector(answer, self._settings.url):
            try:
                node = series["metric"][self._settings.node_label]
                time, value = (float(each) for each in series["value"])
            except (KeyError, TypeError, ValueError):
                continue
            if isinstance(node, str) and math.isfinite(value) and abs(time) < _MAX_TIMESTAMP:
                yield node, (time, value)


def _vector(answer: Any, url: str) -> list[Any]:
    """The series of an instant vector; ReadFailed if the answer is something else."""
    try:
        if answer["status"] != "success":
            raise ReadFailed(f"{url}: {answer.get('error') or answer['status']}")
        data = answer["data"]
        if data["resultType"] != "vector":
            raise ReadFailed(f"{url}: a query gave a {data['resultType']}, not an instant vector")
        result = data["result"]
    except (KeyError, TypeError, AttributeError):
        raise ReadFailed(f"{url}: the answer is not one of Prometheus") from None
    if not isinstance(result, list):
        raise ReadFailed(f"{url}: the answer is not one of Prometheus")
    return result
