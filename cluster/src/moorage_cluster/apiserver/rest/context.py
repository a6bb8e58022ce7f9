"""The context of a request, for verbs."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from moorage.admission.users import MASTERS, User
from moorage.apimachinery.schema.wire import WireFormat, wire_format
from moorage_cluster.apiserver.options import WriteOptions

SYSTEM = User("system:apiserver", (MASTERS,))
"""The user of the server's own writes."""


class Context(msgspec.Struct):
    """The user and the options of a write, and its warnings."""

    user: User = SYSTEM
    options: WriteOptions = msgspec.field(default_factory=WriteOptions)
    warnings: list[str] = msgspec.field(default_factory=list)
    user_agent: str = ""
    types: WireFormat = msgspec.field(default_factory=wire_format)
    """The wire format of the server."""
    authorize_create: Callable[[], None] | None = None
    """Raises ApiError (403) if an update or apply may not create a missing object; None: no check."""

    @property
    def manager(self) -> str:
        """The field manager: given, or the first part of the user agent."""
        return self.options.field_manager or self.user_agent.partition("/")[0][:128]
