"""The command line as people use it: output, exit statuses, and one line for bad input."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from moorage.cli.main import app
from moorage.version import __version__

ROOT = Path(__file__).parent.parent.parent
RECORDING = ROOT / "tests" / "recordings" / "taints-0.json.gz"
CLUSTER, POD = ROOT / "examples" / "cluster.yaml", ROOT / "examples" / "pod.yaml"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})


def test_version() -> None:
    assert run("--version").output == f"moorage {__version__}\n"


def test_replay_prints_a_table_and_succeeds_if_all_is_equal() -> None:
    result = run("replay", RECORDING)
    assert result.exit_code == 0, result.output
    assert "40 of 40 pods equal" in result.output


def damaged(tmp_path: Path) -> Path:
    document = json.loads(gzip.decompress(RECORDING.read_bytes()))
    step = next(step for step in document["steps"] if (step["expect"]["scores"]))
    node = min(step["expect"]["scores"])
    step["expect"]["scores"][node]["TaintToleration"] += 1
    other = next(s for s in document["steps"] if s is not step and s["expect"]["scores"])
    del other["expect"]["scores"][min(other["expect"]["scores"])]
    file = tmp_path / "damaged.json"
    file.write_text(json.dumps(document))
    return file


def test_replay_shows_differences_node_by_node(tmp_path: Path) -> None:
    result = run("replay", damaged(tmp_path))
    assert result.exit_code == 1
    assert "TaintToleration: recorded" in result.output
    assert "38 of 40 pods equal" in result.output


def test_replay_as_json(tmp_path: Path) -> None:
    result = run("replay", "--json", damaged(tmp_path), RECORDING)
    assert result.exit_code == 1
    outcome = json.loads(result.stdout)
    assert (outcome["pods"], outcome["equal"]) == (80, 78)
    assert outcome["families"] == {"taints": {"pods": 80, "equal": 78}}
    assert {each["what"] for each in outcome["differences"]} == {"score", "feasible"}
    score = next(each for each in outcome["differences"] if each["what"] == "score")
    assert score["recorded"] == score["ours"] + 1


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{", "not JSON"),
        ("[]", "not a recording: there are no steps"),
        ('{"steps": 5}', "steps: expected a list"),
        ('{"steps": [{"pod": {"kind": "Node"}, "expect": {}}]}', "steps[0].pod: not a Pod"),
        ('{"steps": [{"pod": {"kind": "Pod"}}]}', "steps[0]: a pod without what to expect"),
        (
            '{"steps": [{"pod": {"kind": "Pod", "spec": {"priority": "x"}}, "expect": {}}]}',
            "spec.priority: expected",
        ),
        ('{"steps": [{"pod": {"kind": "Pod"}, "expect": {"node": 5}}]}', "expect: node: expected"),
        (
            '{"steps": [], "objects": [{"kind": "Node", "status": {"allocatable": {"cpu": "?"}}}]}',
            "allocatable.cpu: '?' is not a quantity",
        ),
        ('{"steps": [], "config": {"profiles": [{"plugin": {}}]}}', "profiles[0].plugin"),
        (
            '{"steps": [{"pod": {"kind": "Pod", "spec": {"schedulerName": "other"}}, "expect": {}}]}',
            "no profile other",
        ),
    ],
)
def test_an_unreadable_recording_gives_one_line_and_status_2(tmp_path: Path, text: str, line: str) -> None:
    file = tmp_path / "bad.json"
    file.write_text(text)
    result = run("replay", file)
    assert result.exit_code == 2, result.output
    assert line in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout == ""


def test_a_missing_file_gives_status_2(tmp_path: Path) -> None:
    assert run("replay", tmp_path / "none.json").exit_code == 2


def test_decide_shows_scores_and_refusals() -> None:
    result = run("decide", CLUSTER, "--pod", POD)
    assert result.exit_code == 0, result.output
    assert "default/shop-3 goes to bergen-1" in result.output
    for words in ("TaintToleration 300", "node(s) were unschedulable", "Insufficient cpu"):
        assert words in result.output


def test_decide_as_json_says_everything() -> None:
    result = run("decide", CLUSTER, "--pod", POD, "--json")
    (decision,) = json.loads(result.stdout)
    assert decision["node"] == "bergen-1"
    by_name = {node["node"]: node for node in decision["nodes"]}
    assert len(by_name) == 8
    assert by_name["bergen-1"]["chosen"]
    assert by_name["bergen-1"]["total"] == sum(by_name["bergen-1"]["scores"].values())
    assert by_name["cadiz-3"]["refusedBy"] == "NodeResourcesFit"


def test_several_pods_count_for_each_other(tmp_path: Path) -> None:
    pods = tmp_path / "pods.yaml"
    pods.write_text(
        "\n---\n".join(
            f"{{kind: Pod, metadata: {{name: p{i}, namespace: x}}, spec: {{nodeSelector: {{disk: hdd}}, "
            "containers: [{name: c, resources: {requests: {cpu: 5}}}]}}"
            for i in range(2)
        )
    )
    result = run("decide", CLUSTER, "--pod", pods)
    assert result.exit_code == 1
    assert "x/p0 goes to amsterdam-2" in result.output
    assert "x/p1 fits nowhere: 0/8 nodes are available" in result.output


def test_decide_says_whom_preemption_would_evict(tmp_path: Path) -> None:
    pod = tmp_path / "pod.yaml"
    pod.write_text(
        "kind: Pod\nmetadata: {name: boss, namespace: x}\nspec: {priority: 100, nodeSelector: "
        "{kubernetes.io/hostname: cadiz-3}, containers: [{name: c, resources: {requests: {cpu: 2}}}]}\n"
    )
    result = run("decide", CLUSTER, "--pod", pod)
    assert result.exit_code == 1
    assert "evicting default/crunch-1 would make room on cadiz-3" in result.output
    (decision,) = json.loads(run("decide", CLUSTER, "--pod", pod, "--json").stdout)
    assert (decision["nominated"], decision["victims"]) == ("cadiz-3", ["default/crunch-1"])


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("kind: Node\nmetadata: {name: n}\n", "there is no Pod in it"),
        (
            "kind: Pod\nmetadata: {name: p}\nspec: {schedulerName: mine}\n",
            "pod p wants scheduler mine; there is default-scheduler",
        ),
        ("kind: Pod\nspec: {containers: 5}\n", "spec.containers: expected `array`, got `int`"),
    ],
)
def test_decide_with_input_that_cannot_be_used(tmp_path: Path, content: str, line: str) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(content)
    result = run("decide", CLUSTER, "--pod", file)
    assert result.exit_code == 2
    assert line in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_decide_follows_a_configuration(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {score: {disabled: [{name: '*'}], enabled: [{name: ImageLocality}]}}}]\n"
    )
    result = run("decide", CLUSTER, "--pod", POD, "--config", config, "--json")
    (decision,) = json.loads(result.stdout)
    assert decision["node"] in ("amsterdam-1", "cadiz-2")


def test_config_check_knows_the_plugins_there_are(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {filter: {enabled: [{name: Nonsense}]}}}]\n"
    )
    result = run("config", "check", config)
    assert result.exit_code == 1
    assert "there is no plugin Nonsense" in result.stderr
