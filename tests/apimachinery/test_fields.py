from __future__ import annotations

import pytest

from moorage.apimachinery.fields import (
    OMITTED,
    FieldError,
    complaints,
    invalid,
    not_supported,
    too_long,
    too_many,
)

MESSAGES: dict[str, tuple[FieldError, str]] = {
    "a value": (invalid("a.b", 'say "x"', "no"), 'a.b: Invalid value: "say \\"x\\"": no'),
    "a value left out": (invalid("a.b", OMITTED, "no"), "a.b: Invalid value: no"),
    "nothing as a value": (invalid("a.b", None, "no"), "a.b: Invalid value: null: no"),
    "a large fraction": (invalid("a", 1234567.5, "no"), "a: Invalid value: 1.2345675e+06: no"),
    "known words in the order given": (
        not_supported("a", "c", ("b", "a")),
        'a: Unsupported value: "c": supported values: "b", "a"',
    ),
    "no known words": (not_supported("a", "c", ()), 'a: Unsupported value: "c"'),
    "too many bytes": (too_long("a", 2), "a: Too long: may not be more than 2 bytes"),
    "more than a byte": (too_long("a", 1), "a: Too long: may not be more than 1 byte"),
    "too many items": (too_many("a", 3, 2), "a: Too many: 3: must have at most 2 items"),
    "more than an item": (too_many("a", 2, 1), "a: Too many: 2: must have at most 1 item"),
}


@pytest.mark.parametrize(("error", "text"), MESSAGES.values(), ids=MESSAGES)
def test_messages(error: FieldError, text: str) -> None:
    assert str(error) == text


def test_one_error_a_complaint() -> None:
    assert complaints("a", 1, ("no", "never")) == [invalid("a", 1, "no"), invalid("a", 1, "never")]
