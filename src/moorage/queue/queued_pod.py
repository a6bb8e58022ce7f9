"""A pod in the queue, with the state of its attempts."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from moorage.api.pod import Pod


class QueuedPod(msgspec.Struct, eq=False):
    """A pod without a node; one object for the pod's whole time in the queue. Times are the clock's, in
    seconds.

    timestamp: when it was added to the queue, or put back after its last attempt.
    first_attempt: when it first entered the active queue; None until then.
    attempts: number of attempts.
    unschedulable_count: number of attempts in which plugins rejected it; determines its backoff.
    consecutive_errors: attempts in a row that ended with an error; determines the backoff after errors.
    unschedulable_plugins: the plugins that rejected it; their events requeue it.
    pending_plugins: plugins that decided and wait for something external.
    gating_plugin: the plugin whose pre_enqueue rejects it; empty if none does.
    backoff_expiration: the time before which it is not scheduled again; None: not computed yet.
    was_flushed: its next attempt is only due to the flush of long unschedulable pods.
    flush_timestamp: when that flush was.
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
    template: bytes = b""
    keyed_pod: Pod | None = None
    """The equivalence key, and the version of the pod that has it; None: not computed yet."""
    uid: str = ""
    priority: int = 0
    """The pod's uid and priority; stored because they are read very often."""

    def __post_init__(self) -> None:
        self.uid = self.pod.uid
        self.priority = self.pod.priority

    @property
    def profile(self) -> str:
        """The scheduler name of the pod's profile."""
        return self.pod.spec.scheduler_name

    @property
    def pod_count(self) -> int:
        """How many pods are scheduled together."""
        return 1

    @property
    def is_rejected(self) -> bool:
        """Whether plugins rejected it in its last attempt; false if an error ended that."""
        return bool(self.unschedulable_plugins or self.pending_plugins)

    def rejector_plugins(self) -> Collection[str]:
        """All plugins that rejected it, each once; pending ones first."""
        if not self.pending_plugins:
            return self.unschedulable_plugins
        return (*self.pending_plugins, *(self.unschedulable_plugins - self.pending_plugins))
