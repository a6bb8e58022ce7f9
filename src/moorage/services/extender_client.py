"""Extenders over HTTP: one POST for each call, with a time limit."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final, Protocol, TypeVar
from urllib.parse import urlsplit

from moorage.api.as_sent import whole
from moorage.api.decode import InputError
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.client.waiting import within
from moorage.clock import Clock
from moorage.config.types import Extender as ExtenderConfig
from moorage.config.types import ExtenderTLSConfig
from moorage.framework.extenders.extenders import (
    ChosenVictims,
    ExtenderError,
    Extenders,
    Filtered,
    NodeVictims,
)
from moorage.http.client_tls import client_context, use_certificate
from moorage.http.client_transport import Endpoint, HttpTransport
from moorage.http.errors import AnswerLost, ConnectionFailed, KubeconfigError
from moorage.http.transport import Request, Response, Transport
from moorage.services import extender_client_messages as wire
from moorage.services.go_json import GoJsonError

T = TypeVar("T")

DEFAULT_SECONDS: Final = 5.0
"""Default time limit of a call, in seconds."""
_OK: Final = 200
_HEADERS: Final = {"content-type": "application/json", "accept": "application/json", "user-agent": "moorage"}
_TOO_LATE: Final = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"


class Connected(Transport, Protocol):
    """A transport to one server that can be closed."""

    async def close(self) -> None:
        """Close connections."""


Connect = Callable[[Endpoint], Connected]
"""Connects to an extender, at its first call."""


def http_extenders(
    configs: Iterable[ExtenderConfig], clock: Clock, connect: Connect | None = None
) -> Extenders:
    """The extenders of a configuration; InputError if the TLS settings of one are invalid."""
    return Extenders(
        HttpExtender(config, clock, connect, f"extenders[{index}].tlsConfig")
        for index, config in enumerate(configs)
    )


class HttpExtender:
    """One extender of a configuration.

    where: the location of its TLS settings in error messages.
    """

    def __init__(
        self, config: ExtenderConfig, clock: Clock, connect: Connect | None = None, where: str = "tlsConfig"
    ) -> None:
        self.name = config.url_prefix
        self.is_ignorable = config.ignorable
        self.weight = config.weight
        self.filters = bool(config.filter_verb)
        self.prioritizes = bool(config.prioritize_verb)
        self.preempts = bool(config.preempt_verb)
        self.binds = bool(config.bind_verb)
        self._config = config
        self._managed = frozenset(resource.name for resource in config.managed_resources)
        self._clock = clock
        self._seconds = float(config.http_timeout) or DEFAULT_SECONDS
        tls = _tls(config, where)
        server_name = "" if config.tls_config is None else config.tls_config.server_name
        self._endpoint = Endpoint(config.url_prefix, tls, server_name)
        self._connect = connect or self._over_http
        self._transport: Connected | None = None

    def is_interested(self, pod: Pod) -> bool:
        """Whether a pod requests one of the extender's managed resources, if it has any."""
        if not self._managed:
            return True
        return any(
            not self._managed.isdisjoint(chain(container.resources.requests, container.resources.limits))
            for container in chain(pod.spec.containers, pod.spec.init_containers)
        )

    async def filter(self, pod: Pod, nodes: Sequence[Node]) -> Filtered:
        """The nodes that can run the pod."""
        question = self._about(pod, nodes)
        result = await self._ask(self._config.filter_verb, question, wire.read_filter_result)
        if result.error:
            raise ExtenderError(result.error)
        passed = result.node_names if self._config.node_cache_capable else None
        if passed is None:
            passed = result.nodes or []
        # If a node is in both maps, unresolvable takes precedence.
        failed = {name: why for name, why in result.failed.items() if name not in result.unresolvable}
        return Filtered(passed, failed, result.unresolvable)

    async def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> Sequence[tuple[str, int]]:
        """Scores of nodes, by name."""
        question = self._about(pod, nodes)
        return await self._ask(self._config.prioritize_verb, question, wire.read_priorities)

    def _about(self, pod: Pod, nodes: Sequence[Node]) -> bytes:
        if self._config.node_cache_capable:
            return wire.extender_args(whole(pod), None, [node.name for node in nodes])
        return wire.extender_args(whole(pod), [whole(node) for node in nodes], None)

    async def preempt(self, pod: Pod, victims: Mapping[str, NodeVictims]) -> Mapping[str, ChosenVictims]:
        """By node, the victims of a preemption for the pod."""
        if self._config.node_cache_capable:
            meta = {
                name: ChosenVictims(tuple(victim.uid for victim in each.pods), each.broken_budgets)
                for name, each in victims.items()
            }
            question = wire.preemption_args(whole(pod), None, meta)
        else:
            pods = {
                name: wire.WholeVictims([whole(victim) for victim in each.pods], each.broken_budgets)
                for name, each in victims.items()
            }
            question = wire.preemption_args(whole(pod), pods, None)
        return await self._ask(self._config.preempt_verb, question, wire.read_preemption_result)

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Bind a pod to a node."""
        question = wire.binding_args(pod.name, pod.namespace, pod.uid, node_name)
        refusal = await self._ask(self._config.bind_verb, question, wire.read_binding_result)
        if refusal:
            raise ExtenderError(refusal)

    async def close(self) -> None:
        """Close connections; later calls open new ones."""
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.close()

    async def _ask(self, verb: str, question: bytes, read: Callable[[bytes], T]) -> T:
        url = f"{self.name.rstrip('/')}/{verb}"
        try:
            response = await within(self._clock, self._seconds, self._post(verb, question))
        except TimeoutError:
            raise ExtenderError(f'Post "{url}": {_TOO_LATE}') from None
        except ConnectionFailed as error:
            raise ExtenderError(f'Post "{url}": {self._reason(error)}') from None
        if response.status != _OK:
            raise ExtenderError(f"failed {verb} with extender at URL {url}, code {response.status}")
        assert isinstance(response.body, bytes)
        try:
            return read(response.body)
        except GoJsonError as error:
            raise ExtenderError(str(error)) from None

    async def _post(self, verb: str, body: bytes) -> Response:
        scheme = urlsplit(self.name).scheme
        if scheme not in ("http", "https"):
            raise ConnectionFailed(f'unsupported protocol scheme "{scheme}"')
        if not urlsplit(self.name).hostname:
            raise ConnectionFailed("http: no Host in request URL")
        if self._transport is None:
            self._transport = self._connect(self._endpoint)
        return await self._transport.handle(Request("POST", f"/{verb}", headers=_HEADERS, body=body))

    def _over_http(self, endpoint: Endpoint) -> HttpTransport:
        # The time limit of the call is the only one; the transport's must not expire before.
        beyond = 2 * self._seconds
        return HttpTransport(endpoint, connect_seconds=beyond, idle_seconds=beyond)

    def _reason(self, error: ConnectionFailed) -> str:
        """Why there was no response, worded as in Go where possible."""
        if isinstance(error, AnswerLost):
            return "EOF"
        below = error.__context__
        if isinstance(below, OSError) and below.errno and not isinstance(below, ssl.SSLError):
            reason = str(error).rpartition(": ")[2]
            return f"dial tcp {urlsplit(self.name).netloc}: connect: {reason}"
        return str(error)


def _tls(config: ExtenderConfig, where: str) -> ssl.SSLContext | None:
    """The TLS settings for an extender; None: plain HTTP."""
    settings = config.tls_config or ExtenderTLSConfig()
    authority = settings.ca_data or _contents(settings.ca_file, f"{where}.caFile")
    certificate = settings.cert_data or _contents(settings.cert_file, f"{where}.certFile")
    key = settings.key_data or _contents(settings.key_file, f"{where}.keyFile")
    if settings.insecure and authority:
        reason = "specifying a root certificates file with the insecure flag is not allowed"
        raise InputError(where, reason)
    if urlsplit(config.url_prefix).scheme != "https":
        return None
    trusts_all = settings.insecure or (config.enable_https and not authority)
    try:
        context = client_context(authority or None, skip_verification=trusts_all)
        if certificate and key:
            use_certificate(context, certificate, key)
    except KubeconfigError as error:
        raise InputError(where, str(error)) from None
    return context


def _contents(file: str, where: str) -> bytes:
    if not file:
        return b""
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise InputError(f"{where}: {file}", error.strerror or str(error)) from None
