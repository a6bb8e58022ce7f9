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
CONTAINERS = "containers: [{name: c, image: x}]"


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
            "wants scheduler other",
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
            "containers: [{name: c, image: x, resources: {requests: {cpu: 5}}}]}}"
            for i in range(2)
        )
    )
    result = run("decide", CLUSTER, "--pod", pods)
    assert result.exit_code == 1
    assert "x/p0 goes to amsterdam-2" in result.output
    assert "x/p1 fits nowhere: 0/8 nodes are available" in result.output


def placed(tmp_path: Path, *manifests: str) -> list[tuple[str | None, str]]:
    file = tmp_path / "pods.yaml"
    file.write_text("\n---\n".join(manifests))
    decisions = json.loads(run("decide", tmp_path / "cluster.yaml", "--pod", file, "--json").stdout)
    return [(decision["node"], decision["message"]) for decision in decisions]


def test_volumes_and_devices_of_one_pod_are_taken_for_the_next(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(
        """
{kind: Node, metadata: {name: a}, status: {allocatable: {cpu: 4, pods: 9}}}
---
{kind: DeviceClass, metadata: {name: gpu}}
---
{kind: ResourceSlice, metadata: {name: s}, spec: {driver: d, nodeName: a, devices: [{name: g}],
 pool: {name: p, generation: 1, resourceSliceCount: 1}}}
---
{kind: ResourceClaim, metadata: {name: c0},
 spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}}
---
{kind: ResourceClaim, metadata: {name: c1},
 spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}}
"""
    )
    pods = [
        f"{{kind: Pod, metadata: {{name: p{i}}}, "
        f"spec: {{{CONTAINERS}, resourceClaims: [{{name: x, resourceClaimName: c{i}}}]}}}}"
        for i in (0, 1)
    ]
    (first, _), (second, message) = placed(tmp_path, *pods)
    assert (first, second) == ("a", None)
    assert message.startswith("0/1 nodes are available: 1 cannot allocate all claims.")


def test_pods_that_no_scheduler_would_try(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(
        "{kind: Node, metadata: {name: a}, status: {allocatable: {pods: 9}}}"
    )
    assert placed(
        tmp_path,
        f"{{kind: Pod, metadata: {{name: gated}}, spec: {{{CONTAINERS}, schedulingGates: [{{name: x}}]}}}}",
        f"{{kind: Pod, metadata: {{name: done}}, spec: {{{CONTAINERS}}}, status: {{phase: Succeeded}}}}",
        "{kind: Pod, metadata: {name: going, deletionTimestamp: '2026-01-01T00:00:00Z'}, "
        f"spec: {{{CONTAINERS}}}}}",
    ) == [
        (None, "waiting for scheduling gates: [x]"),
        (None, "the pod has ended (Succeeded)"),
        (None, "the pod is being deleted"),
    ]


def test_a_pod_that_is_on_a_node_is_asked_about_as_if_it_were_not(tmp_path: Path) -> None:
    result = run("decide", CLUSTER, "--pod", CLUSTER, "--json")
    decisions = json.loads(result.stdout)
    assert [decision["pod"] for decision in decisions] == [
        "default/shop-1",
        "default/shop-2",
        "default/crunch-1",
    ]
    assert all(decision["node"] for decision in decisions)


def test_a_pod_without_a_namespace_is_in_the_default_one_and_a_generated_name_will_do(tmp_path: Path) -> None:
    pod = tmp_path / "pod.yaml"
    pod.write_text(
        "kind: PodList\nitems:\n" + 2 * f"- {{metadata: {{generateName: web-}}, spec: {{{CONTAINERS}}}}}\n"
    )
    decisions = json.loads(run("decide", CLUSTER, "--pod", pod, "--json").stdout)
    assert [decision["pod"] for decision in decisions] == ["default/web-00000", "default/web-00001"]


def test_names_are_shown_as_they_are_and_the_refusal_is_one_line(tmp_path: Path) -> None:
    pod = tmp_path / "pod.yaml"
    pod.write_text(
        'kind: Pod\nmetadata: {name: "[/red]x", uid: "1"}\nspec: {nodeSelector: {nowhere: "yes"}}\n'
    )
    result = CliRunner().invoke(app, ["decide", str(CLUSTER), "--pod", str(pod)], env={"COLUMNS": "40"})
    first = result.output.splitlines()[0]
    assert first.startswith("default/[/red]x fits nowhere: 0/8 nodes are available: ")
    assert first.endswith("8 Preemption is not helpful for scheduling.")


def test_amounts_beyond_all_reason_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(
        "{kind: Node, metadata: {name: a}, status: {allocatable: {cpu: 1e20, memory: 1e30, pods: 10E}}}\n"
        "---\n{kind: Pod, metadata: {name: p}, spec: {nodeName: a, containers: [{name: c, image: x, "
        "resources: {requests: {cpu: 1e20, memory: 1e30}}}]}}\n---\n{kind: Node, metadata: {name: b}}"
    )
    asking = "{containers: [{name: c, image: x, resources: {requests: {memory: 1e30}}}]}"
    big = f"{{kind: Pod, metadata: {{name: q}}, spec: {asking}}}"
    ((node, message),) = placed(tmp_path, big)
    assert node is None
    assert message.startswith("0/2 nodes are available: 1 Too many pods, 2 Insufficient memory.")


def test_decide_asks_extenders(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "extenders: [{urlPrefix: 'http://127.0.0.1:1', filterVerb: filter}]\n"
    )
    result = run("decide", CLUSTER, "--pod", POD, "--config", config)
    refused = 'Post "http://127.0.0.1:1/filter": dial tcp 127.0.0.1:1: connect: connection refused'
    assert (result.exit_code, refused in result.stdout) == (1, True), result


def test_decide_prints_the_pods_that_preemption_would_evict(tmp_path: Path) -> None:
    pod = tmp_path / "pod.yaml"
    pod.write_text(
        "kind: Pod\nmetadata: {name: boss, namespace: x}\nspec: {priorityClassName: system-node-critical, "
        "nodeSelector: {kubernetes.io/hostname: cadiz-3}, "
        "containers: [{name: c, image: x, resources: {requests: {cpu: 2}}}]}\n"
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
            f"kind: Pod\nmetadata: {{name: p}}\nspec: {{schedulerName: mine, {CONTAINERS}}}\n",
            "pod p: wants scheduler mine; there is default-scheduler",
        ),
        (
            "kind: Pod\nmetadata: {name: p, uid: '1'}\nspec: {containers: 5}\n",
            "spec.containers: expected `array`, got `int`",
        ),
        (
            f"kind: Pod\nmetadata: {{name: p}}\nspec: {{priorityClassName: none, {CONTAINERS}}}\n",
            'pod.yaml: pods "p" is forbidden: no PriorityClass with name none was found',
        ),
        ("kind: Pod\nmetadata: {name: p}\n", 'Pod "p" is invalid: spec.containers: Required value'),
    ],
)
def test_decide_with_input_that_cannot_be_used(tmp_path: Path, content: str, line: str) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(content)
    result = run("decide", CLUSTER, "--pod", file)
    assert result.exit_code == 2
    assert line in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_decide_gives_new_pods_what_an_api_server_would(tmp_path: Path) -> None:
    """From objects that scheduling itself does not read; a pod that was stored has all of it already."""
    (tmp_path / "cluster.yaml").write_text(
        "{kind: Node, metadata: {name: a}, status: {allocatable: {cpu: 4, pods: 9}}}\n---\n"
        "{apiVersion: v1, kind: LimitRange, metadata: {name: l, namespace: default}, "
        "spec: {limits: [{type: Container, defaultRequest: {cpu: 5}}]}}\n---\n"
        "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: c}, value: 5}\n"
    )
    new = f"{{kind: Pod, metadata: {{name: p}}, spec: {{priorityClassName: c, {CONTAINERS}}}}}"
    stored = f"{{kind: Pod, metadata: {{name: q, uid: '1'}}, spec: {{{CONTAINERS}}}}}"
    (nowhere, message), (somewhere, _) = placed(tmp_path, new, stored)
    assert (nowhere, somewhere) == (None, "a")
    assert message.startswith("0/1 nodes are available: 1 Insufficient cpu.")


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
