"""What is known of the request that a verb works for."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from moorage_cluster.apiserver.auth.users import MASTERS, User
from moorage_cluster.apiserver.options import WriteOptions

SYSTEM = User("system:apiserver", (MASTERS,))
"""Whom the server's own work is done for."""


class Context(msgspec.Struct):
    """Who writes, how, and what to tell them beside the answer."""

    user: User = SYSTEM
    options: WriteOptions = msgspec.field(default_factory=WriteOptions)
    warnings: list[str] = msgspec.field(default_factory=list)
    user_agent: str = ""
    authorize_create: Callable[[], None] | None = None
    """ApiError (403) if an update or apply that finds no object may not create it; None: no question."""

    @property
    def manager(self) -> str:
        """The name under which fields are owned: given, or the first word of the client's name."""
        return self.options.field_manager or self.user_agent.partition("/")[0][:128]
