"""YAML that JSON cannot say: depth, aliases, merges, tags, several documents."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random

from tests.apiserver.fuzzing.values import TEXTS, chance

_ODD_ALIASES = (
    "data: *nowhere\n", "data: &a {a: *a}\n", "data: &a [*a]\n", "x: &a 1\ny: &a 2\ndata: {k: *a}\n",
    "? &a a\n: *a\n", "data: &a\n  <<: *a\n", "&a a: &a b\n*a : c\n",
)  # fmt: skip
_SEPARATORS = ("---\n", "...\n---\n", "%YAML 1.2\n---\n", "%YAML 9.9\n---\n", "%TAG ! x\n---\n", "--- |\n")
_KEYS = ("1", "null", "true", "1.5", "2026-03-01", "[a]", "{a: b}", "? [a, b]\n  ", "''", "~", "<<", "=")
_ALIASES = ((2, 9), (9, 9), (100, 2))
"""How often aliases of aliases are made, and how many are in each."""
_DEPTHS = (5, 60, 300, 5000, 28_000)
_TAGS = (
    "!!binary aGk=", "!!binary =", "!!timestamp 2026-03-01", "!!timestamp x", "!!set {a, b}", "!!omap [a: 1]",
    "!!pairs [a: 1, a: 2]", "!!float 1e400", "!!float .nan", "!!int 0o777", "!!int 0b1", "!!int 1:30",
    "!!int x", "!!bool maybe", "!!null x", "!!str 5", "!!seq {a: 1}", "!!map [1]",
    "!!python/object/apply:os.getpid []",
    "!!python/name:os.system", "!local x", "!<tag:example.com,2026:x> y", "! x", "!", "!!merge <<",
    "!!value =",
)  # fmt: skip


def _head(indent: str = "") -> str:
    return f"{indent}apiVersion: v1\n{indent}kind: ConfigMap\n{indent}metadata: {{generateName: y-}}\n"


def _deep(random: Random) -> str:
    depth = random.choice(_DEPTHS)
    opened, closed = random.choice((("[", "]"), ("{a: ", "}"), ("- ", ""), ("? ", ""), ("a:\n", "")))
    if opened == "a:\n":
        return _head() + "data:\n" + "".join(f"{' ' * at}a:\n" for at in range(1, min(depth, 1000)))
    return _head() + "data: " + ("\n" if not closed else "") + opened * depth + "1" + closed * depth


def _aliases(random: Random) -> str:
    levels, width = random.choice(_ALIASES)
    lines = ["a0: &a0 [x, x]"]
    for level in range(1, levels):
        lines.append(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * width)}]")
    return _head() + "\n".join(lines) + f"\ndata: *a{levels - 1}\n"


def _odd_alias(random: Random) -> str:
    return _head() + random.choice(_ODD_ALIASES)


def _merge(random: Random) -> str:
    count = random.choice((1, 3, 200))
    sources = "".join(f"m{at}: &m{at} {{k{at}: v, k: v{at}}}\n" for at in range(count))
    named = ", ".join(f"*m{at}" for at in range(count))
    merged = random.choice((f"[{named}]", "*m0", "1", "[1]", "{a: b}", "[[*m0]]"))
    return _head() + sources + f"data:\n  <<: {merged}\n  k: own\n"


def _tag(random: Random) -> str:
    return _head() + f"data:\n  k: {random.choice(_TAGS)}\n"


def _documents(random: Random) -> str:
    return random.choice(_SEPARATORS).join([_head()] * random.choice((1, 2, 5, 300)))


def _keys(random: Random) -> str:
    key = random.choice(_KEYS)
    return _head() + f"data:\n  {key}: v\n  {key}: w\n"


def _scalars(random: Random) -> str:
    text = random.choice(TEXTS).encode("utf-8", "replace").decode()
    style = random.choice(("|\n    ", ">\n    ", "|9\n    ", "|+\n    ", ">-2\n  ", "'", '"', ""))
    end = style if style in ("'", '"') else ""
    value = json.dumps(text)[1:-1] if style == '"' else text
    return _head() + f"data:\n  k: {style}{value}{end}\n"


_SORTS: tuple[Callable[[Random], str], ...] = (
    _deep, _aliases, _odd_alias, _merge, _tag, _documents, _keys, _scalars,
)  # fmt: skip


def odd_yaml(random: Random) -> bytes:
    """A body of a ConfigMap, in YAML that is seldom written."""
    body = random.choice(_SORTS)(random).encode("utf-8", "replace")
    if chance(random, 10):
        body = body.decode().encode(random.choice(("utf-16", "utf-16-be", "utf-32", "utf-8-sig")))
    return body
