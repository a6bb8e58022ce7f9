"""Expressions that would take for ever, or all memory, without limits."""

from __future__ import annotations

import sys
import tracemalloc

import pytest

from moorage.cel.budget import COST_LIMIT, WORK_LIMIT, Budget, CostLimitError, WorkBudget, WorkLimitError
from moorage.cel.logic import BUDGET
from moorage.cel.program import (
    MAX_EXPRESSION_BYTES,
    MAX_TOKENS,
    TOKEN_WORK,
    CompileError,
    _Compiled,
    compile_selector,
)
from moorage.cel.values import CelError
from tests.cel.test_device_selectors import FACTS, A

CANCELLED = "operation cancelled: actual cost limit exceeded"
MAX_BYTES = 32 * 1024 * 1024


def bound(start: str, step: str, times: int, end: str) -> str:
    """Variables a0, a1, ..., each made of the one before (`{}`), and an expression over the last."""
    binds = "".join(
        f"cel.bind(a{i + 1}, {step.format(*[f'a{i}'] * step.count('{}'))}, " for i in range(times)
    )
    return f"cel.bind(a0, {start}, {binds}{end.format(*[f'a{times}'] * end.count('{}'))}" + ")" * (times + 1)


TOO_COSTLY = {
    "a million numbers, each compared with all others": "lists.range(1000000).distinct().size() > 0",
    "a list that memory has no room for": "lists.range(9000000000000000000).size() > 0",
    "a sum of a list that memory has no room for": "lists.range(9000000000000000000).sum() > 0",
    "a sorted list": "lists.range(1000).sort().size() > 0",
    "sets": "sets.equivalent(lists.range(1000), lists.range(1000))",
    "a text ten times as long, seven times": bound('"0123456789"', "+".join(["{}"] * 10), 7, '{} != ""'),
}

TOO_MUCH_WORK = {
    "a text doubled behind the checker's back": bound(f"{A}.text", "{} + {}", 28, '{} != ""'),
    "bytes doubled behind the checker's back": bound('dyn(b"abc")', "{} + {}", 28, '{} != b""'),
    "a list doubled": bound("[1]", "{} + {}", 28, "{}.size() > 0"),
    "lists of the same list, compared": bound("[1]", "[{}, {}]", 22, "[{}] == [{}]"),
    "lists of the same list, flattened": bound("[1]", "[{}, {}].flatten()", 25, "{}.size() > 0"),
    "lists of the same list, flattened deep": bound("[1]", "[{}, {}]", 22, "{}.flatten(30).size() > 0"),
    "optionals of the same optional, compared": bound(
        "[1]", "[optional.of({}), optional.of({})]", 18, "{} == {}"
    ),
    "lists of the same list, as a text": bound("[1]", "[{}, {}]", 20, '"%s".format([{}]) != ""'),
    "lists of the same list, searched": bound("[1]", "[{}, {}]", 20, "[{}].indexOf([1]) > 0"),
    "maps of the same map, compared": bound(
        "{1: 1}", "{{1: dyn({}), 2: dyn({})}}", 25, "{{1: dyn({})}} == {{1: 1}} || true"
    ),
    "a text with itself put in for each letter": bound(f"{A}.text", '{}.replace("", {})', 8, "{}.size() > 0"),
    "a text put in for each letter": '"aaaaaaaaaa"' + '.replace("a", "aaaaaaaaaa")' * 9 + ".size() > 0",
    "a call of the library in a loop": 'lists.range(90000).all(x, string(x) != "")',
    "a pattern of many states in a loop": 'lists.range(900).all(x, !"x".matches("(a{100}){9}|b{1000}"))',
}


@pytest.mark.parametrize("expression", TOO_COSTLY.values(), ids=TOO_COSTLY)
def test_an_expression_cannot_cost_more_than_the_limit(expression: str) -> None:
    work = WorkBudget(2 * COST_LIMIT)
    tracemalloc.start()
    with pytest.raises(CelError, match=CANCELLED):
        compile_selector(expression).matches(FACTS, work)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MAX_BYTES
    assert work.left >= 0


@pytest.mark.parametrize("expression", TOO_MUCH_WORK.values(), ids=TOO_MUCH_WORK)
def test_an_expression_cannot_take_more_work_than_an_attempt_has(expression: str) -> None:
    selector = compile_selector(expression)
    tracemalloc.start()
    with pytest.raises(WorkLimitError, match=f"exceeds the limit of {WORK_LIMIT} units of work"):
        selector.matches(FACTS, WorkBudget())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MAX_BYTES


FORGIVING = (
    "lists.range(99).all(a, lists.range(99).all(b, a / 0 == 1)) || true",
    "lists.range(99).exists(a, lists.range(99).all(b, true))",
    "[lists.range(99).all(a, lists.range(99).all(b, true))].exists(x, x)",
)


@pytest.mark.parametrize("expression", FORGIVING)
def test_no_operator_forgives_that_the_limit_was_reached(expression: str) -> None:
    budget = Budget(WorkBudget())
    budget.left = 200
    with pytest.raises(CostLimitError):
        compile_selector(expression)._evaluate({BUDGET: budget})


def test_equal_values_of_different_types_count_once() -> None:
    answers = {
        "[1, 2, 1].distinct() == [1, 2]": True,
        "[dyn(1), dyn(1u), dyn(1.0), dyn(true), dyn('1')].distinct().size() == 3": True,
        "sets.equivalent([dyn(1), dyn(2u)], [dyn(2.0), dyn(1u)])": True,
        "sets.contains([dyn(1)], [dyn(true)])": False,
        "sets.intersects([[1], [2, 3]], [[1, 2], [2, 3]])": True,
        "[quantity('1'), quantity('1000m')].distinct().size() == 1": True,
        "[0.0 / 0.0, 0.0 / 0.0].distinct().size() == 2": True,
        "['b', 'a', 'b'].sort() == ['a', 'b', 'b']": True,
        "1.0 in [1.0, 2.0] && !(3.0 in [1.0, 2.0])": True,
    }
    for expression, answer in answers.items():
        assert compile_selector(expression).matches(FACTS, WorkBudget()) is answer, expression


FAILING = {
    "[9223372036854775807, 1].sum() > 0": "integer overflow",
    "{dyn([1]): 1}.size() == 1": "unsupported key type: list",
    "dyn(device.capacity) > dyn(device.capacity)": "no such overload",
    "{'a': 1}[?dyn([1])].hasValue()": "no such overload",
    "device.attributes[?dyn([1])].hasValue()": "no such overload",
    "dyn([1]).lastIndexOf(dyn(1), dyn(1)) == 0": "no such overload",
    'quantity("1e99999999999").asApproximateFloat() > 1.0': ".+",
    f'semver("{"9" * 5000}.0.0") == semver("1.0.0")': ".+",
}


@pytest.mark.parametrize(("expression", "reason"), FAILING.items(), ids=range(len(FAILING)))
def test_odd_values_fail_as_expressions_do(expression: str, reason: str) -> None:
    with pytest.raises(CelError, match=reason):
        compile_selector(expression).matches(FACTS, WorkBudget())


# Compiling

TOO_LARGE = {
    "long": '"' + "x" * MAX_EXPRESSION_BYTES + '" == ""',
    "many signs": "[" + "1," * MAX_TOKENS + "1].size() > 0",
    "deep brackets": "[" * 4000 + "]" * 4000,
    "deep loops": "[1].all(a, " * 60 + "true" + ")" * 60,
    "a long sum": "1" + "+1" * 400 + " > 0",
}


@pytest.mark.parametrize("expression", TOO_LARGE.values(), ids=TOO_LARGE)
def test_a_large_expression_is_not_compiled(expression: str) -> None:
    with pytest.raises(CompileError):
        compile_selector(expression)


def test_the_deepest_expressions_need_few_calls_inside_each_other() -> None:
    limit = sys.getrecursionlimit()
    depth = 0
    frame = sys._getframe()
    while frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back
    for opening, closing, times in (
        ("[1].all(a, ", ")", 28),
        ("[1].filter(a, ", ").size() == 1", 9),
        ("!(", ")", 28),
    ):
        expression = opening * times + "true" + closing * times
        sys.setrecursionlimit(depth + 500)
        try:
            selector = compile_selector(expression)
            selector.matches(FACTS, WorkBudget())
            assert selector.max_cost > 0 or opening == "!("
        finally:
            sys.setrecursionlimit(limit)


def test_compiling_counts_as_work_once() -> None:
    work = WorkBudget()
    compile_selector("1 + 1 == 2 && 3 > 2 && 7 != 9", work)
    spent = work.limit - work.left
    assert spent == 17 * TOKEN_WORK
    compile_selector("1 + 1 == 2 && 3 > 2 && 7 != 9", work)
    assert work.limit - work.left == spent


def test_only_so_much_is_kept_of_what_was_compiled() -> None:
    held = _Compiled(100)
    for number in range(20):
        held.get(f"{number} == 1", None)
        assert held.tokens <= 100
    assert list(held._held) == [f"{number} == 1" for number in range(15, 20)]
