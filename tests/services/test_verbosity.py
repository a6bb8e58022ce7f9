"""From which `-v` on something is logged."""

from __future__ import annotations

import logging

import pytest

from moorage.services.verbosity import DETAIL, level_for, verbosity_of


@pytest.mark.parametrize(
    ("level", "verbosity"),
    [(logging.ERROR, 0), (logging.INFO, 0), (DETAIL, 2), (logging.DEBUG, 4)],
)
def test_verbosity_of_a_level(level: int, verbosity: int) -> None:
    assert verbosity_of(level) == verbosity


@pytest.mark.parametrize(
    ("verbosity", "level"),
    [(0, logging.INFO), (1, logging.INFO), (2, DETAIL), (3, DETAIL), (4, logging.DEBUG), (10, logging.DEBUG)],
)
def test_lowest_level_at_a_verbosity(verbosity: int, level: int) -> None:
    assert level_for(verbosity) == level
