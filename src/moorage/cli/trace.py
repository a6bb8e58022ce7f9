"""`moorage trace`: record the workload of a cluster, and look at a trace."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn

import typer
import uvloop

from moorage.api.decode import InputError
from moorage.api.quantity import NANO, format_quantity, parse_quantity
from moorage.cli.aligned_table import aligned
from moorage.cli.garbage_collection import long_running
from moorage.cli.output_files import replaced
from moorage.cli.scenario_options import SkippedLines, SortedLines
from moorage.client.connect import connected
from moorage.client.credentials import Access, find_access
from moorage.clock import LoopClock
from moorage.config.duration import Duration
from moorage.http.errors import ConnectionFailed, KubeconfigError, RequestError
from moorage.simulation.traces.format_names import TraceFormat
from moorage.simulation.traces.pods import CPU, MEMORY, TracePod
from moorage.simulation.traces.recorder import PodRecorder, check_access, new_informer
from moorage.simulation.traces.registry import TraceOptions, read_trace_pods
from moorage.simulation.traces.trace_files import trace_form, write_trace
from moorage.simulation.traces.units import parse_units

_RECORD: Final = "moorage trace record"
_SHOW: Final = "moorage trace show"
_UNREADABLE: Final = 2
"""Exit status: the input could not be used."""
_LOG_SECONDS: Final = 60.0
"""Interval between lines about the progress, in seconds."""
_SHOWN_UNITS: Final = {CPU: NANO // 1000, MEMORY: NANO << 20}
"""What means of requests are rounded to, in billionths; those of others are numbers with a decimal."""
_ENDING_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def record_trace(output: Path, for_seconds: float | None, kubeconfig: Path | None, context: str) -> None:
    """Write a trace; exits with status 2 and one line if that is not possible."""
    long_running("trace record")
    try:
        form = trace_form(output)
        access = find_access(kubeconfig, context=context)
        with replaced(output) as part:
            recorder = uvloop.run(_recorded(access, for_seconds))
            try:
                write_trace(part, form, recorder.pods(), recorder.resources)
            finally:
                recorder.close()
    except (InputError, KubeconfigError) as error:
        _exit(_RECORD, error)
    _say(f"{recorder.count:,} pods are in {output}, of which {recorder.running_count:,} had not ended")


async def _recorded(access: Access, for_seconds: float | None) -> PodRecorder:
    """All that was seen until a signal came, or for a time."""
    async with connected(access, user_agent="moorage-trace", retries=False) as client:
        try:
            await check_access(client)
        except ConnectionFailed as error:
            raise InputError("", f"the API server does not answer: {error}") from None
        except RequestError as error:
            raise InputError("", f"the API server at {access.endpoint.url} fails: {error.message}") from None
        clock = LoopClock()
        informer = new_informer(client, clock)
        recorder = PodRecorder(informer, clock.utc_now)
        watching = asyncio.create_task(informer.run())
        try:
            await _until_end(recorder, for_seconds, access.endpoint.url)
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
    return recorder


async def _until_end(recorder: PodRecorder, for_seconds: float | None, url: str) -> None:
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in _ENDING_SIGNALS:
        loop.add_signal_handler(number, ended.set)
    telling = asyncio.create_task(_tell(recorder, url))
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(for_seconds):
                await ended.wait()
    finally:
        telling.cancel()
        for number in _ENDING_SIGNALS:
            loop.remove_signal_handler(number)


async def _tell(recorder: PodRecorder, url: str) -> None:
    """Show that it has begun, and how far it is."""
    await recorder.synced()
    _say(f"recording the pods of {url}; Ctrl-C ends it")
    while True:
        await asyncio.sleep(_LOG_SECONDS)
        _say(f"{recorder.count:,} pods, of which {recorder.running_count:,} have not ended")


def _say(text: str) -> None:
    typer.echo(f"{_RECORD}: {text}", err=True)


def _exit(command: str, error: Exception) -> NoReturn:
    typer.echo(f"{command}: {error}", err=True)
    raise typer.Exit(_UNREADABLE) from None


def show_trace(path: Path, format: TraceFormat | None, unit: str, *, skips_bad: bool) -> None:
    """Print what is in a trace; exits with status 2 and one line if it cannot be read."""
    skipped = SkippedLines(_SHOW)
    try:
        options = TraceOptions(format, parse_units(unit), SortedLines().add)
        options.is_trace(path)
        figures = _figures(read_trace_pods(path, skipped.add if skips_bad else None, options))
    except InputError as error:
        _exit(_SHOW, error)
    skipped.show_count()
    typer.echo(aligned(("FIGURE", "VALUE"), figures))


class _Amounts:
    """Sum and maximum of amounts."""

    def __init__(self) -> None:
        self.count, self.total, self.largest = 0, 0.0, 0.0

    def add(self, amount: float) -> None:
        self.count += 1
        self.total += amount
        self.largest = max(self.largest, amount)


def _figures(pods: Iterable[TracePod]) -> Sequence[tuple[str, str]]:
    first = last = None
    count, run_times, requests = 0, _Amounts(), dict[str, _Amounts]()
    for pod in pods:
        first, last = first or pod, pod
        count += 1
        if pod.duration_seconds is not None:
            run_times.add(pod.duration_seconds)
        for name, amount in pod.requests:
            requests.setdefault(name, _Amounts()).add(parse_quantity(amount))
    assert first is not None
    assert last is not None
    rows = [
        ("pods", f"{count:,}"),
        ("arrivals", f"from {Duration(first.at_seconds)} to {Duration(last.at_seconds)}"),
        ("with a run time", f"{run_times.count:,}"),
    ]
    if run_times.count:
        mean = Duration(round(run_times.total / run_times.count, 3))
        rows.append(("run time", f"mean {mean}, at most {Duration(run_times.largest)}"))
    rows.extend((name, _shown(requests[name], name)) for name in sorted(requests))
    return rows


def _shown(amounts: _Amounts, resource: str) -> str:
    mean, unit = amounts.total / amounts.count, _SHOWN_UNITS.get(resource)
    shown = f"{mean / NANO:,.1f}" if unit is None else format_quantity(round(mean / unit) * unit)
    return f"requested by {amounts.count:,}: mean {shown}, at most {format_quantity(int(amounts.largest))}"
