"""`moorage attempts` and `moorage queue`: what a running scheduler tells."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import typer

from moorage.cli.aligned_table import aligned
from moorage.client.client import Client
from moorage.client.connect import connected
from moorage.client.credentials import component_access
from moorage.client.scheduler_api import (
    Attempt,
    AttemptList,
    QueueEntry,
    QueueList,
    read_attempts,
    read_queue,
)
from moorage.http.errors import ConnectionFailed, KubeconfigError, RequestError

_FAILED: Final = 1
"""Exit status: the scheduler cannot be asked, or does not answer."""
_WATCH_SECONDS: Final = 1.0
"""Pause between two requests of a watch, in seconds."""
_MAX_SHOWN_EVENTS: Final = 4


class SchedulerAddress(NamedTuple):
    """A scheduler's port, and the credentials for it."""

    url: str
    kubeconfig: Path | None
    authority: Path | None
    skips_verification: bool


def show_attempts(address: SchedulerAddress, namespace: str, pod: str, *, watch: bool, as_json: bool) -> None:
    """Print the attempts of a pod; with `watch`, new ones until interrupted."""

    async def show(client: Client) -> None:
        known = await read_attempts(client, namespace, pod)
        if as_json and not watch:
            _print_json(AttemptList(items=known))
            return
        if not known and not watch:
            typer.echo(f"no attempts of {namespace}/{pod} are remembered")
        while True:
            for attempt in known:
                typer.echo(msgspec.json.encode(attempt) if as_json else "\n".join(attempt_lines(attempt)))
            if not watch:
                return
            after = known[-1].id if known else 0
            known = ()
            while not known:
                await asyncio.sleep(_WATCH_SECONDS)
                known = await read_attempts(client, namespace, pod, after)

    _ask(address, show)


def show_queue(address: SchedulerAddress, namespace: str, *, as_json: bool) -> None:
    """Print the pods in the queue."""

    async def show(client: Client) -> None:
        entries = await read_queue(client, namespace)
        if as_json:
            _print_json(QueueList(items=entries))
        elif not entries:
            typer.echo("no pod is waiting")
        else:
            typer.echo(queue_table(entries, datetime.now(UTC)))

    _ask(address, show)


def _ask(address: SchedulerAddress, ask: Callable[[Client], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        access = component_access(
            address.url, address.kubeconfig, address.authority, skips_verification=address.skips_verification
        )
        async with connected(access, retries=False) as client:
            await ask(client)

    try:
        asyncio.run(run())
    except KeyboardInterrupt:
        return
    except (RequestError, ConnectionFailed, KubeconfigError) as error:
        typer.echo(f"{address.url}: {error}", err=True)
        raise typer.Exit(_FAILED) from None


def _print_json(document: AttemptList | QueueList) -> None:
    typer.echo(msgspec.json.format(msgspec.json.encode(document), indent=2))


def attempt_lines(attempt: Attempt) -> Iterator[str]:
    """An attempt as text: the result in one line, then the best nodes, or the number of nodes by reason."""
    time = attempt.time.astimezone().strftime("%H:%M:%S.%f")[:-3]
    head = f"{time}  attempt {attempt.attempt}  {attempt.result}"
    if attempt.node:
        head += f"  {attempt.node}  ({attempt.feasible_nodes} of {attempt.evaluated_nodes} nodes feasible)"
    yield head
    if attempt.message:
        yield f"  {attempt.message}"
    if attempt.nominated_node:
        yield f"  nominated to {attempt.nominated_node}; evicts {', '.join(attempt.victims) or 'no pod'}"
    if attempt.rejections:
        rows = [(str(each.nodes), each.plugin, each.reason) for each in attempt.rejections]
        yield from _indented(aligned(("NODES", "REJECTED BY", "REASON"), rows))
    if len(attempt.nodes) > 1:
        plugins = list(attempt.nodes[0].scores)
        scores = [
            (each.name, str(each.total), *(str(each.scores.get(plugin, "")) for plugin in plugins))
            for each in attempt.nodes
        ]
        yield from _indented(aligned(("NODE", "TOTAL", *plugins), scores))


def _indented(table: str) -> Iterator[str]:
    return (f"  {line}" for line in table.splitlines())


def queue_table(entries: Sequence[QueueEntry], now: datetime) -> str:
    """The queue as text."""
    rows = [
        (
            entry.pod,
            entry.place,
            _age(now, entry.since),
            str(entry.attempts),
            "" if entry.next_attempt is None else f"in {_age(entry.next_attempt, now)}",
            entry.gated_by or ",".join(entry.rejected_by),
            _events(entry),
        )
        for entry in entries
    ]
    return aligned(("POD", "PLACE", "SINCE", "ATTEMPTS", "NEXT TRY", "REJECTED BY", "WOKEN BY"), rows)


def _events(entry: QueueEntry) -> str:
    names = list(dict.fromkeys(name for each in entry.awaited for name in each.events))
    more = len(names) - _MAX_SHOWN_EVENTS
    return ",".join(names[:_MAX_SHOWN_EVENTS]) + (f" +{more}" if more > 0 else "")


def _age(later: datetime, earlier: datetime) -> str:
    """A duration as kubectl shows ages."""
    seconds = max(int((later - earlier).total_seconds()), 0)
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
