"""Protobuf that was valid, damaged where protobuf has structure."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from moorage.apimachinery.protobuf import MAGIC

_LENGTHS = (2**7, 2**14, 2**31 - 1, 2**31, 2**32, 2**63 - 1, 2**64 - 1)
_GROUP_START, _GROUP_END = 3, 4


def varint(number: int) -> bytes:
    """A number as protobuf writes it, in 64 bits."""
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _truncated(body: bytes, random: Random) -> bytes:
    return body[: random.randrange(len(body))] + random.choice((b"", b"\x80", b"\xff" * 9, b"\x80" * 11))


def _huge_length(body: bytes, random: Random) -> bytes:
    at = random.randrange(len(MAGIC), len(body) + 1)
    return body[:at] + varint(random.randrange(1, 20) << 3 | 2) + varint(random.choice(_LENGTHS)) + body[at:]


def _unknown_field(body: bytes, random: Random) -> bytes:
    number = random.choice((0, 15, 1000, 2**29 - 1, 2**29))
    return body + varint(number << 3 | random.randrange(8)) + random.randbytes(random.randrange(12))


def _nested(body: bytes, random: Random) -> bytes:
    inner, number = b"", random.choice((1, 2, 9, 15))
    for _ in range(random.choice((3, 99, 101, 1000))):
        inner = varint(number << 3 | 2) + varint(len(inner)) + inner
    return random.choice((body, MAGIC)) + inner


def _groups(body: bytes, random: Random) -> bytes:
    depth = random.choice((1, 50, 5000))
    opened, closed = varint(7 << 3 | _GROUP_START), varint(7 << 3 | _GROUP_END)
    return body + opened * depth + closed * random.choice((depth, 0, depth + 1))


def _other_wire_type(body: bytes, random: Random) -> bytes:
    at = random.randrange(len(MAGIC), len(body))
    return body[:at] + bytes((body[at] & 0xF8 | random.randrange(8),)) + body[at + 1 :]


def _repeated(body: bytes, random: Random) -> bytes:
    return body + body[len(MAGIC) :] * random.choice((1, 3, 50))


_SORTS: tuple[Callable[[bytes, Random], bytes], ...] = (
    _truncated, _huge_length, _unknown_field, _nested, _groups, _other_wire_type, _repeated,
)  # fmt: skip


def damaged(body: bytes, random: Random) -> bytes:
    """A body with one thing wrong, or several."""
    for _ in range(random.choice((1, 1, 3))):
        if len(body) <= len(MAGIC):
            break
        body = random.choice(_SORTS)(body, random)
    return body
