"""The users of the scheduler's own server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
MASTERS: Final = "system:masters"
"""A group whose members are authorized for everything."""


@dataclass(frozen=True, slots=True)
class User:
    """An authenticated or anonymous user."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def authenticated(self) -> User:
        """The same, as a member of `system:authenticated`."""
        if {AUTHENTICATED, UNAUTHENTICATED} & set(self.groups):
            return self
        return replace(self, groups=(*self.groups, AUTHENTICATED))


ANONYMOUS: Final = User("system:anonymous", (UNAUTHENTICATED,))


class Unauthenticated(Exception):  # noqa: N818 -- it says what happened
    """Invalid credentials."""
