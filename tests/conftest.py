"""What all tests share: how properties are tested."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# The same examples every time, so that a failure is a change's fault; `make test-random` looks for new ones.
settings.register_profile(
    "moorage",
    deadline=None,
    derandomize="MOORAGE_EXAMPLES" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("moorage")
