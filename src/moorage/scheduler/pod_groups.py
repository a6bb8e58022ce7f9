"""Warnings about pods of a PodGroup: they are scheduled one by one."""

from __future__ import annotations

from typing import Final

from moorage.api.pod import Pod
from moorage.klog import Logger
from moorage.scheduler.pod_events import PodEventRecorder

_MAX_LOGGED_GROUPS: Final = 1000

log = Logger(__name__)


class PodGroupWarnings:
    """Records an event on each pod of a group at its first attempt, and logs each group once."""

    def __init__(self, recorder: PodEventRecorder) -> None:
        self._recorder = recorder
        self._logged: dict[str, None] = {}
        """Groups that were logged, oldest first."""

    def warn(self, pod: Pod) -> None:
        """Warn about a pod that belongs to a group."""
        assert pod.spec.scheduling_group is not None
        name = f"{pod.namespace}/{pod.spec.scheduling_group.pod_group_name}"
        self._recorder.group_ignored(pod, name)
        if name not in self._logged:
            log.warning("PodGroup is ignored: its pods are scheduled one by one", podGroup=name)
            self._logged[name] = None
            if len(self._logged) > _MAX_LOGGED_GROUPS:
                del self._logged[next(iter(self._logged))]
