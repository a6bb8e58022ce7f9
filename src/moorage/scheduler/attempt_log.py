"""Log lines about attempts that do not end with a binding, worded as kube-scheduler's."""

from __future__ import annotations

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.engine.decision import NO_NODES
from moorage.framework.interface.status import Code, PluginError, Status, point_name
from moorage.http.errors import ConnectionFailed, RequestError
from moorage.klog import UNHANDLED, Logger, kobj
from moorage.queue.queued_pod import QueuedPod
from moorage.scheduler.attempts import Failure

log = Logger(__name__)

_OUTSIDE = (RequestError, ConnectionFailed)


def log_failure(pod: Pod, failure: Failure) -> None:
    """An attempt failed: errors are always logged, rejections from `-v=2` on."""
    if failure.unschedulable_plugins or failure.pending_plugins:
        if log.v >= 2:
            log.info(2, "Unable to schedule pod; no fit; waiting", pod=kobj(pod), err=failure.message)
    elif failure.of_group:
        message = "Unable to schedule pod belonging to a pod group; waiting"
        log.info(2, message, pod=kobj(pod), err=failure.message)
    elif failure.message == NO_NODES:
        message = "Unable to schedule pod; no nodes are registered to the cluster; waiting"
        log.info(2, message, pod=kobj(pod))
    else:
        log.error(failure.message, "Error scheduling pod; retrying", logger=UNHANDLED, pod=kobj(pod))


def log_not_requeued(pod: Pod, known: Object | None) -> None:
    """A pod whose attempt failed was deleted, or recreated."""
    if known is None:
        log.info(0, "Pod doesn't exist in informer cache", pod=kobj(pod), err=f'pod "{pod.name}" not found')
    else:
        message = "Pod was recreated while handling scheduling failure. Skip requeueing and status updates."
        log.info(2, message, pod=kobj(pod), oldUID=pod.uid, newUID=known.metadata.uid)


def log_assigned(pod: Pod) -> None:
    """A pod whose attempt failed was bound by another scheduler."""
    message = "Pod has been assigned to node. Abort adding it back to queue."
    log.info(0, message, pod=kobj(pod), node=pod.spec.node_name)


def log_plugin_failure(error: Exception, pod: Pod, node_name: str) -> None:
    """A plugin failed after a node was selected."""
    if not isinstance(error, PluginError):
        log.error(error, "Plugin failed", pod=kobj(pod), node=node_name)
        return
    cause = error.__cause__ if isinstance(error.__cause__, _OUTSIDE) else error
    message = "Plugin Failed" if error.point == "bind" else "Plugin failed"
    point = point_name(error.point)
    log.error(cause, message, logger=point, pod=kobj(pod), plugin=error.plugin, node=node_name)
    if error.point == "bind":
        log.info(1, "Failed to bind pod", pod=kobj(pod))


def log_rejection(point: str, status: Status, pod: Pod, node_name: str) -> None:
    """Reserve or permit rejected a pod on the selected node, or made it wait."""
    if status.refused:
        message, values = "Pod rejected by plugin", {"plugin": status.plugin, "status": status.message}
        log.info(4, message, logger=point, pod=kobj(pod), node=node_name, **values)
    elif status.code is Code.WAIT:
        message = "One or more plugins asked to wait and no plugin rejected pod"
        log.info(4, message, logger=point, pod=kobj(pod), node=node_name)


def log_not_bound(point: str, status: Status, pod: Pod, node_name: str) -> None:
    """PreBind or bind rejected a pod."""
    if status.refused:
        message, values = (
            f"Pod rejected by {point} plugin",
            {"plugin": status.plugin, "status": status.message},
        )
        log.info(4, message, logger=point, pod=kobj(pod), node=node_name, **values)
    if point == "Bind":
        log.info(1, "Failed to bind pod", pod=kobj(pod))


def log_permit(status: Status, pod: Pod) -> None:
    """The wait for a permit ended without success."""
    if status.refused:
        log.info(4, "Pod rejected while waiting on permit", pod=kobj(pod), status=status.message)
    else:
        log.error(status.message, "Failed waiting on permit for pod", pod=kobj(pod))


def log_flushed(queued: QueuedPod) -> None:
    """A pod was bound that was only retried because of the flush: some hint was wrong."""
    log.info(
        4,
        "Pod scheduled after flush from unschedulablePods",
        pod=kobj(queued.pod),
        unschedulablePlugins=queued.unschedulable_plugins,
        pendingPlugins=queued.pending_plugins,
    )
