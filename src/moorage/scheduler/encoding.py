"""Objects as plain values, for requests."""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.api.quantity import Quantity, format_quantity


def plain(value: Any) -> Any:
    """An object, or a part of one, as the API server reads it."""
    return msgspec.to_builtins(value, enc_hook=_encoded)


def _encoded(value: Any) -> Any:
    if isinstance(value, Quantity):
        return format_quantity(value)
    raise NotImplementedError(type(value))
