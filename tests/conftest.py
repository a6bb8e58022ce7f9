"""What all tests share: how properties are tested, and what makes the whole of them fast."""

from __future__ import annotations

import gc
import os
import sys

import pytest
from hypothesis import HealthCheck, settings

# Hundreds of processes are started, each of which would compile all modules again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# The same examples every time, so that a failure is a change's fault; `make test-random` looks for new ones.
settings.register_profile(
    "moorage",
    deadline=None,
    derandomize="MOORAGE_EXAMPLES" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("moorage")


def pytest_configure(config: pytest.Config) -> None:
    """With `-n`, each process begins with one half of the tests: servers that tests share start once."""
    if config.getoption("dist", None) == "load":
        config.option.dist = "worksteal"


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Let garbage collections pass over the thousands of collected tests and modules."""
    gc.collect()
    gc.freeze()
