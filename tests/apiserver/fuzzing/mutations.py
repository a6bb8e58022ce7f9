"""Small damage: to JSON values, and to the bytes of a body."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from tests.apiserver.fuzzing.values import chance, strange, text

_MAX_DEPTH = 200

Place = tuple[Any, Any]
"""A dict or list, and a key or index in it."""


def places(value: Any) -> Iterator[Place]:
    """Every place in a value."""
    open_values = [value]
    while open_values:
        one = open_values.pop()
        if isinstance(one, dict):
            keys: Any = list(one)
        elif isinstance(one, list):
            keys = range(len(one))
        else:
            continue
        for key in keys:
            yield one, key
            open_values.append(one[key])


def copied(value: Any, depth: int = 0) -> Any:
    """A copy of a JSON value, as deep as Python goes."""
    if depth > _MAX_DEPTH:
        return None
    if isinstance(value, dict):
        return {key: copied(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [copied(item, depth + 1) for item in value]
    return value


def mutate(value: Any, random: Random, names: tuple[str, ...]) -> Any:
    """Change one thing in a value, in place; the answer is the value, or what came in place of it."""
    found = list(places(value))
    if not found or chance(random, 100):
        return strange(random)
    holder, key = random.choice(found)
    sort = random.randrange(9)
    if sort < 3:
        holder[key] = strange(random)
    elif sort == 3:
        del holder[key]
    elif sort == 4:
        other, other_key = random.choice(found)
        holder[key] = copied(other[other_key])
    elif sort == 5:
        holder[key] = random.choice(([holder[key]], {"a": holder[key]}, type(holder[key]).__name__, None))
    elif sort == 6 and isinstance(holder, list):
        holder.extend(copied(holder[key]) for _ in range(random.choice((1, 1, 2, 40))))
    elif sort == 7 and isinstance(holder, dict):
        holder[text(random)] = holder.pop(key)
    elif isinstance(holder, dict):
        holder[random.choice(names)] = strange(random)
    else:
        random.shuffle(holder)
    return value


_NOISE = (
    b"\x00", b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"{", b"}", b"[", b'"', b"\\", b",",
    b"\\u0000", b"\\ud800", b"1e99999", b"-", b"NaN", b"&a *a", b"!!python/object:os.system ", b"\n---\n",
    b"? ", b"<<: ", b"\t", b"%", b"k8s\x00", b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", b"{{{{{{",
)  # fmt: skip


def garble(body: bytes, random: Random) -> bytes:
    """Change a body's bytes."""
    for _ in range(random.choice((1, 1, 2, 5))):
        at = random.randrange(len(body) + 1)
        sort = random.randrange(6)
        if sort == 0:
            body = body[:at]
        elif sort == 1:
            body = body[:at] + random.choice(_NOISE) + body[at:]
        elif sort == 2 and at < len(body):
            body = body[:at] + bytes((body[at] ^ (1 << random.randrange(8)),)) + body[at + 1 :]
        elif sort == 3:
            end = min(len(body), at + random.randrange(40))
            body = body[:at] + body[end:]
        elif sort == 4:
            end = min(len(body), at + random.randrange(40))
            body = body[:end] + body[at:end] * random.choice((1, 3, 300)) + body[end:]
        else:
            body = random.choice(
                (b"[" * 5000, b'{"a":' * 5000, b"- " * 3000, b"\x0a" * 3000, b"", random.randbytes(50))
            )
    return body
