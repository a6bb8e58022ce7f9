"""Azure's trace for packing, 2020: `packing_trace_zone_a_v1.sqlite`, a pod for each virtual machine.

An SQLite database (github.com/Azure/AzurePublicDataset, AzureTracesForPacking2020.md) with the tables
`vm` (vmId, tenantId, vmTypeId, priority, starttime, endtime) and `vmType` (id, vmTypeId, machineId, core,
memory, hdd, ssd, nic). Times are days; machines that were there at the start have a negative starttime,
and arrive at the start; those that lived on have no endtime. Priority 0 is high and 1 low (may be
evicted): pods get the priorities 1000 and 0.

Resources are shares of a machine, and a type has another share on each kind of machine (machineId). Here
all machines are of one kind: the one that most types can use, the lowest if several; a type that it
cannot run has its share of the lowest kind that can. hdd, ssd, nic and tenants are ignored.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from moorage.api.decode import InputError
from moorage.simulation.traces import values
from moorage.simulation.traces.pods import TracePod, requests_of
from moorage.simulation.traces.source import BadLineError, TraceSource
from moorage.simulation.traces.units import TraceUnits

_TABLES: Final = {
    "vm": ("vmId", "vmTypeId", "priority", "starttime", "endtime"),
    "vmType": ("vmTypeId", "machineId", "core", "memory"),
}
_SECONDS_PER_DAY: Final = 86_400.0
_HIGH: Final = 0
_HIGH_PRIORITY: Final = 1000

_COMMONEST_MACHINE: Final = """
SELECT machineId FROM vmType GROUP BY machineId ORDER BY count(DISTINCT vmTypeId) DESC, machineId LIMIT 1
"""
_TYPES: Final = "SELECT vmTypeId, core, memory FROM vmType ORDER BY machineId = ? DESC, machineId"
_PODS: Final = """
SELECT rowid, vmId, vmTypeId, priority, starttime, endtime FROM vm
ORDER BY max(CAST(starttime AS REAL), 0), rowid
"""


class _Share(NamedTuple):
    core: Any
    memory: Any


def read_pods(source: TraceSource) -> Iterator[TracePod]:
    """The pods of a database, which sorts them."""
    where = str(source.path)
    if not source.path.is_file():
        raise InputError(where, "No such file or directory")
    try:
        with closing(sqlite3.connect(f"file:{quote(where)}?mode=ro", uri=True)) as database:
            _check_tables(database, where)
            machine = database.execute(_COMMONEST_MACHINE).fetchone()
            types: dict[Any, _Share] = {}
            for type, core, memory in database.execute(_TYPES, machine or (None,)):
                types.setdefault(type, _Share(core, memory))
            rows = ((row[0], row[1:]) for row in database.execute(_PODS))
            yield from source.pods(rows, _reader(types, source.units), "row")
    except sqlite3.Error as error:
        raise InputError(where, f"not a readable SQLite database: {error}") from None


def _check_tables(database: sqlite3.Connection, where: str) -> None:
    for table, needed in _TABLES.items():
        present = {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
        if not present:
            raise InputError(where, f"there is no table {table}")
        for column in needed:
            if column not in present:
                raise InputError(where, f"table {table} has no column {column}")


def _reader(
    types: dict[Any, _Share], units: TraceUnits
) -> Callable[[int, tuple[Any, ...]], Iterable[TracePod]]:
    def read(row: int, cells: tuple[Any, ...]) -> Iterable[TracePod]:
        vm, type, priority, start, end = cells
        share = types.get(type)
        if share is None:
            raise BadLineError(f"vmTypeId: there is no type {type} in vmType")
        begins = max(values.real(start, "starttime"), 0.0) * _SECONDS_PER_DAY
        ends = None if end is None else values.real(end, "endtime") * _SECONDS_PER_DAY
        values.seconds(max(begins, ends or 0.0), "endtime")
        if ends is not None and ends < begins:
            raise BadLineError(f"endtime: {end} is before the start")
        pod = TracePod(
            begins,
            row,
            f"vm-{values.integer(vm, 'vmId')}",
            None if ends is None else ends - begins,
            requests_of(
                units.cpu_milli(values.amount(share.core, "core")),
                units.memory_bytes(values.amount(share.memory, "memory")),
            ),
            priority=_HIGH_PRIORITY if values.integer(priority, "priority") == _HIGH else 0,
        )
        return (pod,)

    return read
