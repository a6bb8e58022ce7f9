from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.api.decode import InputError
from moorage.bench.ops import CreatePods
from moorage.bench.workload_files import PlannedWorkload, read_workloads, workload_files
from moorage.bench.workload_selection import has_labels, select
from moorage.emulation.kubernetes_version import V1_36, V1_37
from tests.bench.files import MEASURED, NODES, SIZE, Files

PODS = {"opcode": "createPods", "count": 1}


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as error:
        select(read_workloads(path), [], [])
    text = str(error.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    return text.removeprefix(f"{path}: ")


WRONG_OPS: list[tuple[str, dict[str, Any], str]] = [
    ("no opcode", {}, "op 1: unknown opcode ''"),
    ("unknown opcode", {"opcode": "createStars"}, "op 1: unknown opcode 'createStars'"),
    (
        "unknown field",
        {**PODS, "colour": "blue"},
        "op 1 (createPods): object contains unknown field `colour`",
    ),
    ("wrong type", {**PODS, "count": "many"}, "op 1 (createPods): count: expected `int`, got `str`"),
    (
        "negative count",
        {**PODS, "count": -1},
        "op 1 (createPods): workload tiny: count is -1, which is negative",
    ),
    (
        "undefined parameter",
        {**PODS, "countParam": "$many"},
        "op 1 (createPods): workload tiny: parameter many is undefined",
    ),
    (
        "parameter without a dollar",
        {**PODS, "countParam": "many"},
        "op 1 (createPods): workload tiny: 'many' is not the name of a parameter, which begins with $",
    ),
    (
        "measures what it does not wait for",
        {**PODS, "collectMetrics": True, "skipWaitToCompletion": True},
        "op 1 (createPods): workload tiny: collectMetrics and skipWaitToCompletion cannot both be true",
    ),
    (
        "steady without duration",
        {**PODS, "steadyState": True},
        "op 1 (createPods): workload tiny: a steady state needs a duration",
    ),
    (
        "a volume without claim",
        {**PODS, "persistentVolumeTemplatePath": "pod.yaml"},
        "op 1 (createPods): workload tiny: templates of volumes and of claims are only of use together",
    ),
    (
        "no values",
        {**NODES, "labelNodePrepareStrategy": {"labelKey": "a", "labelValues": []}},
        "op 1 (createNodes): workload tiny: labelNodePrepareStrategy.labelValues is empty",
    ),
    (
        "wrong mode",
        {"opcode": "churn", "mode": "stir", "templatePaths": ["pod.yaml"]},
        "op 1 (churn): workload tiny: mode 'stir' is neither create nor recreate",
    ),
    (
        "recreates nothing",
        {"opcode": "churn", "mode": "recreate", "templatePaths": ["pod.yaml"]},
        "op 1 (churn): workload tiny: number is 0, which is too small",
    ),
    (
        "churns nothing",
        {"opcode": "churn", "mode": "create"},
        "op 1 (churn): workload tiny: templatePaths is empty",
    ),
    (
        "wrong stage",
        {"opcode": "barrier", "stageRequirement": "Started"},
        "op 1 (barrier): workload tiny: stageRequirement 'Started' is neither Scheduled nor Attempted",
    ),
    (
        "wrong duration",
        {"opcode": "sleep", "duration": "soon"},
        "op 1 (sleep): workload tiny: duration 'soon': ",
    ),
    (
        "no namespaces",
        {"opcode": "startCollectingMetrics"},
        "op 1 (startCollectingMetrics): workload tiny: namespaces is empty",
    ),
    (
        "a driver without a name",
        {"opcode": "createResourceDriver", "nodes": "*"},
        "op 1 (createResourceDriver): workload tiny: driverName is missing",
    ),
    (
        "a driver without nodes",
        {"opcode": "createResourceDriver", "driverName": "x"},
        "op 1 (createResourceDriver): workload tiny: nodes is missing",
    ),
    (
        "negative devices",
        {"opcode": "createResourceDriver", "driverName": "x", "nodes": "*", "maxClaimsPerNode": -1},
        "op 1 (createResourceDriver): workload tiny: maxClaimsPerNode is -1, which is negative",
    ),
    (
        "claims nowhere",
        {"opcode": "createResourceClaims", "templatePath": "pod.yaml"},
        "op 1 (createResourceClaims): workload tiny: namespace is missing",
    ),
    (
        "claims from nothing",
        {"opcode": "createResourceClaims", "namespace": "a"},
        "op 1 (createResourceClaims): workload tiny: templatePath is missing",
    ),
    (
        "deletes nowhere",
        {"opcode": "deletePods"},
        "op 1 (deletePods): workload tiny: namespace is missing",
    ),
    (
        "deletes backwards",
        {"opcode": "deletePods", "namespace": "a", "deletePodsPerSecond": -1},
        "op 1 (deletePods): workload tiny: -1 a second is negative",
    ),
    ("makes nothing", {"opcode": "createAny"}, "op 1 (createAny): workload tiny: templatePath is missing"),
    ("updates nothing", {"opcode": "updateAny"}, "op 1 (updateAny): workload tiny: templatePath is missing"),
]


@pytest.mark.parametrize(
    ("op", "reason"), [each[1:] for each in WRONG_OPS], ids=[each[0] for each in WRONG_OPS]
)
def test_a_wrong_operation_is_named_before_anything_runs(
    files: Files, op: dict[str, Any], reason: str
) -> None:
    assert refusal(files.case(NODES, op, MEASURED)).startswith(f"Case: {reason}")


@pytest.mark.parametrize(
    "op",
    [
        {**PODS, "podTemplatePath": "gone.yaml"},
        {"opcode": "createNodes", "nodeTemplatePath": "gone.yaml"},
        {"opcode": "createNamespaces", "prefix": "a", "namespaceTemplatePath": "gone.yaml"},
        {"opcode": "createAny", "templatePath": "gone.yaml"},
        {"opcode": "churn", "mode": "create", "templatePaths": ["pod.yaml", "gone.yaml"]},
    ],
    ids=lambda op: op["opcode"],
)
def test_a_missing_template_is_named(files: Files, op: dict[str, Any]) -> None:
    gone = files.directory / "gone.yaml"
    expected = f"Case: op 1 ({op['opcode']}): {gone}: No such file or directory"
    assert refusal(files.case(NODES, op, MEASURED)) == expected


def test_the_default_template_is_read_too(files: Files) -> None:
    path = files.case(NODES, {**PODS, "collectMetrics": True}, defaultPodTemplatePath="gone.yaml")
    assert "op 1 (createPods): " in refusal(path)


@pytest.mark.parametrize(
    ("cases", "reason"),
    [
        ([], "expected a list of test cases"),
        ([{"workloadTemplate": [], "workloads": []}], "test case 0: object missing required field `name`"),
        ([{"name": "A", "workloadTemplate": [MEASURED], "workloads": []}], "A: there are no workloads"),
        ([{"name": "A", "workloadTemplate": [], "workloads": [SIZE]}], "A: there are no operations"),
        (
            [{"name": "A", "workloadTemplate": [NODES], "workloads": [SIZE]}],
            "A: no operation collects metrics",
        ),
        (
            [{"name": "A", "workloadTemplate": [MEASURED], "workloads": [SIZE, SIZE]}],
            "there are two workloads called A/tiny",
        ),
        (
            [{"name": "A", "workloadTemplate": [MEASURED], "workloads": [{**SIZE, "params": {"pods": 1}}]}],
            "A: workload tiny: unused parameters: pods",
        ),
        (
            [{"name": "A", "workloadTemplate": [MEASURED], "workloads": [SIZE], "schedulerConfigPath": "no"}],
            "A: ",
        ),
    ],
)
def test_a_wrong_file_is_named(files: Files, cases: list[dict[str, Any]], reason: str) -> None:
    assert refusal(files.cases(*cases)).startswith(reason)


@pytest.mark.parametrize(
    ("value", "problem"),
    [("text", "is 'text', expected a number"), (True, "is True, expected a number")],
)
def test_parameters_have_types(files: Files, value: Any, problem: str) -> None:
    op = {**MEASURED, "countParam": "$pods"}
    path = files.case(op, workloads=[{"name": "tiny", "params": {"pods": value}}])
    assert refusal(path) == f"Case: op 0 (createPods): workload tiny: parameter pods {problem}"


def test_parameters_are_filled_in(files: Files) -> None:
    steady = {
        "opcode": "createPods",
        "steadyStateParam": "$steady",
        "durationParam": "$time",
        "countParam": "$n",
    }
    path = files.case(
        {**steady, "collectMetrics": True},
        workloads=[{"name": "tiny", "params": {"n": 4, "steady": True, "time": "1m"}}],
    )
    (op,) = read_workloads(path)[0].ops
    assert isinstance(op, CreatePods)
    assert (op.count, op.steady_state, op.duration) == (4, True, "1m")


def test_sets_of_pods_are_one_operation_each(files: Files) -> None:
    sets = {
        "opcode": "createPodSets",
        "countParam": "$sets",
        "namespacePrefix": "team",
        "createPodsOp": {"opcode": "createPods", "countParam": "$pods"},
    }
    path = files.case(sets, MEASURED, workloads=[{"name": "tiny", "params": {"sets": 2, "pods": 5}}])
    first, second, _ = read_workloads(path)[0].ops
    assert isinstance(first, CreatePods)
    assert isinstance(second, CreatePods)
    assert [(op.namespace, op.count) for op in (first, second)] == [("team-0", 5), ("team-1", 5)]


def test_feature_gates_are_noted(files: Files) -> None:
    path = files.case(
        MEASURED,
        featureGates={"B": True, "A": True},
        workloads=[{"name": "tiny", "featureGates": {"A": False}}],
    )
    assert read_workloads(path)[0].notes == [
        "feature gates that have no effect here are ignored: A=false, B=true"
    ]


def test_workloads_choose_their_feature_gates(files: Files) -> None:
    path = files.case(
        MEASURED,
        featureGates={"StorageCapacityScoring": False, "SchedulerQueueingHints": True},
        workloads=[{"name": "one"}, {"name": "other", "featureGates": {"GenericWorkload": True}}],
    )
    one, other = read_workloads(path)
    assert not one.version.features.storage_capacity_scoring
    assert not one.version.gates.enabled["GenericWorkload"]
    assert other.version.gates.enabled["GenericWorkload"]
    # v1.37 does not have it any more.
    assert one.notes == ["feature gates that have no effect here are ignored: SchedulerQueueingHints=true"]
    [older, _] = read_workloads(path, V1_36)
    assert (older.version.minor, older.notes) == ("1.36", [])
    [given, _] = read_workloads(path, V1_37.with_gates({"StorageCapacityScoring": True}))
    assert given.version.features.storage_capacity_scoring


def test_feature_gates_that_need_others_are_wrong_for_their_workload(files: Files) -> None:
    gates = {"TopologyAwareWorkloadScheduling": True}
    [planned] = read_workloads(files.case(MEASURED, featureGates=gates, workloads=[{"name": "tiny"}]))
    assert planned.error is not None
    assert "featureGates: TopologyAwareWorkloadScheduling is enabled, but depends" in str(planned.error)


def test_others_can_be_run_if_the_parameters_of_one_are_wrong(files: Files) -> None:
    sizes = [
        {"name": "good", "params": {"n": 1}},
        {"name": "bad"},
        {"name": "odd", "params": {"n": 1, "m": 2}},
    ]
    workloads = read_workloads(files.case({**MEASURED, "countParam": "$n"}, workloads=sizes))
    assert [each.workload for each in select(workloads, ["Case/good"], [])] == ["good"]
    with pytest.raises(InputError, match="workload bad: parameter n is undefined"):
        select(workloads, [], [])
    with pytest.raises(InputError, match="workload odd: unused parameters: m"):
        select(workloads, ["Case/odd"], [])


def test_workloads_with_groups_are_refused_where_groups_are_not_scheduled(files: Files) -> None:
    groups = {"opcode": "createPodGroups", "namespace": "x", "templatePath": "group.yaml", "count": 1}
    path = files.cases(
        {"name": "Groups", "workloadTemplate": [NODES, groups, MEASURED], "workloads": [SIZE]},
        {"name": "Pods", "workloadTemplate": [MEASURED], "workloads": [SIZE]},
    )
    groups_workload, pods = read_workloads(path)
    assert groups_workload.refused == (
        "op 1 (createPodGroups): "
        "Kubernetes 1.37 without the feature gate GenericWorkload does not schedule groups of pods"
    )
    assert not pods.refused


def test_workloads_of_features_that_are_not_there_are_refused(files: Files) -> None:
    sizes = [{"name": "with", "featureGates": {"DRAListTypeAttributes": True}}, {"name": "without"}]
    refused, run = read_workloads(files.case(MEASURED, workloads=sizes))
    assert refused.refused == (
        "feature gate DRAListTypeAttributes: lists as attributes of devices are not supported"
    )
    assert not run.refused


def test_a_directory_stands_for_the_files_in_it(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "performance-config.yaml").write_text("[]")
        (tmp_path / name / "other.yaml").write_text("[]")
    one = tmp_path / "a" / "other.yaml"
    found = workload_files([tmp_path, one, tmp_path / "a"])
    assert [str(each.relative_to(tmp_path)) for each in found] == [
        "a/performance-config.yaml",
        "b/performance-config.yaml",
        "a/other.yaml",
    ]


def test_a_directory_without_workloads_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no performance-config\.yaml in it"):
        workload_files([tmp_path])


def test_files_are_data_only(files: Files) -> None:
    files.path.write_text(yaml.safe_dump("text"))
    assert refusal(files.path) == "expected a list of test cases"


# -- choosing


@pytest.mark.parametrize(
    ("expression", "fits"),
    [
        ("", True),
        ("performance", True),
        ("+performance", True),
        ("performance,short", True),
        ("performance,-short", False),
        ("-performance", False),
        ("integration-test", False),
        ("-integration-test", True),
        ("+performance,-integration-test", True),
    ],
)
def test_labels(expression: str, fits: bool) -> None:
    assert has_labels(expression, ["performance", "short"]) is fits


WORKLOADS = [
    PlannedWorkload("A", "1", frozenset({"short"})),
    PlannedWorkload("A", "2", frozenset({"performance"})),
    PlannedWorkload("B", "1/x", frozenset({"performance", "short"})),
]


@pytest.mark.parametrize(
    ("only", "labels", "expected"),
    [
        ([], [], ["A/1", "A/2", "B/1/x"]),
        (["A"], [], ["A/1", "A/2"]),
        (["A/2", "B/1/x"], [], ["A/2", "B/1/x"]),
        ([], ["short"], ["A/1", "B/1/x"]),
        ([], ["short,-performance", "performance,-short"], ["A/1", "A/2"]),
        (["A"], ["short"], ["A/1"]),
    ],
)
def test_workloads_are_chosen(only: list[str], labels: list[str], expected: list[str]) -> None:
    assert [each.name for each in select(WORKLOADS, only, labels)] == expected


@pytest.mark.parametrize(
    ("only", "labels", "reason"),
    [
        (["C"], [], "--only: there is no workload 'C'"),
        (["A/3"], [], "--only: there is no workload 'A/3'"),
        ([], ["large"], "--label: no workload has these labels"),
    ],
)
def test_choosing_nothing_is_a_mistake(only: list[str], labels: list[str], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        select(WORKLOADS, only, labels)
