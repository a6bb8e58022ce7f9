"""DefaultBinder: binds a pod through the API server."""

from __future__ import annotations

from collections.abc import Mapping

from moorage.api.pod import Pod
from moorage.client.kinds import POD, Kind
from moorage.client.permissions import Permission
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.effects import BindPod
from moorage.framework.interface.handle import Handle
from moorage.klog import Logger, ObjectRef, kobj

log = Logger(__name__)


class DefaultBinder:
    """Writes the binding of a pod to its node."""

    name = "DefaultBinder"
    watched_kinds: tuple[Kind, ...] = ()
    write_permissions: Mapping[str, tuple[Permission, ...]] = {
        "bind": Permission.on(POD, "create", part="binding"),
    }

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    async def bind(self, cycle: CycleState, pod: Pod, node_name: str) -> None:
        """Bind the pod; a rejection by the API server fails this attempt."""
        if log.v >= 3:
            message, node = "Attempting to bind pod to node", ObjectRef(node_name)
            log.info(3, message, logger="Bind.DefaultBinder", pod=kobj(pod), node=node)
        await self._handle.effects.perform(BindPod(pod, node_name))
