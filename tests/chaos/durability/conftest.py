"""What all of these tests need."""

from __future__ import annotations

import pytest

from moorage_cluster.chaos.durability.recording_vfs import NoRecording, _library


@pytest.fixture(autouse=True, scope="session")
def recording() -> None:
    """Skip the tests with a Python whose SQLite cannot be reached."""
    try:
        _library()
    except NoRecording as error:
        pytest.skip(str(error))
