"""What all tests share: how properties are tested."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# In CI the same examples every time, so that a failure is a change's fault; elsewhere new ones, to find more.
settings.register_profile(
    "moorage",
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("moorage")
