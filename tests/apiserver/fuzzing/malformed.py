"""HTTP that is not quite HTTP: bytes for a connection, and whether an answer must come."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

_HEAD = b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
_POST = (
    b"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    b"Authorization: Bearer {token}\r\nContent-Type: application/json\r\n"
)
_BODY = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"f-"}}'
_LENGTH = b"Content-Length: %d\r\n\r\n" % len(_BODY)


@dataclass(frozen=True, slots=True)
class Bytes:
    """What to write to a connection."""

    name: str
    data: bytes
    answers: int = 1
    """So many answers must come, or the server must hang up; 0: it may wait for more."""
    with_tls: bool = True


MALFORMED: tuple[Bytes, ...] = (
    Bytes("nothing", b"", 0),
    Bytes("half a request line", b"GET /rea", 0),
    Bytes("half a head", _HEAD, 0),
    Bytes("half a body", _POST + _LENGTH + _BODY[:20], 0),
    Bytes("a chunk and no end", _POST + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n", 0),
    Bytes("a chunk's length is no number",
    _POST + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\nabc\r\n0\r\n\r\n"),
    Bytes("a chunk's length is negative",
    _POST + b"Transfer-Encoding: chunked\r\n\r\n-5\r\nabc\r\n0\r\n\r\n"),
    Bytes("a chunk's length is huge",
    _POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 40 + b"\r\nabc\r\n"),
    Bytes("a chunk is longer than it says",
    _POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\nabcdef\r\n0\r\n\r\n"),
    Bytes("chunks that are well",
    _POST + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(_BODY), _BODY)),
    Bytes("an unknown transfer encoding", _POST + b"Transfer-Encoding: bogus\r\n" + _LENGTH + _BODY),
    Bytes("length and chunks", _POST + b"Transfer-Encoding: chunked\r\n" + _LENGTH + b"0\r\n\r\n"),
    Bytes("two lengths", _POST + b"Content-Length: 3\r\n" + _LENGTH + _BODY),
    Bytes("a negative length", _POST + b"Content-Length: -5\r\n\r\n" + _BODY),
    Bytes("a length that is no number", _POST + b"Content-Length: 1e3\r\n\r\n" + _BODY),
    Bytes("a length beyond 64 bits", _POST + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n" + _BODY),
    Bytes("too short a length", _POST + b"Content-Length: 5\r\n\r\n" + _BODY),
    Bytes("a body that is too long", _POST + b"Content-Length: 4000000\r\n\r\n" + b" " * 4_000_000),
    Bytes("a body that would be too long", _POST + b"Content-Length: 99999999999\r\n\r\n", 0),
    Bytes("three at once", (_HEAD + b"\r\n") * 3, 3),
    Bytes("a write and two reads at once", _POST + _LENGTH + _BODY + (_HEAD + b"\r\n") * 2, 3),
    Bytes("one and then nonsense", _HEAD + b"\r\n\x00\xff\x00\xff\r\n\r\n"),
    Bytes("a header of 100 kB", _HEAD + b"X: " + b"a" * 100_000 + b"\r\n\r\n"),
    Bytes("a header that never ends", _HEAD + b"X: " + b"a" * 3_000_000),
    Bytes("a trailer that never ends",
    _POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: " + b"a" * 30_000_000),
    Bytes("5,000 headers", _HEAD + b"X: y\r\n" * 5000 + b"\r\n"),
    Bytes("a path of 100 kB", _HEAD.replace(b"/readyz", b"/" + b"a" * 100_000) + b"\r\n"),
    Bytes("a header without a colon", _HEAD + b"bogus\r\n\r\n"),
    Bytes("a header without a name", _HEAD + b": x\r\n\r\n"),
    Bytes("a folded header", _HEAD + b"X: a\r\n b\r\n\r\n"),
    Bytes("a zero byte in a header", _HEAD + b"X: a\x00b\r\n\r\n"),
    Bytes("a zero byte in the path", _HEAD.replace(b"/readyz", b"/a\x00b") + b"\r\n"),
    Bytes("a space in the path", _HEAD.replace(b"/readyz", b"/a b") + b"\r\n"),
    Bytes("no path", _HEAD.replace(b"/readyz ", b"") + b"\r\n"),
    Bytes("a path without a slash", _HEAD.replace(b"/readyz", b"readyz") + b"\r\n"),
    Bytes("a whole address as path", _HEAD.replace(b"/readyz", b"https://127.0.0.1/readyz") + b"\r\n"),
    Bytes("a foreign address as path", _HEAD.replace(b"/readyz", b"http://evil.example/readyz") + b"\r\n"),
    Bytes("a star as path", _HEAD.replace(b"GET /readyz", b"OPTIONS *") + b"\r\n"),
    Bytes("a fragment", _HEAD.replace(b"/readyz", b"/readyz#x?y") + b"\r\n"),
    Bytes("only line feeds", _HEAD.replace(b"\r\n", b"\n") + b"\n"),
    Bytes("only carriage returns", _HEAD.replace(b"\r\n", b"\r") + b"\r", 0),
    Bytes("a method in lower case", _HEAD.replace(b"GET", b"get") + b"\r\n"),
    Bytes("a method of 10 kB", _HEAD.replace(b"GET", b"G" * 10_000) + b"\r\n"),
    Bytes("HTTP/1.0", _HEAD.replace(b"HTTP/1.1", b"HTTP/1.0") + b"\r\n"),
    Bytes("HTTP/0.9", b"GET /readyz\r\n\r\n"),
    Bytes("HTTP/9.9", _HEAD.replace(b"HTTP/1.1", b"HTTP/9.9") + b"\r\n"),
    Bytes("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"),
    Bytes("no Host", b"GET /readyz HTTP/1.1\r\n\r\n"),
    Bytes("two Hosts", _HEAD + b"Host: evil.example\r\n\r\n"),
    Bytes("two tokens", _HEAD + b"Authorization: Bearer x\r\n\r\n"),
    Bytes("a WebSocket",
    _HEAD + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n"),
    Bytes("an upgrade to SPDY", _HEAD + b"Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n"),
    Bytes("expects to be told to go on", _POST + b"Expect: 100-continue\r\n" + _LENGTH + _BODY),
    Bytes("a body that says GET", _HEAD + _LENGTH + _BODY),
    Bytes("plain HTTP", _HEAD + b"\r\n", 0, with_tls=False),
    Bytes("no TLS at all", b"\x16\x03\x01\xff\xff" + b"\x00" * 200, 0, with_tls=False),
)  # fmt: skip


def random_bytes(random: Random) -> Bytes:
    """One of them, or noise, or one of them with noise in it."""
    chosen = random.choice(MALFORMED)
    if random.randrange(4):
        return chosen
    data = bytearray(chosen.data[:20_000] or random.randbytes(200))
    for _ in range(random.choice((1, 3, 10))):
        data[random.randrange(len(data))] = random.randrange(256)
    return Bytes(f"{chosen.name}, with noise", bytes(data), 0, chosen.with_tls)
