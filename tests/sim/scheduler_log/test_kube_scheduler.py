"""Logs of the real kube-scheduler v1.36.4, made into recordings and replayed."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import pytest

from moorage.api.base import Object
from moorage.api.decode import decode_object
from moorage.api.files import load_json
from moorage.api.node import Node
from moorage.config.load import load_config
from moorage.emulation.kubernetes_version import V1_36
from moorage.sim.scheduler_log.happenings import LogReader
from moorage.sim.scheduler_log.recording import LogRecording, Reason, at_several_times, recording_of_log
from tests.sim.scheduler_log.logs import DATA, replayed

CONFIG = load_config(DATA / "config.yaml", V1_36)
SCHEDULERS = [profile.scheduler_name for profile in CONFIG.profiles]


def lines(name: str) -> list[str]:
    with gzip.open(DATA / f"{name}.log.gz", "rt") as file:
        return file.readlines()


def cluster(name: str) -> list[list[Object]]:
    items = load_json(DATA / f"{name}-cluster.json.gz")["items"]
    decoded = (decode_object(manifest, name) for manifest in items)
    return at_several_times(obj for obj in decoded if obj is not None)


def read(*logs: Sequence[str]) -> LogReader:
    reader = LogReader()
    for log in logs:
        reader.read(log)
    return reader


def recorded(name: str, log: Sequence[str] | None = None) -> LogRecording:
    reader = read(lines(name) if log is None else log)
    return recording_of_log(reader.happenings, cluster(name), SCHEDULERS)


@pytest.mark.parametrize(("name", "attempts"), [("text", 97), ("json", 93), ("sampled", 7)])
def test_every_attempt_is_replayed_equally(name: str, attempts: int, tmp_path: Path) -> None:
    made = recorded(name)
    assert (made.left_out, made.unknown, made.unscored_count) == ({}, set(), 0)
    result = replayed(made, tmp_path, CONFIG)
    assert [str(each) for each in result.differences] == []
    assert (result.pods, made.attempt_count) == (attempts, attempts)


@pytest.mark.parametrize("name", ["text", "json"])
def test_the_log_has_every_kind_of_result(name: str) -> None:
    made = recorded(name)
    attempts = [step for step in made.steps if "pod" in step]
    expected = [step["expect"] for step in attempts]
    messages = " ".join(expect["message"] or "" for expect in expected)
    for text in (
        "no nodes available to schedule pods",
        "untolerated taint",
        "anti-affinity rules",
        "didn't match Pod's node affinity/selector",
        "didn't match pod affinity rules",
        "Insufficient cpu",
        "were unschedulable",
        "not eligible due to a terminating pod on the nominated node",
        "not eligible due to preemptionPolicy=Never",
    ):
        assert text in messages
    assert {len(expect["victims"]) for expect in expected if expect.get("nominated")} >= {1, 3}
    nominated = [step for step in attempts if step["pod"].get("status", {}).get("nominatedNodeName")]
    assert len({step["pod"]["metadata"]["name"] for step in nominated if step["expect"]["node"]}) >= 4
    assert {step["pod"]["spec"]["schedulerName"] for step in attempts} == set(SCHEDULERS)


def test_samples_of_the_nodes_are_scored_as_samples(tmp_path: Path) -> None:
    made = recorded("sampled")
    *bound, _ = (step["expect"] for step in made.steps if "pod" in step)
    assert [(len(expect["scores"]), expect["sampled"]) for expect in bound] == [(100, True)] * 6
    bound[0]["scores"]["n003"]["NodeResourcesFit"] += 1
    del bound[1]["sampled"]
    first, *others = replayed(made, tmp_path, CONFIG).differences
    assert (first.pod, first.what, first.node, first.plugin) == (
        "plain-0",
        "score",
        "n003",
        "NodeResourcesFit",
    )
    assert [each.what for each in others] == ["feasible"] * 30


def test_another_victim_node_score_or_message_is_noticed(tmp_path: Path) -> None:
    made = recorded("text")
    attempts = [step["expect"] for step in made.steps if "pod" in step]
    preemption = next(expect for expect in attempts if len(expect.get("victims", ())) > 1)
    preemption["victims"] = preemption["victims"][1:]
    scored = next(expect for expect in attempts if len(expect.get("scores", ())) > 1)
    next(iter(scored["scores"].values()))["NodeResourcesFit"] += 1
    rejected = next(expect for expect in attempts if "anti-affinity" in (expect["message"] or ""))
    rejected["message"] += " Or so."
    found = replayed(made, tmp_path, CONFIG).differences
    assert [each.what for each in found] == ["score", "message", "victims"]


def test_victims_are_known_from_the_log_alone(tmp_path: Path) -> None:
    """The cluster has no victims afterwards: their objects are the answers of the API server."""
    before, *_, after = cluster("text")
    nodes = [obj for obj in before if isinstance(obj, Node)]
    made = recording_of_log(read(lines("text")).happenings, [nodes, after], SCHEDULERS)
    expected = [step["expect"] for step in made.steps if "pod" in step]
    assert {victim for expect in expected for victim in expect.get("victims", ())} > {"default/web-0"}
    assert "default/web-0" not in {obj.key for obj in after}
    assert replayed(made, tmp_path, CONFIG).differences == []


@pytest.mark.parametrize(("name", "begin"), [(name, n) for name in ("text", "json") for n in range(1, 20, 2)])
def test_a_log_that_begins_anywhere_is_replayed_equally(name: str, begin: int, tmp_path: Path) -> None:
    log = lines(name)
    made = recorded(name, log[len(log) * begin // 20 :])
    assert [str(each) for each in replayed(made, tmp_path, CONFIG).differences] == []
    assert set(made.left_out) <= {
        Reason.INCOMPLETE,
        Reason.UNKNOWN_POD,
        Reason.UNKNOWN_STATE,
        Reason.UNKNOWN_NOMINATIONS,
    }


@pytest.mark.parametrize("name", ["text", "json"])
def test_a_rotated_log_is_read_as_one(name: str) -> None:
    log = lines(name)
    middle = next(at for at in range(len(log) // 2, len(log)) if "Attempting" in log[at])
    assert read(log[:middle], log[middle:]).happenings == read(log).happenings


def test_what_is_cut_off_is_counted() -> None:
    log = lines("text")
    assert read([*log[:-1], log[-1][:-10]]).cut_count == 1
