"""A server on a socket, spoken to in bytes."""

from __future__ import annotations

import asyncio
import re
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from random import Random
from typing import Any

from moorage.http.server import HttpServer, listen
from moorage_cluster.apiserver.embedded import EmbeddedServer, Settings
from tests.apiserver.client import WITH_GROUPS
from tests.apiserver.fuzzing.checks import Wrong, check_answer
from tests.apiserver.fuzzing.chunks import chunked
from tests.apiserver.fuzzing.generator import Generator
from tests.apiserver.fuzzing.inprocess import SLOW_SECONDS, gathered_complaints
from tests.apiserver.fuzzing.malformed import Bytes, random_bytes
from tests.apiserver.fuzzing.reports import Failure, Report
from tests.apiserver.fuzzing.request import TOKEN, Shot

_PROPER = re.compile(r"[!-\"$-~]+")
_PROPER_VALUE = re.compile(r"[\t -~\x80-\xff]*")
_MAX_SECONDS = 10.0
_HTTP_OWN_CODES = {400, 414, 431}
"""What the HTTP layer itself answers to what is not HTTP; not as a Status."""


class Answer:
    """What came back."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body
        self.is_stream = headers.get("transfer-encoding") == "chunked"
        self.is_last = self.is_stream or headers.get("connection", "").lower() == "close"
        """Whether nothing comes after it."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as bytes, and whether HTTP has room for it as it is."""

    shot: Shot
    data: bytes
    is_proper: bool

    @classmethod
    def of(cls, shot: Shot, random: Random) -> Sent:
        data, has_proper_body = _bytes_of(shot, random)
        return cls(shot, data, has_proper_body and _is_proper(shot))


def _checked(sent: Sent, answer: Answer | None) -> tuple[int, Any]:
    if answer is None:
        if sent.is_proper:
            raise Wrong("the server hung up without an answer")
        return 0, None
    if answer.is_stream or (not sent.is_proper and answer.status in _HTTP_OWN_CODES):
        return answer.status, None
    headers = {name: value for name, value in answer.headers.items() if name == "warning"}
    content_type = answer.headers.get("content-type", "")
    return answer.status, check_answer(sent.shot, answer.status, content_type, headers, answer.body)


class HttpTarget:
    """A server and how to reach it."""

    def __init__(self, server: EmbeddedServer, port: int, complaints: list[str]) -> None:
        self._server = server
        self._port = port
        self._complaints = complaints
        self._tls = ssl.create_default_context(cadata=server.certificate.ca_pem)

    async def _open(self, *, with_tls: bool = True) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self._port, ssl=self._tls if with_tls else None)

    async def fire(self, shots: list[Shot], random: Random) -> list[tuple[int, Any]]:
        """Send requests at once; the result is the codes and the answers that are JSON, in the same order."""
        sent = [Sent.of(shot, random) for shot in shots]
        data = b"".join(each.data for each in sent).replace(TOKEN.encode(), self._server.token.encode())
        answers: list[tuple[int, Any]] = []
        reader, writer = await self._open()
        try:
            async with asyncio.timeout(_MAX_SECONDS):
                await _write(writer, data, random)
                for each in sent:
                    answer = await _read_answer(reader, each.shot.method)
                    answers.append(_checked(each, answer))
                    if answer is None or not each.is_proper or answer.is_last:
                        break
        except TimeoutError:
            raise Wrong(f"no answer in {_MAX_SECONDS} seconds") from None
        except ConnectionError:
            if all(each.is_proper for each in sent):
                raise Wrong("the server broke the connection") from None
        finally:
            await _close(writer)
        self.check_complaints()
        return answers

    async def fire_bytes(self, sent: Bytes) -> list[int]:
        """Send what may not be HTTP; the result is the codes of the answers."""
        codes: list[int] = []
        reader, writer = await self._open(with_tls=sent.with_tls)
        try:
            async with asyncio.timeout(_MAX_SECONDS):
                writer.write(sent.data.replace(TOKEN.encode(), self._server.token.encode()))
                for _ in range(sent.answers):
                    answer = await _read_answer(reader, "GET")
                    if answer is None:
                        break
                    codes.append(answer.status)
        except TimeoutError:
            raise Wrong(f"{sent.name}: no answer in {_MAX_SECONDS} seconds") from None
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # To hang up is a fair answer.
        finally:
            await _close(writer)
        self.check_complaints()
        if any(code >= 500 and code not in (501, 505) for code in codes):
            raise Wrong(f"{sent.name}: answered with {codes}")
        return codes

    async def check(self) -> None:
        """That the server is alive, and quickly so."""
        shot = Shot("GET", "/readyz", "", [("host", "127.0.0.1"), ("authorization", f"Bearer {TOKEN}")])
        begin = asyncio.get_running_loop().time()
        ((code, _),) = await self.fire([shot], Random(0))
        if code != 200:
            raise Wrong(f"/readyz says {code}")
        if asyncio.get_running_loop().time() - begin > SLOW_SECONDS:
            raise Wrong("/readyz is slow")

    def check_complaints(self) -> None:
        """That nothing was logged."""
        if self._complaints:
            found = self._complaints.copy()
            self._complaints.clear()
            raise Wrong(f"the server logged: {found[0]}")


@asynccontextmanager
async def served() -> AsyncIterator[HttpTarget]:
    """A server on a free port."""
    with gathered_complaints("moorage_cluster.apiserver", "moorage.http", "asyncio") as complaints:
        embedded = EmbeddedServer(Settings(version=WITH_GROUPS), random=Random(1))
        listener = listen("127.0.0.1", 0)
        http = HttpServer(embedded.api, embedded.certificate.ssl_context())
        serving = asyncio.ensure_future(http.serve(listener))
        try:
            await http.listens()
            embedded.start()
            yield HttpTarget(embedded, listener.getsockname()[1], complaints)
        finally:
            http.stop()
            await serving
            listener.close()
            embedded.close()


_PIPELINED = (1, 1, 1, 2, 4, 8)
"""How many requests are sent at once."""


async def run_http(
    seed: int, first: int, last: int, at: Callable[[int], None] = lambda number: None
) -> Report:
    """Send requests and noise over a socket to one server; `at` is told the number of each before it is sent.

    The first failure ends it. It holds the requests that were sent last, or, in `why`, what was no request.
    """
    generator, report, begin = Generator(seed), Report(), time.monotonic()
    async with served() as target:
        for shot in generator.prelude():
            await target.fire([shot], Random(0))
        number = first
        while number <= last and not report.failures:
            at(number)
            random = Random(f"{seed}/http/{number}")
            noise = random_bytes(random) if random.randrange(4) == 0 else None
            count = min(last + 1 - number, 1 if noise else random.choice(_PIPELINED))
            shots = [] if noise else [generator.shot(each) for each in range(number, number + count)]
            try:
                if noise:
                    report.count("malformed HTTP", await target.fire_bytes(noise))
                    await target.check()
                for shot, (code, answer) in zip(shots, await _together(target, shots, random), strict=False):
                    generator.memory.learn(shot, code, answer)
                    report.count("pipelined" if count > 1 else "alone on a connection", [code])
            except Wrong as wrong:
                report.failures.append(Failure(number, f"over HTTP: {wrong}\n{noise or ''}", shots))
            number += count
        report.requests = number - first
    report.seconds = time.monotonic() - begin
    return report


async def _together(target: HttpTarget, shots: list[Shot], random: Random) -> list[tuple[int, Any]]:
    return await target.fire(shots, random) if shots else []


def _is_proper(shot: Shot) -> bool:
    """Whether HTTP can carry a request."""
    target = shot.path + (f"?{shot.query}" if shot.query else "")
    return (
        len(target) < 8000
        and bool(_PROPER.fullmatch(target))
        and all(_PROPER_VALUE.fullmatch(value) and value == value.strip() for _, value in shot.headers)
        and shot.method not in ("CONNECT", "BREW")
    )


def _bytes_of(shot: Shot, random: Random) -> tuple[bytes, bool]:
    """A request as bytes, and whether its body is as HTTP has it."""
    target = shot.path + (f"?{shot.query}" if shot.query else "")
    lines = [f"{shot.method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in shot.headers)]
    head = "\r\n".join(lines).encode("latin-1", "replace")
    if not shot.body and random.randrange(2):
        return head + b"\r\n\r\n", True
    if shot.body and len(shot.body) < 100_000 and random.randrange(4) == 0:
        chunks, is_proper = chunked(shot.body, random)
        return head + b"\r\ntransfer-encoding: chunked\r\n\r\n" + chunks, is_proper
    return head + b"\r\ncontent-length: %d\r\n\r\n" % len(shot.body) + shot.body, True


async def _write(writer: asyncio.StreamWriter, data: bytes, random: Random) -> None:
    """Write at once, or in two parts that come one after the other."""
    at = random.randrange(len(data)) if random.randrange(3) == 0 else len(data)
    writer.write(data[:at])
    if at < len(data):
        await writer.drain()
        await asyncio.sleep(0)
        writer.write(data[at:])


async def _read_answer(reader: asyncio.StreamReader, method: str) -> Answer | None:
    """The next answer; None if the server hung up instead. Of a stream, only the head is read."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    first, *lines = head.decode("latin-1").strip().split("\r\n")
    match = re.fullmatch(r"HTTP/1\.[01] (\d{3})(?: .*)?", first)
    if match is None:
        raise Wrong(f"no HTTP: {first!r}")
    status = int(match[1])
    if status == 100:
        return await _read_answer(reader, method)
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not re.fullmatch(r"[\w-]+", name):
            raise Wrong(f"a header that is none: {line!r}")
        headers[name.lower()] = value.strip()
    if method == "HEAD" or status == 304 or "content-length" not in headers:
        return Answer(status, {**headers, "content-type": headers.get("content-type", "text/plain")}, b"")
    return Answer(status, headers, await reader.readexactly(int(headers["content-length"])))


async def _close(writer: asyncio.StreamWriter) -> None:
    """Hang up at once: a server whose answers are not read does not see a polite end before its deadline."""
    writer.transport.abort()
    with suppress(ConnectionError, ssl.SSLError, TimeoutError):  # The server may have been first.
        await writer.wait_closed()
