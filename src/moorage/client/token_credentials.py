"""Credentials that need no other program: fixed ones, and a token file that is rotated."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from moorage.clock import Clock
from moorage.http.errors import KubeconfigError
from moorage.klog import Logger

_REREAD_SECONDS: Final = 60.0

log = Logger(__name__)


class FixedCredentials:
    """Credentials that never change: a token, a password, or none."""

    is_fixed = True
    is_stale = False

    def __init__(self, headers: Mapping[str, str]) -> None:
        self.headers = headers

    async def renew(self) -> bool:
        """There are no others."""
        return False


class TokenFile:
    """A token in a file that is rotated."""

    is_fixed = False

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._read_at: float | None = None
        self.headers: Mapping[str, str] = bearer(self._read())

    @property
    def is_stale(self) -> bool:
        """Whether the file should be read again."""
        # The event loop of the clock may not run yet when the file is first read.
        return self._read_at is None or self._clock.now() - self._read_at >= _REREAD_SECONDS

    async def renew(self) -> bool:
        """Read the file; while that fails the old token is used."""
        self._read_at = self._clock.now()
        try:
            headers = bearer(self._read())
        except KubeconfigError as error:
            log.error(error, "Unable to rotate token")
            return False
        changed = headers != self.headers
        self.headers = headers
        return changed

    def _read(self) -> str:
        try:
            token = self._path.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise KubeconfigError(f"cannot read the token in {self._path}: {reason.lower()}") from None
        if not token:
            raise KubeconfigError(f"the token in {self._path} is empty")
        return token


def bearer(token: str) -> Mapping[str, str]:
    """The authorization header for a token."""
    if not token.isascii() or not token.isprintable() or " " in token:
        raise KubeconfigError("the token contains invalid characters")
    return {"authorization": f"Bearer {token}"}
