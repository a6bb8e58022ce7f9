"""Authorization modes."""

from __future__ import annotations

from typing import Literal

Authorization = Literal["AlwaysAllow", "RBAC"]
