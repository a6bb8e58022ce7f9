"""`moorage ui`: a cluster or files in a browser."""

from __future__ import annotations

import asyncio
import webbrowser
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import typer
import uvloop

from moorage.api.decode import InputError
from moorage.cli.explain import ExplainOptions
from moorage.cli.garbage_collection import long_running
from moorage.cli.inspection import SchedulerAddress
from moorage.cli.page_process import end_with_stdin
from moorage.client.connect import connected
from moorage.client.credentials import Access, find_access
from moorage.clock import LoopClock
from moorage.explain.loading import readable
from moorage.http.errors import ConnectionFailed, KubeconfigError, RequestError
from moorage.http.server import ServingError
from moorage.services.termination import on_termination
from moorage.ui.explanations import explain_feature
from moorage.ui.health import HealthHistory, health_feature
from moorage.ui.page_server import PageServer
from moorage.ui.scheduler_link import attempts_feature, queue_feature
from moorage.ui.second_run import second_run_feature
from moorage.ui.sources.file_source import FileSource
from moorage.ui.sources.files import open_file
from moorage.ui.sources.live_cluster import LiveCluster
from moorage.ui.sources.source import Source
from moorage.ui.what_if.feature import WhatIfPages

_COMMAND: Final = "moorage ui"
_AGENT: Final = "moorage-ui"
_UNREADABLE: Final = 2
"""Exit status: the input could not be used."""


@dataclass(frozen=True, slots=True)
class UiOptions:
    """What is to be shown, and where."""

    kubeconfig: Path | None
    context: str
    port: int
    opens: bool
    evaluation: ExplainOptions
    """The configuration with which pods are explained."""
    scheduler: SchedulerAddress | None = None
    """A running scheduler to ask; None: none."""
    takes_any_port: bool = False
    """Whether any free port will do if the given one is taken."""
    ends_with_stdin: bool = False
    """Whether the end of standard input ends the page."""
    files: tuple[Path, ...] = ()
    """A file to show instead of a cluster, and possibly one to compare it with."""


def serve_page(options: UiOptions) -> None:
    """Serve the page until a signal; exits with status 2 and one line if that is not possible."""
    if options.ends_with_stdin:
        end_with_stdin()
    long_running("ui")
    try:
        if options.files:
            uvloop.run(_serve(_file_source(options), options))
            return
        access = find_access(options.kubeconfig, context=options.context)
        uvloop.run(_show_cluster(access, options))
    except (InputError, KubeconfigError, ServingError) as error:
        typer.echo(f"{_COMMAND}: {error}", err=True)
        raise typer.Exit(_UNREADABLE) from None


def _file_source(options: UiOptions) -> FileSource:
    if options.kubeconfig is not None or options.context or options.scheduler is not None:
        raise InputError("", "a file is shown without --kubeconfig, --context and --scheduler")
    first, *second = options.files
    if len(second) > 1:
        raise InputError("", "at most two files can be compared")
    source = open_file(first)
    for each in map(open_file, second):
        kinds = source.info().kind, each.info().kind
        if len(set(kinds)) > 1:
            raise InputError("", f"a {kinds[0]} cannot be compared with a {kinds[1]}: their times differ")
        source.add(second_run_feature(each))
    return source


async def _show_cluster(access: Access, options: UiOptions) -> None:
    clock = LoopClock()
    try:
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(connected(access, user_agent=_AGENT, clock=clock))
            source = LiveCluster(client, clock, access.endpoint.url)
            await source.check()
            scheduler = None
            if options.scheduler is not None:
                link = connected(options.scheduler.access(), user_agent=_AGENT, retries=False)
                scheduler = await stack.enter_async_context(link)
                source.add(attempts_feature(scheduler))
                source.add(health_feature(scheduler, clock, HealthHistory()))
            source.add(queue_feature(source.timeline, scheduler))
            reading = partial(readable, access)
            source.add(explain_feature(reading, options.evaluation.new_cluster))
            source.add(WhatIfPages(reading, options.evaluation).feature())
            await _serve(source, options)
    except ConnectionFailed as error:
        raise InputError("", f"the API server does not answer: {error}") from None
    except RequestError as error:
        raise InputError("", f"the API server at {access.endpoint.url} fails: {error.message}") from None


def _page_server(source: Source, options: UiOptions) -> PageServer:
    try:
        return PageServer(source, options.port)
    except ServingError as error:
        if not options.takes_any_port:
            raise
        server = PageServer(source, 0)
        typer.echo(f"{_COMMAND}: {error}; port {server.port} is used instead", err=True)
        return server


async def _serve(source: Source, options: UiOptions) -> None:
    server = _page_server(source, options)
    on_termination(server.stop)

    def show_address() -> None:
        typer.echo(f"The page is at {server.url}")
        if options.opens:
            asyncio.get_running_loop().run_in_executor(None, webbrowser.open, server.url)

    await server.serve(show_address)
