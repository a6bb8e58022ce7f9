"""The memory and time of every check of a text are proportional to its length."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from random import Random

import pytest

from moorage.api.names import dns_subdomain_problems, label_value_problems
from moorage.api.selectors import Operator, SelectorError, parse_integer, requirement
from moorage.api.text_cache import cached_by_text
from moorage.apimachinery.errors import ApiError
from moorage.apimachinery.fields import FieldError
from moorage_cluster.apiserver.extensions import patterns
from moorage_cluster.apiserver.extensions.formats import _BY_NAME, conforms
from moorage_cluster.apiserver.extensions.patterns import TooMuchWorkError, compiled
from moorage_cluster.apiserver.extensions.values import ValueCheck
from moorage_cluster.apiserver.selector_parsing import parse_field_selector, parse_label_selector

_ATTACK = """
import resource, sys
from moorage_cluster.apiserver.extensions.formats import conforms
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
for name in sys.argv[1:]:
    for unit in ("1", "0", "1 ", "1h", "0.", "a.", "-", "(", "[", "rgb("):
        conforms(unit * (100_000 // len(unit)) + "!", name)
"""


def test_no_format_is_slow_about_any_long_text() -> None:
    """100 KB: what is quadratic takes many minutes, what is linear a moment; the limit is on CPU time."""
    subprocess.run([sys.executable, "-c", _ATTACK, *_BY_NAME], check=True, timeout=600)


@pytest.mark.parametrize("text", ["1h30m", "1.5h", ".5s", "-0", "3 days", "12 weeks", "in 2min", "1ms1ns"])
def test_durations_are_still_durations(text: str) -> None:
    assert conforms(text, "duration")


@pytest.mark.parametrize("text", ["", "h", "1", "1x", "1 1", "days", "."])
def test_other_texts_are_still_not(text: str) -> None:
    assert not conforms(text, "duration")


def test_email_with_comments_in_comments_is_refused_like_any_other() -> None:
    assert not conforms("(" * 1000, "email")


def test_long_text_cannot_keep_a_large_pattern_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "_MAX_WORK", 300_000)
    pattern = compiled("(a|b)*a(a|b){400}$")
    random = Random(1)
    text = "".join(random.choices("ab", k=5_000)) + "c"
    with pytest.raises(TooMuchWorkError):
        pattern.occurs_in(text)
    assert pattern._work <= 300_000 + 2000, "it stops in the set of states that is one too many"
    assert pattern.occurs_in("a" * 420), "shorter texts are matched as before"
    problems: list[FieldError] = []
    ValueCheck({"type": "string", "pattern": "(a|b)*a(a|b){400}$"}).run(text, "x", problems)
    assert [error.detail for error in problems] == ["x in body takes too long to match '(a|b)*a(a|b){400}$'"]


def test_pattern_that_backtracks_elsewhere_looks_at_each_character_once() -> None:
    pattern = compiled("^(a+)+$")
    assert not pattern.occurs_in("a" * 100_000 + "!")
    assert pattern._work < 100


def test_long_texts_are_not_remembered() -> None:
    asked = []

    @cached_by_text(count=10)
    def length(text: str) -> int:
        asked.append(text)
        return len(text)

    for _ in range(2):
        assert [length("a"), length("a" * 1000)] == [1, 1000]
    assert [len(text) for text in asked] == [1, 1000, 1000]


@pytest.mark.parametrize("ask", [parse_label_selector, parse_field_selector, label_value_problems])
def test_memories_of_texts_do_not_keep_long_ones(ask: object) -> None:
    recalled = ask.__closure__  # type: ignore[attr-defined]
    memory = next(cell.cell_contents for cell in recalled if hasattr(cell.cell_contents, "cache_info"))
    before = memory.cache_info().currsize
    for index in range(3):
        with suppress(ApiError):
            ask(f"a={index}{'x' * 5000}")  # type: ignore[operator]
    assert memory.cache_info().currsize == before


def test_selector_with_many_values_looks_once_at_each_object() -> None:
    (wanted,) = parse_label_selector(f"app in ({','.join(f'v{index}' for index in range(20_000))})")
    assert isinstance(wanted.values, frozenset)
    assert wanted.matches({"app": "v19999"})
    assert not wanted.matches({"app": "w"})


def test_endless_number_in_a_selector_is_an_error_and_no_crash() -> None:
    assert parse_integer("9" * 5000) is None
    assert parse_integer("-" + "0" * 5000 + "12") == -12
    with pytest.raises(SelectorError):
        requirement("a", Operator.GT, ["9" * 5000])
    with pytest.raises(ApiError):
        parse_label_selector(f"a>{'9' * 5000}")


def test_names_of_any_length_are_validated() -> None:
    assert dns_subdomain_problems("a" * 100_000)
