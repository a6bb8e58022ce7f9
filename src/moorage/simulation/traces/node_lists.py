"""The machines of traces as the nodes of a cluster.

- Alibaba 2018, `machine_meta.csv`: a table without a header: machine_id, time_stamp, failure_domain_1,
  failure_domain_2, cpu_num (cores), mem_size (normalised to [0, 100]), status. The first row of a machine
  counts; its zone is failure_domain_1.
- Alibaba GPU 2023, `openb_node_list_*.csv`: a table with the header sn, cpu_milli, memory_mib, gpu,
  model. Resources and the label of the model are those of `alibaba_gpu_2023`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Final

from moorage.api.base import Condition, ObjectMeta
from moorage.api.decode import InputError
from moorage.api.labels import HOSTNAME, ZONE
from moorage.api.node import Node, NodeStatus
from moorage.api.quantity import parse_quantity
from moorage.simulation.shapes import DEFAULT_PODS
from moorage.simulation.traces import values
from moorage.simulation.traces.alibaba_gpu_2023 import (
    BYTES_PER_MIB,
    GPU,
    GPU_MILLI,
    GPU_MODEL,
    MILLI_PER_GPU,
)
from moorage.simulation.traces.pods import Requests, object_name, requests_of
from moorage.simulation.traces.source import BadLineError, Cells, TraceSource, columns
from moorage.simulation.traces.units import TraceUnits

_HEADER: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_MACHINE_COLUMNS: Final = 7
_WHOLE: Final = 100.0
_MILLI: Final = 1000
_READY: Final = Condition(type="Ready", status="True")


def is_node_list(path: Path) -> bool:
    """Whether a file is a list of machines, and no manifests."""
    return path.name.removesuffix(".gz").endswith(".csv")


def read_nodes(path: Path, units: TraceUnits) -> list[Node]:
    """The nodes of a list; InputError for a line that is none."""
    nodes: dict[str, Node] = {}
    source = TraceSource(path, units)
    for line, cells in _without_header(source.cells()):
        try:
            node = _gpu_node(cells) if len(cells) == len(_HEADER) else _machine(cells, units)
        except BadLineError as error:
            source.bad(line, str(error))
        else:
            nodes.setdefault(node.name, node)
    if not nodes:
        raise InputError(str(path), "there are no nodes in it")
    return list(nodes.values())


def _without_header(rows: Iterator[tuple[int, Cells]]) -> Iterator[tuple[int, Cells]]:
    first = next(rows, None)
    if first is None or tuple(first[1]) == _HEADER:
        return rows
    return chain((first,), rows)


def _machine(cells: Cells, units: TraceUnits) -> Node:
    if len(cells) != _MACHINE_COLUMNS:
        known = f"machine_meta has {_MACHINE_COLUMNS}, openb_node_list {len(_HEADER)}"
        raise BadLineError(f"{columns(len(cells))}; {known}")
    machine, _, domain, _, cores, memory, _ = cells
    requests = requests_of(
        round(values.amount(cores, "cpu_num") * _MILLI),
        units.memory_bytes(values.amount(memory, "mem_size") / _WHOLE),
    )
    return _node(object_name(machine), requests, {ZONE: f"zone-{object_name(domain)}"})


def _gpu_node(cells: Cells) -> Node:
    name, *numbers, model = cells
    cpu, memory, gpus = (
        round(values.amount(value, column)) for value, column in zip(numbers, _HEADER[1:], strict=False)
    )
    amounts = requests_of(cpu, memory * BYTES_PER_MIB, (GPU, gpus), (GPU_MILLI, gpus * MILLI_PER_GPU))
    return _node(object_name(name), amounts, {GPU_MODEL: model} if model else {})


def _node(name: str, amounts: Requests, labels: dict[str, str]) -> Node:
    room = {each: parse_quantity(amount) for each, amount in (*amounts, ("pods", DEFAULT_PODS))}
    return Node(
        api_version="v1",
        kind="Node",
        metadata=ObjectMeta(name=name, labels={HOSTNAME: name, **labels}),
        status=NodeStatus(capacity=room, allocatable=room, conditions=(_READY,)),
    )
