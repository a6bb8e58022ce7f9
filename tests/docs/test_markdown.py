"""Docstrings and help as Markdown."""

from __future__ import annotations

import pytest

from tools.docs.markdown import code, docstring, entries, escaped, table, without_entries


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a *b* [c] <d> e_f", r"a \*b\* \[c\] \<d\> e\_f"),
        ("`a * b` and *", r"`a * b` and \*"),
        ("two\n    lines", "two lines"),
        ("- no list", r"\- no list"),
        ("a ` alone", r"a \` alone"),
    ],
)
def test_only_code_has_a_meaning_in_plain_text(text: str, shown: str) -> None:
    assert escaped(text) == shown


@pytest.mark.parametrize(("text", "shown"), [("a", "`a`"), ("a`b", "`` a`b ``"), ("", "")])
def test_code_may_contain_its_own_quotation_marks(text: str, shown: str) -> None:
    assert code(text) == shown


def test_a_bar_does_not_end_a_cell() -> None:
    assert table(["a"], [["`b|c`"], [escaped("d|e")]]) == "| a |\n| --- |\n| `b\\|c` |\n| d\\|e |"


DOCSTRING = """What it is,
in two lines.

first, second: what both are,
    and more.
third: what it is.

    print("code")
"""


def test_a_docstring_has_paragraphs_lists_and_code() -> None:
    assert docstring(DOCSTRING) == (
        "What it is, in two lines.\n\n"
        "- `first`, `second`: what both are, and more.\n- `third`: what it is.\n\n"
        '```python\nprint("code")\n```'
    )


def test_what_a_docstring_says_of_fields_goes_with_them() -> None:
    both = "what both are, and more."

    assert entries(DOCSTRING) == {"first": both, "second": both, "third": "what it is."}
    assert without_entries("A.\n\nfirst: b.") == "A."
