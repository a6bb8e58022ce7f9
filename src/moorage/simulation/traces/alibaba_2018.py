"""Alibaba's cluster-trace-v2018: batch tasks, batch instances, or containers.

The files are tables without a header (github.com/alibaba/clusterdata, cluster-trace-v2018/schema.txt);
which of them one is can be seen from its number of columns:

- `batch_task.csv`, 9 columns: task_name, instance_num, job_name, task_type, status, start_time, end_time,
  plan_cpu, plan_mem. A task is `instance_num` pods with the planned requests.
- `batch_instance.csv`, 14 columns: instance_name, task_name, job_name, task_type, status, start_time,
  end_time, machine_id, seq_no, total_seq_no, cpu_avg, cpu_max, mem_avg, mem_max. What was planned is only
  in the table of tasks: an instance requests what it used at most.
- `container_meta.csv`, 8 columns: container_id, machine_id, time_stamp, app_du, status, cpu_request,
  cpu_limit, mem_size. A container has a row for each time at which it was looked at: its first one is its
  arrival. There is no end: containers are services.

Times are seconds since the start of the trace. 100 of cpu is a core; memory is normalised to [0, 100],
where -1 and 101 are invalid values, which are read as no request. Tasks that wait have no times, and are
left out; those that still run have no end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from moorage.simulation.traces import values
from moorage.simulation.traces.pods import Requests, TracePod, object_name, requests_of
from moorage.simulation.traces.source import BadLineError, Cells, TraceSource, columns
from moorage.simulation.traces.units import TraceUnits

_MAX_INSTANCES: Final = 1_000_000
"""Maximum number of instances of a task: more is a mistake."""
_WITHOUT_TIMES: Final = ("Waiting", "Ready")
_MILLI_PER_PERCENT: Final = 10
_WHOLE: Final = 100.0


class _Table(NamedTuple):
    name: str
    reader: Callable[[TraceUnits], Callable[[int, Cells], Iterable[TracePod]]]


def read_pods(source: TraceSource) -> Iterator[TracePod]:
    """The pods of a file; its first line with a known number of columns says which table it is."""
    rows = source.cells()
    for line, cells in rows:
        table = _TABLES.get(len(cells))
        if table is None:
            known = ", ".join(f"{each.name} has {count}" for count, each in _TABLES.items())
            source.bad(line, f"{columns(len(cells))}; {known}")
            continue
        read = table.reader(source.units)
        yield from source.pods(((line, cells),), read)
        yield from source.pods(rows, _checked(len(cells), table, read))


def _checked(
    count: int, table: _Table, read: Callable[[int, Cells], Iterable[TracePod]]
) -> Callable[[int, Cells], Iterable[TracePod]]:
    def checked(line: int, cells: Cells) -> Iterable[TracePod]:
        if len(cells) != count:
            raise BadLineError(f"{columns(len(cells))}; {table.name} has {count}")
        return read(line, cells)

    return checked


def _tasks(units: TraceUnits) -> Callable[[int, Cells], Iterable[TracePod]]:
    def read(line: int, cells: Cells) -> Iterable[TracePod]:
        task, instances, job, _, status, start, end, cpu, memory = cells
        if status in _WITHOUT_TIMES:
            return ()
        count = values.integer(instances, "instance_num")
        if not 0 <= count <= _MAX_INSTANCES:
            raise BadLineError(f"instance_num: {count} is not a number from 0 to {_MAX_INSTANCES:,}")
        requests = _requests(units, ("plan_cpu", cpu), ("plan_mem", memory))
        at_seconds, duration = _times(start, end)
        name = object_name(job, task, line)
        return (
            TracePod(at_seconds, line, f"{name}-{number}" if count > 1 else name, duration, requests)
            for number in range(count)
        )

    return read


def _instances(units: TraceUnits) -> Callable[[int, Cells], Iterable[TracePod]]:
    def read(line: int, cells: Cells) -> Iterable[TracePod]:
        name, _, _, _, status, start, end, _, _, _, _, cpu, _, memory = cells
        if status in _WITHOUT_TIMES:
            return ()
        requests = _requests(units, ("cpu_max", cpu), ("mem_max", memory))
        at_seconds, duration = _times(start, end)
        return (TracePod(at_seconds, line, object_name(name, line), duration, requests),)

    return read


def _containers(units: TraceUnits) -> Callable[[int, Cells], Iterable[TracePod]]:
    seen = set()

    def read(line: int, cells: Cells) -> Iterable[TracePod]:
        container, _, time, _, _, cpu, _, memory = cells
        at_seconds = values.seconds(time, "time_stamp")
        requests = _requests(units, ("cpu_request", cpu), ("mem_size", memory))
        if container in seen:
            return ()
        seen.add(container)
        return (TracePod(at_seconds, line, object_name(container, line), None, requests),)

    return read


_TABLES: Final = {
    9: _Table("batch_task", _tasks),
    14: _Table("batch_instance", _instances),
    8: _Table("container_meta", _containers),
}


def _times(start: str, end: str) -> tuple[float, float | None]:
    """Arrival and duration; without an end that is later, a task still runs."""
    begins = values.seconds(start, "start_time")
    ends = values.seconds(end or 0, "end_time")
    return begins, (ends - begins if ends >= begins and ends else None)


def _requests(units: TraceUnits, cpu: tuple[str, str], memory: tuple[str, str]) -> Requests:
    cpu_percent, memory_percent = (values.real(value or 0, name) for name, value in (cpu, memory))
    is_valid = 0 <= memory_percent <= _WHOLE
    return requests_of(
        max(round(cpu_percent * _MILLI_PER_PERCENT), 0),
        units.memory_bytes(memory_percent / _WHOLE) if is_valid else 0,
    )
