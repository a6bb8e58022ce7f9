"""Reports of shadow mode: where another scheduler has put each pod, and where moorage would have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from moorage.api.base import Struct
from moorage.api.decode import InputError, convert
from moorage.http.transport import Request, Response
from moorage.scheduler.shadow.report import Comparison, ComparisonResult, GroupComparison
from moorage.services.responses import document
from moorage.ui.documents import NodeState, PodState
from moorage.ui.second_run import second_run_feature
from moorage.ui.sources.file_source import FileSource
from moorage.ui.sources.source import Feature

_REQUIRED: Final = ("time", "result", "template")


class ComparedPod(Struct):
    """One pod, or one member of a group. Nodes are empty where there is none."""

    pod: str
    time: float
    result: ComparisonResult
    node: str
    ours: str = ""
    group: str = ""
    plugin: str = ""
    reason: str = ""
    totals: tuple[int, int] | None = None
    """On the other scheduler's node, and on ours."""


class ComparedPods(Struct, omit_defaults=False):
    """All comparisons, by time."""

    items: tuple[ComparedPod, ...]


def is_comparison(line: Any) -> bool:
    """Whether something is a line of a report."""
    return isinstance(line, Mapping) and all(each in line for each in _REQUIRED)


def shadow_source(text: str, where: str) -> FileSource:
    """What `moorage run --shadow-report` has written, with our decisions as a second run."""
    pods = sorted(_compared(text, where), key=lambda each: each.time)
    source, ours = FileSource("shadow", where), FileSource("shadow", "moorage")
    _fill(source, pods, lambda each: each.node)
    _fill(ours, pods, lambda each: each.ours)
    source.add(_comparisons_feature(ComparedPods(items=tuple(pods))))
    source.add(second_run_feature(ours))
    return source


def _comparisons_feature(pods: ComparedPods) -> Feature:
    async def comparisons(request: Request) -> Response:
        return document(pods)

    return Feature("comparisons", {"comparisons": comparisons})


def _fill(source: FileSource, pods: Sequence[ComparedPod], node_of: Callable[[ComparedPod], str]) -> None:
    for name in sorted({name for each in pods for name in (each.node, each.ours) if name}):
        source.timeline.put_node(name, NodeState())
    for time, batch in groupby(pods, key=lambda each: each.time):
        for each in batch:
            state = PodState(node=node_of(each), group=each.group, created=time)
            source.timeline.put_pod(each.pod, state)
        source.timeline.close_batch(time)


def _compared(text: str, where: str) -> Iterator[ComparedPod]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield from _pods_of(_decoded(line, f"{where}: line {number}"))


def _decoded(line: str, where: str) -> Comparison | GroupComparison:
    try:
        compared = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(where, f"not JSON: {error}") from None
    if not is_comparison(compared):
        raise InputError(where, "not a comparison of shadow mode")
    if "group" in compared:
        return convert(compared, GroupComparison, where)
    return convert(compared, Comparison, where)


def _pods_of(compared: Comparison | GroupComparison) -> Iterator[ComparedPod]:
    pods = {compared.pod: compared.node} if isinstance(compared, Comparison) else compared.nodes
    for key, node in pods.items():
        made = ComparedPod(
            pod=key,
            time=compared.time.timestamp(),
            result=compared.result,
            node=node,
            ours=_ours(compared, key),
        )
        if isinstance(compared, GroupComparison):
            made = replace(made, group=compared.group)
            if key != compared.member:
                yield made
                continue
        yield replace(made, plugin=compared.plugin, reason=compared.reason, totals=compared.totals)


def _ours(compared: Comparison | GroupComparison, key: str) -> str:
    if isinstance(compared, Comparison):
        return compared.ours
    # Members with the same node in both decisions are left out.
    return compared.ours.get(key, compared.nodes[key])
