"""Recordings from a scheduler's log: one of the real kube-scheduler v1.36.4 at -v=10 is kept here."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from moorage.api.base import Object
from moorage.api.decode import decode_object
from moorage.config.load import default_config
from moorage.emulation.kubernetes_version import V1_36
from moorage.plugins import default_registry
from moorage.scheduler.recording_file import RecordingFile
from moorage.sim.log_recording import LogRecording, recording_of_log
from moorage.sim.recording import load_recording
from moorage.sim.replay import ReplayResult
from moorage.sim.scheduler_log import LoggedAttempt, logged_attempts

DATA = Path(__file__).parent / "data"
"""The log, without lines that are not read, and nodes and pods as they were afterwards."""


def attempts() -> list[LoggedAttempt]:
    with gzip.open(DATA / "kube-scheduler.log.gz", "rt") as lines:
        return logged_attempts(lines)


def cluster() -> list[Object]:
    manifests = json.loads(gzip.decompress((DATA / "kube-scheduler-cluster.json.gz").read_bytes()))
    decoded = (decode_object(manifest, "cluster") for manifest in manifests)
    return [obj for obj in decoded if obj is not None]


def replayed(made: LogRecording, tmp_path: Path) -> ReplayResult:
    path = tmp_path / "recording.json"
    file = RecordingFile(path, default_config(V1_36), V1_36, "kube-scheduler v1.36.4, from its log")
    file.begin(made.objects)
    file.add(*made.steps)
    file.close()
    result = ReplayResult()
    result.add(load_recording(path), default_registry())
    return result


def test_attempts_are_read_with_scores_and_messages() -> None:
    first, *_, last = attempts()
    assert (first.pod, first.node, len(first.scores)) == ("default/p00", "n3", 3)
    assert first.scores["n3"]["NodeResourcesFit"] > 0
    assert (last.pod, last.node) == ("default/huge", None)
    assert last.message is not None
    assert last.message.startswith("0/3 nodes are available: 3 Insufficient cpu.")


def test_a_replay_of_the_log_is_equal(tmp_path: Path) -> None:
    made = recording_of_log(attempts(), cluster())
    assert made.missing == []
    result = replayed(made, tmp_path)
    assert [str(each) for each in result.differences] == []
    assert result.pods == 11


def test_a_replay_notices_another_score(tmp_path: Path) -> None:
    changed = attempts()
    changed[0].scores["n3"]["NodeResourcesFit"] += 1
    [difference] = replayed(recording_of_log(changed, cluster()), tmp_path).differences
    assert (difference.pod, difference.what, difference.plugin) == ("p00", "score", "NodeResourcesFit")


def test_pods_that_are_gone_are_named() -> None:
    left = [obj for obj in cluster() if obj.name != "p03"]
    made = recording_of_log(attempts(), left)
    assert made.missing == ["default/p03"]
    assert len(made.steps) == 10


def test_lines_of_other_programs_are_left_out() -> None:
    assert logged_attempts(["", "not a log", 'I1117 01:31:49.5 1 a.go:1] "Attempting to schedule pod"']) == []
