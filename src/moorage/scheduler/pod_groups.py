"""Warnings about pods of a PodGroup where groups are not scheduled: they are scheduled one by one."""

from __future__ import annotations

from typing import Final

from moorage.api.decode import convert
from moorage.api.pod import Pod
from moorage.api.pod_groups import PodGroup, group_of
from moorage.client.client import Client
from moorage.client.kinds import POD_GROUP
from moorage.http.errors import ConnectionFailed, RequestError
from moorage.klog import Logger
from moorage.scheduler.background_tasks import BackgroundTasks
from moorage.scheduler.pod_events import PodEventRecorder

_MAX_LOGGED_GROUPS: Final = 1000

log = Logger(__name__)


class PodGroupWarnings:
    """Records an event on each pod of a group at its first attempt, and once on the group; logs it once."""

    def __init__(self, client: Client, recorder: PodEventRecorder, background: BackgroundTasks) -> None:
        self._client = client
        self._recorder = recorder
        self._background = background
        self._logged: dict[str, None] = {}
        """Groups that were logged, oldest first."""

    def warn(self, pod: Pod) -> None:
        """Warn about a pod that belongs to a group."""
        key = group_of(pod)
        if key is None:
            return
        name = str(key)
        self._recorder.group_ignored(pod, pod, name)
        if name not in self._logged:
            log.warning("PodGroup is ignored: its pods are scheduled one by one", podGroup=name)
            self._background.start(self._warn_on_group(pod, key.name), is_awaited=False)
            self._logged[name] = None
            if len(self._logged) > _MAX_LOGGED_GROUPS:
                del self._logged[next(iter(self._logged))]

    async def _warn_on_group(self, pod: Pod, name: str) -> None:
        """Record the event on the group, if the API server has it."""
        try:
            group = convert(await self._client.get(POD_GROUP, pod.namespace, name), PodGroup)
        except (RequestError, ConnectionFailed) as error:
            log.info(4, "PodGroup cannot be read", podGroup=f"{pod.namespace}/{name}", err=str(error))
            return
        self._recorder.group_ignored(group, pod, f"{pod.namespace}/{name}")
