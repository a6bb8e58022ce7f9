"""How much is logged: a level between INFO and DEBUG, for what is worth a line only when somebody looks."""

from __future__ import annotations

import logging
from typing import Final

DETAIL: Final = (logging.DEBUG + logging.INFO) // 2
"""The level of what is logged from `-v=2` on, such as every binding."""
EVERYTHING: Final = logging.DEBUG
"""The level of what is logged from `-v=4` on."""

_VERBOSITY: Final = ((EVERYTHING, 4), (DETAIL, 2))


def verbosity_of(level: int) -> int:
    """From which `-v` on something of a level is logged."""
    return next((verbosity for highest, verbosity in _VERBOSITY if level <= highest), 0)


def level_for(verbosity: int) -> int:
    """The lowest level that is logged at a `-v`."""
    return next((level for level, least in _VERBOSITY if verbosity >= least), logging.INFO)
