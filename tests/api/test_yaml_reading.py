"""YAML from outside: what is read of it, and what would cost too much."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
import yaml

from moorage.api.yaml_reading import MAX_DEPTH, YamlError, YamlLimits, load_all_yaml, load_yaml
from moorage_cluster.apiserver.rest.yaml_bodies import parse_yaml_body, repeated_keys

DEEP = 100_000
ATTACKS_WITHIN_SECONDS = 60
READERS = """
import sys
from pathlib import Path
from moorage.api.decode import InputError
from moorage.api.files import load_documents
from moorage.apimachinery.errors import ApiError
from moorage_cluster.apiserver.rest.yaml_bodies import parse_yaml_body, repeated_keys
from moorage.http.errors import KubeconfigError
from moorage.client.kubeconfig import choose
from moorage.config.load import read_document

for path in map(Path, sys.argv[1:]):
    text = path.read_text()
    for read in (
        lambda: parse_yaml_body(text.encode()),
        lambda: load_documents(text, "file"),
        lambda: read_document(path),
        lambda: choose([path]),
    ):
        try:
            print("read", read())
        except (ApiError, InputError, KubeconfigError) as error:
            print(len(str(error).splitlines()))
    print(repeated_keys(text.encode()))
"""


def test_deeply_nested_yaml_does_not_end_the_process(tmp_path: Path) -> None:
    files = []
    for number, opening in enumerate(("- ", "[", "{a: ", "? ", "!!set {")):
        files.append(tmp_path / f"{number}.yaml")
        files[-1].write_text(opening * DEEP)
    done = subprocess.run(
        [sys.executable, "-c", READERS, *map(str, files)],
        capture_output=True,
        text=True,
        timeout=ATTACKS_WITHIN_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done
    assert done.stdout.splitlines() == [*"1111", "[]"] * len(files)


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def test_the_deepest_that_is_read() -> None:
    value, depth = load_yaml(nested(MAX_DEPTH)), 0
    while value:
        (value,), depth = value, depth + 1
    assert depth == MAX_DEPTH - 1
    assert parse_yaml_body(nested(MAX_DEPTH).encode())
    with pytest.raises(YamlError, match=f"^line 1: nested more than {MAX_DEPTH} deep$"):
        load_yaml(nested(MAX_DEPTH + 1))


def bomb(levels: int) -> str:
    """A text that is tenfold its size with every level."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for level in range(1, levels):
        lines.append(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]")
    return "\n".join(lines)


def test_a_bomb_of_aliases_is_refused_before_it_goes_off() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(YamlError, match="document contains excessive aliasing"):
            load_yaml(bomb(12))
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_aliases_that_nest_are_as_deep_as_what_comes_of_them() -> None:
    text = "a0: &a0 []\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, MAX_DEPTH + 1))
    with pytest.raises(YamlError, match=f"^line {MAX_DEPTH}: nested more than {MAX_DEPTH} deep$"):
        load_yaml(text)


def test_aliases_in_files_are_read_as_kubectl_does() -> None:
    first, second = load_all_yaml("a: &a {k: 1}\nb: *a\nc: {<<: *a, l: 2}\n---\nd: &a []\n")
    assert first == {"a": {"k": 1}, "b": {"k": 1}, "c": {"k": 1, "l": 2}}
    assert second == {"d": []}
    shared = f"all: &all {[0] * 99}\nuses: [{', '.join(['*all'] * 90)}]"
    assert len(load_yaml(shared)["uses"]) == 90


REFUSED = {
    "in itself": ("a: &a [*a]", "a value contains itself; write it out instead of using an alias"),
    "unknown": ("a: *b", "found undefined alias 'b'"),
    "of the document before": ("a: &a 1\n---\nb: *a", "found undefined alias 'a'"),
    "a tag that does not fit": ("a: !!bool maybe", "a tag does not fit its value"),
    "a moment that is none": ("a: !!timestamp x", "a tag does not fit its value"),
    "a number of many digits": (f"a: {'9' * 4301}", "is not a number"),
    "directives that are compared": (
        "%TAG !a! b\n" * 101 + "---\na: b",
        "100 TAG directives",
    ),
    "bytes that are no text": ("a: \x00", "not allowed"),
}


@pytest.mark.parametrize(("text", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_in_a_line(text: str, reason: str) -> None:
    with pytest.raises(YamlError) as caught:
        load_all_yaml(text)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_body_may_have_no_alias() -> None:
    assert yaml.__with_libyaml__, "the composer in C has no limit on aliases"
    limits = YamlLimits(allows_aliases=False)
    with pytest.raises(YamlError, match=r"^line 2: aliases are not supported$"):
        load_yaml("a: &a 1\nb: *a", limits)
    assert load_yaml("a: &a 1", limits) == {"a": 1}
    assert repeated_keys(b"a: &a {}\nb: *a\nb: *a") == []


def test_a_text_may_have_so_many_values() -> None:
    assert load_yaml("[a, b]", YamlLimits(max_nodes=3)) == ["a", "b"]
    with pytest.raises(YamlError, match="more than 3 values"):
        load_yaml("[a, b, c]", YamlLimits(max_nodes=3))


def test_times_and_times_of_the_day_are_text() -> None:
    text = "{a: 2026-01-01, b: 1:30:00, c: 0x10, d: 1e3, e: yes}"
    assert load_yaml(text) == {"a": "2026-01-01", "b": "1:30:00", "c": 16, "d": 1000.0, "e": True}
