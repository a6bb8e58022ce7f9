"""`moorage attempts` and `moorage queue`: what a running scheduler tells."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
import typer

from moorage.api.pod import Pod
from moorage.cli.aligned_table import aligned
from moorage.client.client import Client
from moorage.client.connect import connected
from moorage.client.credentials import Access, component_access
from moorage.client.scheduler_api import (
    Attempt,
    AttemptList,
    QueueEntry,
    QueueList,
    read_attempts,
    read_queue,
)
from moorage.explain.queue_text import age, awaited_events
from moorage.http.errors import ConnectionFailed, KubeconfigError, RequestError

T = TypeVar("T")

SCHEDULER_ERRORS: Final = (RequestError, ConnectionFailed, KubeconfigError)
"""Why a scheduler cannot be asked, or does not answer."""
_FAILED: Final = 1
"""Exit status: the scheduler cannot be asked, or does not answer."""
_WATCH_SECONDS: Final = 1.0
"""Pause between two requests of a watch, in seconds."""


class SchedulerAddress(NamedTuple):
    """A scheduler's port, and the credentials for it."""

    url: str
    kubeconfig: Path | None
    authority: Path | None
    skips_verification: bool
    context: str = ""
    token: str = ""
    """A token for it; empty: the kubeconfig's credentials."""

    def access(self) -> Access:
        """How to reach it; KubeconfigError if there are no credentials."""
        return component_access(
            self.url,
            self.kubeconfig,
            self.authority,
            context=self.context,
            skips_verification=self.skips_verification,
            token=self.token,
        )


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


def find_in_queue(address: SchedulerAddress, pod: Pod) -> QueueEntry | None:
    """The entry of a pod in a scheduler's queue; RequestError, ConnectionFailed or KubeconfigError."""

    async def find(client: Client) -> QueueEntry | None:
        entries = await read_queue(client, pod.namespace)
        return next((entry for entry in entries if entry.uid == pod.uid), None)

    return _answer(address, find)


def _ask(address: SchedulerAddress, ask: Callable[[Client], Coroutine[Any, Any, None]]) -> None:
    try:
        _answer(address, ask)
    except KeyboardInterrupt:
        return
    except SCHEDULER_ERRORS as error:
        typer.echo(why_not(address, error), err=True)
        raise typer.Exit(_FAILED) from None


def why_not(address: SchedulerAddress, error: Exception) -> str:
    """Why a scheduler did not answer, in one line; with the rule to add where a permission is missing."""
    text = str(error)
    if address.url not in text:
        text = f"{address.url}: {text}"
    if isinstance(error, RequestError) and error.code == HTTPStatus.FORBIDDEN:
        text += '; add to a ClusterRole: {nonResourceURLs: ["/moorage/v1/*"], verbs: ["get"]}'
    return text


def _answer(address: SchedulerAddress, ask: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
    async def run() -> T:
        async with connected(address.access(), retries=False) as client:
            return await ask(client)

    return asyncio.run(run())


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
            age(now, entry.since),
            str(entry.attempts),
            "" if entry.next_attempt is None else f"in {age(entry.next_attempt, now)}",
            entry.gated_by or ",".join(entry.rejected_by),
            awaited_events(entry),
        )
        for entry in entries
    ]
    return aligned(("POD", "PLACE", "SINCE", "ATTEMPTS", "NEXT TRY", "REJECTED BY", "WOKEN BY"), rows)
