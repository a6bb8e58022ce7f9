"""A token of this process's own, for a page that it runs: it allows to read some paths, and nothing else.

With it, the page needs no permissions in the cluster for the scheduler's data, and does not send the user's
credentials to the scheduler's port.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from typing import Final

_SCHEME: Final = "bearer "
_PATH: Final = "/metrics"
_PREFIX: Final = "/moorage/v1/"


def new_token() -> str:
    """A random token."""
    return secrets.token_urlsafe(32)


class PrivateReads:
    """Knows the token; empty: there is none."""

    def __init__(self, token: str = "") -> None:
        self._token = token.encode()

    def is_owner(self, headers: Mapping[str, str]) -> bool:
        """Whether a request carries the token."""
        header = headers.get("authorization", "")
        if not self._token or not header.lower().startswith(_SCHEME):
            return False
        return hmac.compare_digest(header[len(_SCHEME) :].strip().encode(), self._token)

    @staticmethod
    def allows(method: str, path: str) -> bool:
        """Whether the token's owner may do this."""
        return method == "GET" and (path == _PATH or path.startswith(_PREFIX))
