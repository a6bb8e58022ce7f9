"""Alibaba's cluster-trace-gpu-v2023: the pods of a cluster with GPUs that are shared.

The pod lists (`openb_pod_list_*.csv`, github.com/alibaba/clusterdata) are tables with a header: name,
cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec, qos, pod_phase, creation_time, deletion_time,
scheduled_time; the lists `multigpu` have the first five only, so that all their pods arrive at the start
and have no end. Times are seconds. Pods that were never scheduled have no scheduled_time: they run for as
long as they waited.

A pod requests `num_gpu` GPUs with `gpu_milli` thousandths of each; a fraction is only possible of a
single GPU. As resources: `alibabacloud.com/gpu-milli` is num_gpu x gpu_milli, which every pod with a GPU
requests, and `nvidia.com/gpu` is num_gpu, which only pods with whole GPUs request. A node with GPUs has
both, 1,000 thousandths a GPU. So the sum on a node is right, but fractions are not bound to one GPU: a
node may hold three pods of 600 thousandths on two GPUs. gpu_spec (`V100M16|V100M32`) are the models it
can use, of the node's label `alibabacloud.com/gpu-card-model`. qos and pod_phase are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from moorage.simulation.traces import values
from moorage.simulation.traces.pods import NodeLabels, TracePod, object_name, requests_of
from moorage.simulation.traces.source import Row, TraceSource

GPU: Final = "nvidia.com/gpu"
GPU_MILLI: Final = "alibabacloud.com/gpu-milli"
GPU_MODEL: Final = "alibabacloud.com/gpu-card-model"
MILLI_PER_GPU: Final = 1000
BYTES_PER_MIB: Final = 1 << 20
_NEEDED: Final = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")


def read_pods(source: TraceSource) -> Iterator[TracePod]:
    """The pods of a list."""
    return source.pods(source.table(_NEEDED), _pod)


def _pod(line: int, row: Row) -> Iterable[TracePod]:
    created, deleted, scheduled = (
        values.seconds(row[name], name) if name in row else None
        for name in ("creation_time", "deletion_time", "scheduled_time")
    )
    cpu, memory, count, milli = (round(values.amount(row.get(name, 0), name)) for name in _NEEDED[1:])
    is_whole = milli >= MILLI_PER_GPU
    began = scheduled if scheduled is not None else created or 0.0
    requests = requests_of(
        cpu,
        memory * BYTES_PER_MIB,
        (GPU_MILLI, count * milli),
        (GPU, count if is_whole else 0),
    )
    pod = TracePod(
        created or 0.0,
        line,
        object_name(row.get("name", f"pod-{line}")),
        None if deleted is None else max(deleted - began, 0.0),
        requests,
        node_labels=_models(str(row.get("gpu_spec", ""))),
    )
    return (pod,)


def _models(spec: str) -> NodeLabels:
    models = tuple(dict.fromkeys(each for each in spec.split("|") if each))
    return ((GPU_MODEL, models),) if models else ()
