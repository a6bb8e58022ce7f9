"""Bodies in chunks: odd sizes, extensions and trailers, which are proper, and sizes that are not."""

from __future__ import annotations

from random import Random

from tests.apiserver.fuzzing.values import chance

_EXTENSIONS = (b"", b"", b"", b";a", b";a=b", b';a="b;c"', b" ; a = b", b";" + b"x" * 2000)
_TRAILERS = (
    b"",
    b"",
    b"",
    b"X-Trailer: 1\r\n",
    b"Content-Length: 3\r\n",
    b"Host: evil.example\r\n",
    b"X: 1\r\n" * 50,
)
_IMPROPER_SIZES = (b"", b"x", b"-1", b"+1", b"0x5", b" 5", b"5 5", b"f" * 17, b"1e1", b"5\n", b"\x00")


def chunked(body: bytes, random: Random) -> tuple[bytes, bool]:
    """A body as chunks, and whether a server has to understand them."""
    out, is_proper = [], True
    at = 0
    while at < len(body):
        size = min(len(body) - at, random.choice((1, 2, 7, 255, 256, 1000, 65_536)), len(body))
        if at > 5000:
            size = len(body) - at
        written = b"%x" % size
        if chance(random, 6):
            written = random.choice((written.upper(), b"0" * random.choice((1, 7)) + written))
        if chance(random, 400):
            written, is_proper = random.choice(_IMPROPER_SIZES), False
        extension = random.choice(_EXTENSIONS) if chance(random, 8) else b""
        is_proper = is_proper and extension.count(b" ") == 0 and len(extension) < 1000
        out.append(written + extension + b"\r\n" + body[at : at + size] + b"\r\n")
        at += size
    trailer = random.choice(_TRAILERS)
    is_proper = is_proper and not trailer
    return b"".join(out) + b"0\r\n" + trailer + b"\r\n", is_proper
