"""Azure's public dataset of virtual machines, 2019 (V2): `vmtable.csv`, a pod for each machine.

The table has no header (github.com/Azure/AzurePublicDataset, AzurePublicDatasetV2.md and its notebook);
its columns are vmid, subscriptionid, deploymentid, vmcreated, vmdeleted, maxcpu, avgcpu, p95maxcpu,
vmcategory, vmcorecountbucket, vmmemorybucket. Times are seconds since the start, in steps of five
minutes: a lifetime is at least one of them, as in Azure's notebook. Buckets are numbers of cores and GB,
which are read as requests; the largest ones, `>24` and `>64`, are 30 cores and 70 GB, as in the notebook.
Machines that lived at the end of the trace are not marked: they end with it. Subscriptions, deployments,
categories and readings are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from moorage.simulation.traces import values
from moorage.simulation.traces.pods import TracePod, requests_of
from moorage.simulation.traces.source import BadLineError, Cells, TraceSource, columns

_COLUMNS: Final = 11
_CREATED, _DELETED, _CORES, _MEMORY = 3, 4, 9, 10
_MIN_LIFETIME_SECONDS: Final = 300.0
_LARGEST_BUCKETS: Final = {">24": "30", ">64": "70"}
"""The buckets without an upper end, with the numbers that Azure's notebook puts in their place."""
_MILLI: Final = 1000
_BYTES_PER_GB: Final = 1 << 30


def read_pods(source: TraceSource) -> Iterator[TracePod]:
    """The pods of a table."""
    return source.pods(source.cells(), _pod)


def _pod(line: int, cells: Cells) -> Iterable[TracePod]:
    if len(cells) != _COLUMNS:
        raise BadLineError(f"{columns(len(cells))}; vmtable has {_COLUMNS}")
    created = values.seconds(cells[_CREATED], "vmcreated")
    deleted = values.seconds(cells[_DELETED], "vmdeleted")
    cores = _bucket(cells[_CORES], "vmcorecountbucket")
    memory = _bucket(cells[_MEMORY], "vmmemorybucket")
    pod = TracePod(
        created,
        line,
        f"vm-{line}",
        max(deleted - created, _MIN_LIFETIME_SECONDS),
        requests_of(round(cores * _MILLI), round(memory * _BYTES_PER_GB)),
    )
    return (pod,)


def _bucket(text: str, name: str) -> float:
    return values.amount(_LARGEST_BUCKETS.get(text, text), name)
