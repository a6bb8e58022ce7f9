from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage_cluster.apiserver.extensions.pattern_syntax import PatternError
from moorage_cluster.apiserver.extensions.patterns import compiled

MATCHES = [
    (r"^a+$", "aaa", "aab"),
    (r"b", "abc", "aac"),
    (r"^$", "", "\n"),
    (r"^\d{2,3}$", "123", "1234"),
    (r"^a{2}$", "aa", "a"),
    (r"^a{2,}$", "aaaa", "a"),
    (r"^(ab|c)*d$", "abcabd", "abbd"),
    (r"^[^a-c\]]$", "d", "]"),
    (r"^[]a]$", "]", "b"),
    (r"^[a\-z]$", "-", "b"),
    (r"\bfoo\b", "a foo b", "afoo"),
    (r"o\B", "fob", "fo"),
    (r"(?i)^abc$", "aBC", "abd"),
    (r"^a(?i)b|c$", "xC", "Ax"),
    (r"^(?i:a)b$", "Ab", "AB"),
    (r"(?m)^b$", "a\nb\nc", "a\nbc"),
    (r"(?s)^a.b$", "a\nb", "ab"),
    (r"^a.b$", "axb", "a\nb"),
    (r"^[[:alpha:]_]+$", "a_b", "a1"),
    (r"^[[:^digit:]]$", "a", "1"),
    (r"^\pL\p{Nd}$", "ä1", "11"),
    (r"^\P{L}$", "1", "a"),
    (r"^\x41\x{42}\103$", "ABC", "ABD"),
    (r"^\Qa.b\E$", "a.b", "axb"),
    (r"^(?P<n>a)(?<m>b)$", "ab", "a"),
    (r"^a{,3}$", "a{,3}", "aa"),
    (r"^a??b*?$", "abb", "ba"),
    (r"^\w+\s\S\W\D$", "ab c-x", "ab c-1"),
    (r"^$|x", "x", "y"),
]


@pytest.mark.parametrize(("pattern", "good", "bad"), MATCHES)
def test_patterns_mean_what_re2_means(pattern: str, good: str, bad: str) -> None:
    assert compiled(pattern).occurs_in(good)
    assert not compiled(pattern).occurs_in(bad)


REFUSED = [
    ("(a", "missing closing ): `(a`"),
    ("a)", "unexpected ): `a)`"),
    ("[a", "missing closing ]: `[a`"),
    ("a**", "invalid nested repetition operator: `**`"),
    ("*", "missing argument to repetition operator: `*`"),
    ("(?!a)", "invalid or unsupported Perl syntax: `(?!`"),
    ("(?<=a)", "invalid or unsupported Perl syntax: `(?<`"),
    (r"(a)\1", r"invalid escape sequence: `\1`"),
    (r"a\Z", r"invalid escape sequence: `\Z`"),
    ("a{1001}", "invalid repeat count: `{1001}`"),
    ("[z-a]", "invalid character class range: `z-a`"),
    ("a\\", "trailing backslash at end of expression: ``"),
    ("((a{500}){500}){500}", "expression too large: `((a{500}){500}){500}`"),
    ("(" * 1000, "expression nests too deeply: `" + "(" * 1000 + "`"),
    (r"\p{Klingon}", r"invalid character class range: `\p{Klingon}`"),
]


@pytest.mark.parametrize(("pattern", "problem"), REFUSED)
def test_what_re2_does_not_know_is_refused_in_its_words(pattern: str, problem: str) -> None:
    with pytest.raises(PatternError) as raised:
        compiled(pattern)
    assert str(raised.value) == f"error parsing regexp: {problem}"


def test_patterns_that_stall_others_do_not_stall() -> None:
    assert not compiled(r"^(a+)+$").occurs_in("a" * 20_000 + "b")
    assert not compiled(r"^(a|a)*$").occurs_in("a" * 20_000 + "b")


SAFE = [r"^(a|b)*c$", r"a+b?c*", r"^[ab]{1,3}c?$", r"(ab|a)(bc|c)", r"\Ba\b", r"^(a(b|c)?)+$"]


@given(st.sampled_from(SAFE), st.text("abc \n", max_size=8))
def test_answers_are_those_of_another_engine(pattern: str, text: str) -> None:
    expected = re.search(pattern.replace("$", r"\Z"), text) is not None
    assert compiled(pattern).occurs_in(text) == expected


@given(st.text(r"ab()[]{}^$\.*+?|-,1:dpQxi<>P", max_size=12), st.text("ab1", max_size=4))
def test_any_text_is_a_pattern_or_is_refused(pattern: str, text: str) -> None:
    with suppress(PatternError):
        compiled(pattern).occurs_in(text)
