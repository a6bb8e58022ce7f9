"""What must hold some time after the last fault, and when all processes have ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from moorage.client.kinds import POD
from moorage_cluster.chaos.real_processes.audit_trail import AuditTrail
from moorage_cluster.chaos.real_processes.deployment import FAILURES, Deployment
from moorage_cluster.chaos.real_processes.faults import STEP_SECONDS
from moorage_cluster.chaos.real_processes.observer import Observer
from moorage_cluster.chaos.real_processes.process import SupervisedProcess, Usage
from moorage_cluster.chaos.real_processes.users import NAMESPACE, Ledger

RECOVERY_SECONDS: Final = 90.0
"""Time after the last fault in which all must come right, in seconds.

More than an unanswered request, a backoff and a lease take; less than the five minutes after which all
unschedulable pods are tried again, so that a lost event shows.
"""
_MORE_FILES: Final = 96
"""Number of files that a process may have open beyond its level: the connections that a client keeps."""
_MORE_BYTES: Final = 96 << 20
"""Memory that a process may hold beyond its level, in bytes: what caches and histories take in a run."""
_SHOWN: Final = 5


async def recovery(
    deployment: Deployment, trail: AuditTrail, observer: Observer, ledger: Ledger
) -> list[str]:
    """What is still wrong when everything should have come right."""
    left: list[str] = []

    async def is_well() -> bool:
        left[:] = await _problems(deployment, trail, observer, ledger)
        return not left

    return [] if await _within(RECOVERY_SECONDS, is_well) else left


async def _within(seconds: float, holds: Callable[[], object]) -> bool:
    try:
        async with asyncio.timeout(seconds):
            while not await holds():  # type: ignore[misc]
                await asyncio.sleep(STEP_SECONDS)
    except TimeoutError:
        return False
    return True


async def _problems(
    deployment: Deployment, trail: AuditTrail, observer: Observer, ledger: Ledger
) -> list[str]:
    down = deployment.not_ready()
    if down:
        return [f"{name} does not serve" for name in down]
    trail.read()
    if trail.holder not in deployment.running_users:
        return ["no scheduler that runs holds the lease"]
    waiting = observer.waiting()
    if waiting:
        return [f"{len(waiting)} pods are pending that fit: {', '.join(waiting[:_SHOWN])}"]
    try:
        async with deployment.client("chaos-check") as client:
            stored = await client.list(POD, NAMESPACE)
    except FAILURES as error:
        return [f"pods cannot be listed: {error}"]
    found = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in stored}
    seen = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in observer.pods.objects.values()}
    differences = ledger.differences(found)
    if not differences and seen != found:
        return ["the watch of pods does not have what a list has"]
    return differences


def bindings_are_seen(trail: AuditTrail, observer: Observer) -> list[str]:
    """Pods whose binding was acknowledged, and which have no node."""
    return [
        f"the binding of pod {name} is lost, which was acknowledged"
        for (_, name), pod in observer.pods.objects.items()
        if trail.bindings[name] and not pod["spec"].get("nodeName")
    ]


async def levels(deployment: Deployment) -> list[str]:
    """Processes that were never started again and hold more than in the beginning."""
    left: list[str] = []

    async def is_well() -> bool:
        left[:] = [text for each in deployment.processes for text in _level(each)]
        return not left

    return [] if await _within(RECOVERY_SECONDS, is_well) else left


def growth(deployment: Deployment) -> Usage:
    """By how much processes have grown, at most, that were never started again."""
    now = deployment.measure()
    pairs = [(each.level, now[each.name]) for each in deployment.processes if each.name in now]
    return Usage(
        max((after.resident_bytes - before.resident_bytes for before, after in pairs if before), default=0),
        max((after.files - before.files for before, after in pairs if before), default=0),
    )


def _level(process: SupervisedProcess) -> list[str]:
    before = process.level
    if before is None:
        return []
    try:
        now = process.usage()
    except OSError:
        return [f"{process.name} does not run"]
    return _growth(process.name, before, now)


def _growth(name: str, before: Usage, now: Usage) -> list[str]:
    found = []
    if now.files > before.files + _MORE_FILES:
        found.append(f"{name} has {now.files} files open, {before.files} in the beginning")
    if now.resident_bytes > before.resident_bytes + _MORE_BYTES:
        mebibytes = [each.resident_bytes >> 20 for each in (now, before)]
        found.append(f"{name} holds {mebibytes[0]} MiB, {mebibytes[1]} in the beginning")
    return found
