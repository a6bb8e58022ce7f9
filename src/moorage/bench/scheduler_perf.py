"""Another scheduler, measured with the same files: a test binary of Kubernetes' scheduler_perf.

`go test -c ./test/integration/scheduler_perf/misc` makes one. It reads performance-config.yaml in the
directory that it is started in, so one binary runs the files of all topics. It starts etcd, an API server and
the scheduler, and writes its figures to a file for Kubernetes' performance dashboard.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import msgspec

from moorage.api.decode import InputError
from moorage.bench.target import WorkloadFailed
from moorage.bench.workload_files import FILE_NAME, PlannedWorkload

_BENCHMARK: Final = "BenchmarkPerfScheduling"
_THROUGHPUT: Final = "SchedulingThroughput"
_DURATION: Final = "SchedulingDuration"
_ENVIRONMENT: Final = {"ETCD_LOGLEVEL": "warn", "KUBE_CACHE_MUTATION_DETECTOR": "false"}
"""As in production, and as scheduler_perf's documentation has it."""
_TROUBLE: Final = re.compile(r"panic:|ERROR|FATAL|[Ff]ailed|could not|unable to|cannot|not defined")
"""Words of the line of an output that says what is wrong."""


class Measurement(NamedTuple):
    """What the binary measured once; None for figures that it did not write."""

    pods_per_second: float | None
    """The average of windows of one second; unknown if all pods were scheduled in the first."""
    seconds: float | None
    """How long it measured."""

    def rate(self, pods: int) -> float | None:
        """Pods per second, where `pods` is the number of pods that were measured."""
        if self.pods_per_second is not None:
            return self.pods_per_second
        return pods / self.seconds if self.seconds else None


class _DataItem(msgspec.Struct):
    data: dict[str, float] | None = None
    labels: dict[str, str] = {}


class _DataItems(msgspec.Struct, rename="camel"):
    data_items: list[_DataItem] | None = None


class SchedulerPerf:
    """A test binary of scheduler_perf, under the name that reports have for its scheduler."""

    def __init__(self, name: str, binary: Path) -> None:
        self.name = name
        self._binary = binary.absolute()

    def check(self, workloads: Iterable[PlannedWorkload]) -> None:
        """InputError if it cannot be run, or has no way to read one of the files."""
        if not os.access(self._binary, os.X_OK) or self._binary.is_dir():
            raise InputError("--compare-with", f"{self._binary} is not a program")
        if which("etcd") is None:
            raise InputError("--compare-with", "scheduler_perf needs etcd, and there is none in PATH")
        for file in {each.file for each in workloads}:
            if file.name != FILE_NAME:
                raise InputError("--compare-with", f"scheduler_perf reads {FILE_NAME} only, not {file.name}")

    async def run(self, workload: PlannedWorkload) -> list[Measurement]:
        """The measurements of a workload, in order; WorkloadFailed if there are none."""
        with TemporaryDirectory(prefix="moorage-bench-") as folder:
            place = Path(folder)
            output = place / "output"
            await self._run(workload, place, output)
            found = [each for file in place.glob("*.json") for each in _measurements(file)]
            if not found:
                raise WorkloadFailed(f"{self.name}: {_trouble(output)}")
            return found

    async def _run(self, workload: PlannedWorkload, place: Path, output: Path) -> None:
        """Run the binary in a process group of its own, which is ended with the call: etcd belongs to it."""
        with output.open("wb") as file:
            try:
                process = await asyncio.create_subprocess_exec(
                    self._binary,
                    *_flags(workload, place),
                    cwd=workload.file.parent,
                    env={**os.environ, **_ENVIRONMENT, "ARTIFACTS": str(place), "TMPDIR": str(place)},
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=file,
                    stderr=file,
                    start_new_session=True,
                )
            except OSError as error:
                raise WorkloadFailed(f"{self.name}: {self._binary}: {error.strerror or error}") from None
        try:
            await process.wait()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


def _flags(workload: PlannedWorkload, place: Path) -> list[str]:
    """The flags that run one workload once, whatever its labels are."""
    names = [_BENCHMARK, *workload.name.split("/")]
    return [
        "-test.run=^$",
        "-test.benchtime=1x",
        "-test.bench=" + "/".join(f"^{re.escape(name)}$" for name in names),
        "-perf-scheduling-label-filter=",
        f"-data-items-dir={place}",
    ]


def _measurements(file: Path) -> list[Measurement]:
    """The measurements in a file for the performance dashboard."""
    try:
        items = msgspec.json.decode(file.read_bytes(), type=_DataItems).data_items or []
    except msgspec.MsgspecError as error:
        raise WorkloadFailed(f"{file.name} is not scheduler_perf's: {error}") from None
    figures: dict[str, dict[str, float]] = {}
    for item in items:
        of_name = figures.setdefault(item.labels.get("Name", ""), {})
        of_name.update(
            {f"{item.labels.get('Metric')}.{key}": value for key, value in (item.data or {}).items()}
        )
    found = (
        Measurement(each.get(f"{_THROUGHPUT}.Average"), each.get(f"{_DURATION}.Duration"))
        for each in figures.values()
    )
    return [each for each in found if each != (None, None)]


def _trouble(output: Path) -> str:
    """Why there are no figures, as the output has it: after the name of what failed, as tests have it."""
    lines = [line.strip() for line in output.read_text(errors="replace").splitlines()]
    lines = [line for line in lines if line and line not in ("PASS", "FAIL")]
    if not lines:
        return "it has no such workload"
    failed = next((at for at, line in enumerate(lines) if line.startswith("--- FAIL")), -1)
    lines = lines[failed + 1 :] or lines
    return next((line for line in lines if _TROUBLE.search(line)), lines[0])
