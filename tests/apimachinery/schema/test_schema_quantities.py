"""Quantities come back as Kubernetes writes them."""

from __future__ import annotations

import pytest

from moorage.apimachinery.schema.quantities import (
    WRONG_FORMAT,
    WRONG_SUFFIX,
    canonical_quantity,
)

CANONICAL = {
    # decimal
    "0": "0",
    "00": "0",
    "0.0": "0",
    "1": "1",
    "100": "100",
    "1000": "1k",
    "1001": "1001",
    "1000000": "1M",
    "1000m": "1",
    "100000m": "100",
    "0.5": "500m",
    ".5": "500m",
    "1.5": "1500m",
    "1.10": "1100m",
    "-1": "-1",
    "-1000m": "-1",
    "-0": "0",
    "0.1n": "1n",
    "1.0000000001": "1000000001n",
    "9223372036854775808": "9223372036854775808",
    # texts that look canonical stay
    "1.500": "1.500",
    "1.005": "1.005",
    "5.": "5.",
    "0.500": "500m",
    "1.1000": "1100m",
    "+1": "+1",
    "0100": "0100",
    # binary
    "1024Mi": "1Gi",
    "1.5Gi": "1536Mi",
    "1536Mi": "1536Mi",
    "1025Mi": "1025Mi",
    "0Gi": "0",
    "0.5Ki": "512",
    "0.1Ki": "102400m",
    "1024Ki": "1Mi",
    "-1024Mi": "-1Gi",
    "16Ei": "9223372036854775807",
    # exponents
    "1e3": "1e3",
    "1E3": "1E3",
    "1.50e3": "1500",
    "1e5": "100e3",
    "1e-3": "1e-3",
    "1E": "1E",
    # spaces around are forgiven; no number at all is none
    " 1 ": "1",
    "Gi": "0",
    "-": "0",
}


@pytest.mark.parametrize(("text", "canonical"), CANONICAL.items())
def test_canonical_form(text: str, canonical: str) -> None:
    assert canonical_quantity(text) == canonical


def test_canonical_form_stays() -> None:
    for canonical in CANONICAL.values():
        assert canonical_quantity(canonical) == canonical


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", WRONG_FORMAT),
        ("abc", WRONG_FORMAT),
        ("1x", WRONG_FORMAT),
        ("1.2.3", WRONG_FORMAT),
        ("1 Gi", WRONG_FORMAT),
        ("1K", WRONG_SUFFIX),
        ("1kk", WRONG_SUFFIX),
        ("1e", WRONG_SUFFIX),
        ("1Mi5", WRONG_SUFFIX),
        (f"1e{'9' * 5000}", WRONG_SUFFIX),
    ],
)
def test_what_is_no_quantity(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match="quant") as caught:
        canonical_quantity(text)
    assert str(caught.value) == problem
