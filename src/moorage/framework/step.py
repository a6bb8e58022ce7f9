"""One plugin at one extension point: called, and held to what it may answer."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from moorage.framework.status import Code, PluginError, Status


@dataclass(frozen=True, slots=True)
class Step:
    """One plugin at one extension point."""

    plugin: str
    point: str
    method: Callable[..., Any]
    weight: int = 1

    def __call__(self, *arguments: Any) -> Any:
        """Call the plugin; whatever it raises becomes a PluginError."""
        try:
            return self.method(*arguments)
        except PluginError:
            raise
        except Exception as error:
            raise self.failed(f"{type(error).__name__}: {error}") from error

    def failed(self, reason: str) -> PluginError:
        """This step did what it may not do."""
        return PluginError(self.plugin, self.point, reason)

    def status(self, *arguments: Any) -> Status | None:
        """Call the plugin for a status; None is success."""
        return self.as_status(self(*arguments))

    async def waited(self, *arguments: Any) -> Any:
        """Call the plugin, and wait if it is async."""
        answer = self(*arguments)
        if not inspect.isawaitable(answer):
            return answer
        waiting: Awaitable[Any] = answer
        try:
            return await waiting
        except PluginError:
            raise
        except Exception as error:
            raise self.failed(f"{type(error).__name__}: {error}") from error

    def as_status(self, answer: Any) -> Status | None:
        """An answer that must be a status, signed if it is somebody's refusal; or None for success."""
        if answer is None:
            return None
        if not isinstance(answer, Status):
            raise self.failed(f'returned {answer!r}; return None, or a status such as unschedulable("why")')
        return answer if answer.code in (Code.SUCCESS, Code.SKIP) else self.signed(answer)

    def signed(self, status: Status) -> Status:
        """A status with this plugin's name on it, unless it has one."""
        return status if status.plugin else status.by(self.plugin)
