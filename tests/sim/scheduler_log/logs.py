"""Logs and recordings for tests."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from moorage.api.base import Object
from moorage.config.load import default_config
from moorage.config.types import SchedulerConfiguration
from moorage.emulation.kubernetes_version import V1_36
from moorage.plugins import default_registry
from moorage.scheduler.recording_file import RecordingFile
from moorage.sim.recording import load_recording
from moorage.sim.replay import ReplayResult
from moorage.sim.scheduler_log.happenings import LogReader
from moorage.sim.scheduler_log.recording import LogRecording, at_several_times, recording_of_log

DATA = Path(__file__).parent / "data"

STARTED = ("Starting Kubernetes Scheduler", {"version": "v1.36.4"})

Line = tuple[str, dict[str, Any]]
"""A message with its values."""


def text_of(lines: Iterable[Line]) -> str:
    """Lines in klog's text format."""
    return "".join(
        f'I1117 13:59:07.141838   30344 file.go:123] "{message}"'
        + "".join(f" {key}={json.dumps(value)}" for key, value in values.items())
        + "\n"
        for message, values in lines
    )


def node_added(*names: str) -> list[Line]:
    return [("Add event for node", {"node": name}) for name in names]


def added(*pods: str) -> list[Line]:
    return [("Add event for unscheduled pod", {"pod": f"default/{pod}"}) for pod in pods]


def bound(pod: str, node: str, evaluated: int = 0, scores: dict[str, int] | None = None) -> list[Line]:
    """An attempt that ends with a binding, and the events that follow from it; scores are of one plugin."""
    key = f"default/{pod}"
    counts = {"evaluatedNodes": evaluated, "feasibleNodes": len(scores or "1")}
    scored = [
        (
            "Plugin scored node for pod",
            {"pod": key, "plugin": "NodeResourcesFit", "node": name, "score": score},
        )
        for name, score in (scores or {}).items()
    ]
    return [
        ("Attempting to schedule pod", {"pod": key}),
        *scored,
        ("Attempting to bind pod to node", {"pod": key, "node": node}),
        ("Successfully bound pod to node", {"pod": key, "node": node, **counts}),
        ("Add event for scheduled pod", {"pod": key}),
        ("Delete event for unscheduled pod", {"pod": key}),
    ]


def rejected(pod: str, message: str = "0/1 nodes are available: 1 Insufficient cpu.") -> list[Line]:
    key = f"default/{pod}"
    return [
        ("Attempting to schedule pod", {"pod": key}),
        ("Unable to schedule pod; no fit; waiting", {"pod": key, "err": message}),
    ]


def deleted(*pods: str) -> list[Line]:
    return [("Delete event for scheduled pod", {"pod": f"default/{pod}"}) for pod in pods]


def recorded(
    lines: Iterable[Line], objects: Iterable[Object], schedulers: Sequence[str] = ("default-scheduler",)
) -> LogRecording:
    """The recording of a log."""
    reader = LogReader()
    reader.read(text_of(lines).splitlines(keepends=True))
    return recording_of_log(reader.happenings, at_several_times(objects), schedulers)


def shown(made: LogRecording) -> list[str]:
    """Steps as words: `+` what is put, `-` what is deleted, and pods with the result of their attempt."""
    words = []
    for step in made.steps:
        if "pod" in step:
            expect = step["expect"]
            result = expect["node"] or f"no: {expect.get('nominated', '')}".rstrip(": ")
            words.append(f"{step['pod']['metadata']['name']} {result}")
        for sign, field in (("+", "replace"), ("-", "delete")):
            words += [sign + each["metadata"]["name"] for each in step.get(field, ())]
    return words


def replayed(
    made: LogRecording, directory: Path, config: SchedulerConfiguration | None = None
) -> ReplayResult:
    """The replay of a recording."""
    path = directory / "recording.json"
    config = default_config(V1_36) if config is None else config
    file = RecordingFile(path, config, V1_36, "kube-scheduler v1.36.4, from its log")
    file.begin(made.objects)
    file.add(*made.steps)
    file.close()
    result = ReplayResult()
    result.add(load_recording(path), default_registry())
    return result


def unpacked(name: str, directory: Path) -> Path:
    """A compressed file of the folder `data`, as a file that is not."""
    path = directory / name.removesuffix(".gz")
    path.write_bytes(gzip.decompress((DATA / name).read_bytes()))
    return path
