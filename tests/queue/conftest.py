"""Every queue that a test creates is validated when the test ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.queue.helpers import Case


@pytest.fixture(autouse=True)
def valid_in_the_end() -> Iterator[None]:
    Case.made.clear()
    yield
    for case in Case.made:
        if not case.is_corrupt:
            case.queue.validate()
    Case.made.clear()
