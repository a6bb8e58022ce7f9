"""A pod in the queue, with what is remembered of its attempts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from moorage.api.pod import Pod


@dataclass(slots=True, eq=False)
class QueuedPod:
    """A pod that wants a node; the same object for as long as the pod does. Times are the clock's seconds.

    timestamp: when it came into the queue, or came back from its last attempt.
    first_attempt: when it was first ready to be tried; None until then.
    attempts: how often it was tried.
    unschedulable_count: how many of its attempts ended with plugins refusing it; what its backoff grows with.
    consecutive_errors: attempts in a row that ended with an error; their backoff grows with this alone.
    unschedulable_plugins: the plugins that refused it; what they wait for is what the pod waits for.
    pending_plugins: those of them that made up their mind and wait for something outside.
    gating_plugin: the plugin that keeps it from being tried at all; empty if none does.
    backoff_expiration: before which time it is not tried again; None: not worked out yet.
    was_flushed: whether it is up for its next attempt only because it had waited for long.
    flush_timestamp: when that was.
    """

    pod: Pod
    timestamp: float
    first_attempt: float | None = None
    attempts: int = 0
    unschedulable_count: int = 0
    consecutive_errors: int = 0
    unschedulable_plugins: frozenset[str] = frozenset()
    pending_plugins: frozenset[str] = frozenset()
    gating_plugin: str = ""
    backoff_expiration: float | None = None
    was_flushed: bool = False
    flush_timestamp: float | None = None
    uid: str = field(init=False)
    """The pod's; it is asked for all the time."""

    def __post_init__(self) -> None:
        self.uid = self.pod.uid

    @property
    def profile(self) -> str:
        """The scheduler name of the profile that is responsible for the pod."""
        return self.pod.spec.scheduler_name

    @property
    def is_rejected(self) -> bool:
        """Whether plugins refused it in its last attempt, rather than an error having ended that."""
        return bool(self.unschedulable_plugins or self.pending_plugins)

    def rejector_plugins(self) -> Iterator[str]:
        """All plugins that refused it, each once; those that are pending first."""
        yield from self.pending_plugins
        for plugin in self.unschedulable_plugins:
            if plugin not in self.pending_plugins:
                yield plugin
