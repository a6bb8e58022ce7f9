"""First decisions: every variant is measured on a small cluster."""

from __future__ import annotations

import pytest

from bench.cold import VARIANTS, make_pod, measure


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_is_decided_about(variant: str) -> None:
    times = measure(variant, nodes=6, templates=3)
    assert (times.variant, times.nodes, times.templates) == (variant, 6, 3)
    assert times.cold_p90 >= times.cold_median > 0
    assert times.warm_median > 0


def test_no_two_templates_ask_for_the_same() -> None:
    for variant, more in VARIANTS.items():
        specs = [make_pod(template, 0, more(template)).spec for template in range(10)]
        assert all(a != b for at, a in enumerate(specs) for b in specs[:at]), variant
