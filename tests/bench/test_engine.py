"""Every operation on a tiny cluster: the production scheduler over a store."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from moorage.api.pod import Pod, PodSpec
from moorage.bench.engine_target import engine_target
from moorage.bench.workload_files import PlannedWorkload, read_workloads
from moorage.client.kinds import CSI_NODE, NODE, PERSISTENT_VOLUME, POD, SERVICE
from moorage.scheduler.scheduler import Scheduler
from tests.bench.files import BENCH, MEASURED, NODES, EngineRun, Files, node, pod, run


def test_a_result_has_all_figures(files: Files) -> None:
    result = files.run(NODES, MEASURED, workloads=[{"name": "tiny", "threshold": 1e9}])
    assert (result.name, result.pods, result.nodes) == ("Case/tiny", 3, 2)
    rates = result.pods_per_second
    assert rates.average == pytest.approx(3 / result.seconds)
    assert rates.sampled_average == rates.p50 == rates.p99 == rates.average
    assert result.notes == ["too short for a window of one second: percentiles of pods/s are the average"]
    assert result.latency_seconds is not None
    assert result.latency_seconds.count == 3
    assert result.attempt_seconds is not None
    assert result.attempt_seconds.results.keys() == {"scheduled"}
    assert result.attempt_seconds.count == 3
    assert 0 < result.attempt_seconds.p50 <= result.attempt_seconds.p99
    assert result.extension_points["Filter"].count == 3
    assert result.cpu_seconds_per_pod.scheduler is not None
    assert result.peak_memory_bytes.scheduler is not None
    assert result.cpu_seconds_per_pod.server is None
    assert result.threshold is not None
    assert result.threshold.is_met is False


@pytest.mark.parametrize(
    ("selector", "threshold", "is_met"),
    [
        ({}, 1e-6, True),
        ({}, 1e9, False),
        ({"name": "SchedulingThroughput", "dataBucket": "Perc99"}, 1e-6, True),
        (
            {
                "name": "scheduler_scheduling_attempt_duration_seconds",
                "labels": {"result": "scheduled"},
                "dataBucket": "Perc99",
                "expectLower": True,
            },
            1e9,
            True,
        ),
        (
            {"name": "scheduler_scheduling_attempt_duration_seconds", "labels": {"result": "never"}},
            1.0,
            None,
        ),
        ({"name": "SchedulingThroughput", "dataBucket": "Median"}, 1.0, None),
    ],
)
def test_thresholds(files: Files, selector: dict[str, Any], threshold: float, is_met: bool | None) -> None:
    size = {"name": "tiny", "threshold": threshold, "thresholdMetricSelector": selector}
    result = files.run(NODES, MEASURED, workloads=[size])
    assert result.threshold is not None
    assert result.threshold.is_met is is_met


def test_pods_with_equal_specs_share_one_as_in_a_running_scheduler() -> None:
    async def specs() -> list[PodSpec]:
        async with engine_target(None) as target:
            prepared = [await target.prepared(pod(name)) for name in ("one", "two")]
        return [each.body.spec for each in prepared if each is not None and isinstance(each.body, Pod)]

    one, two = asyncio.run(specs())
    assert one is two


def test_only_what_is_measured_counts(files: Files) -> None:
    before = {"opcode": "createPods", "count": 5, "podTemplatePath": "pod.yaml"}
    result = files.run(NODES, before, MEASURED)
    assert result.pods == 3
    assert result.attempt_seconds is not None
    assert result.attempt_seconds.count == 3
    assert result.extension_points["Bind"].count == 3


def test_without_templates_there_are_plain_nodes_and_pods(files: Files) -> None:
    harness = EngineRun(
        files,
        {"opcode": "createNodes", "count": 1},
        {"opcode": "createPods", "count": 2, "collectMetrics": True},
    )
    (made,) = harness.all(NODE)
    assert made.name.startswith("node-0-")
    assert made.labels["kubernetes.io/hostname"] == made.name
    assert {each.spec.node_name for each in harness.all(POD)} == {made.name}
    assert {each.metadata.namespace for each in harness.pods("namespace-1")} == {"namespace-1"}


def test_the_default_template_is_used(files: Files) -> None:
    files.template("other.yaml", pod(labels={"app": "other"}))
    harness = EngineRun(
        files,
        NODES,
        {"opcode": "createPods", "count": 1, "namespace": "a"},
        {**MEASURED, "namespace": "b"},
        defaultPodTemplatePath="other.yaml",
    )
    assert [each.metadata.labels for each in harness.pods("a")] == [{"app": "other"}]
    assert {each.metadata.labels.get("app") for each in harness.pods("b")} == {None}


def test_nodes_are_labelled_in_turn(files: Files) -> None:
    strategy = {"labelKey": "zone", "labelValues": ["x", "y"]}
    harness = EngineRun(files, {**NODES, "count": 3, "labelNodePrepareStrategy": strategy}, MEASURED)
    assert sorted(each.labels["zone"] for each in harness.all(NODE)) == ["x", "x", "y"]


def test_nodes_are_labelled_each_its_own_way(files: Files) -> None:
    harness = EngineRun(
        files, {**NODES, "count": 3, "uniqueNodeLabelStrategy": {"labelKey": "who"}}, MEASURED
    )
    assert len({each.labels["who"] for each in harness.all(NODE)}) == 3


def test_nodes_take_volumes(files: Files) -> None:
    strategy = {
        "nodeAllocatable": {"example.com/thing": "5"},
        "csiNodeAllocatable": {"csi.example.com": {"count": 1}},
        "migratedPlugins": ["kubernetes.io/aws-ebs"],
    }
    files.template(
        "pv.yaml",
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "spec": {"accessModes": ["ReadWriteOnce"], "csi": {"driver": "csi.example.com"}},
        },
    )
    annotations = {"pv.kubernetes.io/bind-completed": "true"}
    files.template(
        "pvc.yaml",
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"annotations": annotations},
            "spec": {"accessModes": ["ReadWriteOnce"]},
        },
    )
    volumes = {"persistentVolumeTemplatePath": "pv.yaml", "persistentVolumeClaimTemplatePath": "pvc.yaml"}
    harness = EngineRun(
        files,
        {**NODES, "nodeAllocatableStrategy": strategy},
        {**MEASURED, "count": 2, "namespace": "a", **volumes},
    )
    nodes = {each.name: each for each in harness.all(NODE)}
    assert {"cpu", "example.com/thing"} <= nodes.popitem()[1].status.allocatable.keys()
    assert {each.name for each in harness.all(CSI_NODE)} == {each.name for each in harness.all(NODE)}
    assert len({each.spec.node_name for each in harness.all(POD)}) == 2  # One volume a node.
    handles = {each.spec.csi.volume_handle for each in harness.all(PERSISTENT_VOLUME)}
    assert handles == {"a-vol-0", "a-vol-1"}


def test_objects_know_their_number(files: Files) -> None:
    files.template("numbered.yaml", "kind: Node\nmetadata: {name: 'n-{{ .Index }}-{{ .Count }}'}\n")
    files.template("pod.yaml", "kind: Pod\nmetadata: {name: 'p-{{ .Index }}'}\nspec: {nodeName: n-0-2}\n")
    harness = EngineRun(
        files, {"opcode": "createNodes", "count": 2, "nodeTemplatePath": "numbered.yaml"}, MEASURED
    )
    assert {each.name for each in harness.all(NODE)} == {"n-0-2", "n-1-2"}
    assert {each.name for each in harness.all(POD)} == {"p-0", "p-1", "p-2"}


def test_sets_of_pods_in_namespaces(files: Files) -> None:
    files.template("team.yaml", {"kind": "Namespace", "metadata": {"labels": {"team": "blue"}}})
    sets = {
        "opcode": "createPodSets",
        "count": 2,
        "namespacePrefix": "team",
        "createPodsOp": {"opcode": "createPods", "count": 2, "podTemplatePath": "pod.yaml"},
    }
    spaces = {
        "opcode": "createNamespaces",
        "prefix": "team",
        "count": 2,
        "namespaceTemplatePath": "team.yaml",
    }
    harness = EngineRun(files, NODES, spaces, sets, {**MEASURED, "namespace": "team-1"})
    assert (len(harness.pods("team-0")), len(harness.pods("team-1"))) == (2, 5)


def test_any_objects(files: Files) -> None:
    files.template(
        "service.yaml", {"apiVersion": "v1", "kind": "Service", "metadata": {"generateName": "s-"}}
    )
    files.template("map.yaml", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}})
    harness = EngineRun(
        files,
        NODES,
        {"opcode": "createAny", "namespace": "a", "templatePath": "service.yaml", "countParam": "$services"},
        {"opcode": "createAny", "namespace": "a", "templatePath": "map.yaml"},
        MEASURED,
        workloads=[{"name": "tiny", "params": {"services": 2}}],
    )
    assert [each.namespace for each in harness.all(SERVICE)] == ["a", "a"]
    assert (
        "ConfigMap objects are left out: scheduling does not read them" in harness.report.workloads[0].notes
    )


def test_pods_that_wait_until_a_node_is_updated(files: Files) -> None:
    closed = node(metadata={"name": "one"}, spec={"unschedulable": True})
    files.template("closed.yaml", closed)
    files.template("open.yaml", {**closed, "spec": {}})
    result = files.run(
        {"opcode": "createNodes", "count": 1, "nodeTemplatePath": "closed.yaml"},
        {"opcode": "startCollectingMetrics", "name": "waiting", "namespaces": ["a"]},
        {
            "opcode": "createPods",
            "count": 3,
            "podTemplatePath": "pod.yaml",
            "namespace": "a",
            "skipWaitToCompletion": True,
        },
        {"opcode": "barrier", "stageRequirement": "Attempted"},
        {"opcode": "updateAny", "templatePath": "open.yaml", "updatePerSecond": 1000},
        {"opcode": "barrier", "namespaces": ["a"]},
        {"opcode": "stopCollectingMetrics"},
    )
    assert result.pods == 3
    assert result.attempt_seconds is not None
    assert {key: each.count for key, each in result.attempt_seconds.results.items()} == {
        "scheduled": 3,
        "unschedulable": 3,
    }


def test_pods_are_updated_and_resized(files: Files) -> None:
    files.template("gated.yaml", pod("waits", cpu="800m", schedulingGates=[{"name": "x"}]))
    files.template("ungated.yaml", pod("waits", {"is": "open"}, cpu="800m"))
    files.template("large.yaml", pod("large", cpu="900m"))
    files.template("small.yaml", pod("large", cpu="10m"))
    harness = EngineRun(
        files,
        {**NODES, "count": 1},
        {"opcode": "createPods", "count": 1, "podTemplatePath": "large.yaml", "namespace": "a"},
        {
            "opcode": "createPods",
            "count": 1,
            "podTemplatePath": "gated.yaml",
            "namespace": "b",
            "skipWaitToCompletion": True,
        },
        {"opcode": "barrier", "stageRequirement": "Attempted", "labelSelector": {}},
        {"opcode": "updateAny", "templatePath": "small.yaml", "namespace": "a", "subresources": ["resize"]},
        {"opcode": "updateAny", "templatePath": "ungated.yaml", "namespace": "b"},
        {"opcode": "barrier", "labelSelector": {"is": "open"}},
        {**MEASURED, "count": 1},
    )
    (large,) = harness.pods("a")
    (waits,) = harness.pods("b")
    assert large.spec.node_name == waits.spec.node_name != ""


def test_pods_make_room_when_they_are_deleted(files: Files) -> None:
    files.template("full.yaml", pod(labels={"role": "first"}, cpu="1", terminationGracePeriodSeconds=0))
    files.template("next.yaml", pod(labels={"role": "next"}, cpu="1"))
    result = files.run(
        NODES,
        {"opcode": "createPods", "count": 2, "podTemplatePath": "full.yaml", "namespace": "a"},
        {"opcode": "startCollectingMetrics", "namespaces": ["a"], "labelSelector": {"role": "next"}},
        {
            "opcode": "createPods",
            "count": 2,
            "podTemplatePath": "next.yaml",
            "namespace": "a",
            "skipWaitToCompletion": True,
        },
        {"opcode": "barrier", "stageRequirement": "Attempted", "labelSelector": {"role": "next"}},
        {
            "opcode": "deletePods",
            "namespace": "a",
            "labelSelector": {"role": "first"},
            "deletePodsPerSecond": 100,
            "skipWaitToCompletion": True,
        },
        {"opcode": "barrier", "labelSelector": {"role": "next"}},
        {"opcode": "stopCollectingMetrics"},
    )
    assert result.pods == 2


def test_all_pods_are_deleted_at_once(files: Files) -> None:
    files.template("gated.yaml", pod(schedulingGates=[{"name": "x"}]))
    gated = {
        "opcode": "createPods",
        "count": 3,
        "podTemplatePath": "gated.yaml",
        "namespace": "a",
        "skipWaitToCompletion": True,
    }
    harness = EngineRun(files, NODES, gated, {"opcode": "deletePods", "namespace": "a"}, MEASURED)
    assert harness.pods("a") == []


def test_important_pods_make_room_for_themselves(files: Files) -> None:
    files.template("victim.yaml", pod(cpu="500m", terminationGracePeriodSeconds=0))
    files.template("important.yaml", pod(cpu="900m", priority=10))
    harness = EngineRun(
        files,
        NODES,
        {"opcode": "createPods", "count": 4, "podTemplatePath": "victim.yaml", "namespace": "victims"},
        {**MEASURED, "count": 2, "podTemplatePath": "important.yaml"},
    )
    assert harness.report.workloads[0].pods == 2
    assert harness.pods("victims") == []


def test_churn_that_creates(files: Files) -> None:
    churn = {
        "opcode": "churn",
        "mode": "create",
        "number": 4,
        "intervalMilliseconds": 1,
        "namespace": "churned",
        "templatePaths": ["pod.yaml"],
    }
    result = files.run(
        NODES,
        {"opcode": "startCollectingMetrics", "namespaces": ["churned"]},
        churn,
        {"opcode": "sleep", "duration": "200ms"},
        {"opcode": "stopCollectingMetrics"},
    )
    assert result.pods == 4


def test_churn_that_recreates(files: Files) -> None:
    churn = {
        "opcode": "churn",
        "mode": "recreate",
        "number": 1,
        "intervalMilliseconds": 1,
        "templatePaths": ["pod.yaml", "node.yaml"],
    }
    files.template("pod.yaml", pod(cpu="100"))
    files.template("fits.yaml", pod())
    harness = EngineRun(
        files,
        NODES,
        churn,
        {"opcode": "sleep", "durationParam": "$time"},
        {**MEASURED, "podTemplatePath": "fits.yaml"},
        workloads=[{"name": "tiny", "params": {"time": "100ms"}}],
    )
    assert len(harness.pods("namespace-1")) <= 1
    assert len(harness.all(NODE)) <= 3
    assert harness.store.version > 20


def test_a_steady_state(files: Files) -> None:
    harness = EngineRun(files, NODES, {**MEASURED, "steadyState": True, "duration": "300ms"})
    assert harness.report.workloads[0].pods > 3
    assert len(harness.all(POD)) <= 3, "pods are deleted without a grace period"


def test_two_measurements_have_names(files: Files) -> None:
    workloads = read_workloads(
        files.case(NODES, {**MEASURED, "namespace": "a"}, {**MEASURED, "namespace": "b"})
    )
    assert [each.name for each in run(workloads).workloads] == ["Case/tiny/a", "Case/tiny/b"]


def test_a_scheduler_configuration(files: Files) -> None:
    files.template(
        "config.yaml",
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": "another"}],
        },
    )
    files.template("pod.yaml", pod(schedulerName="another"))
    assert files.run(NODES, MEASURED, schedulerConfigPath="config.yaml").pods == 3


def test_nodes_declare_features_that_pods_require(files: Files) -> None:
    files.template("bare.yaml", node(metadata={"name": "bare"}))
    files.template("pod.yaml", pod(resources={"requests": {"cpu": "100m"}}))
    harness = EngineRun(
        files,
        NODES,
        {"opcode": "createAny", "templatePath": "bare.yaml"},
        {**MEASURED, "count": 20},
        featureGates={"NodeDeclaredFeatures": True},
        workloads=[{"name": "tiny", "params": {"numNodeDeclaredFeatures": 10}}],
    )
    declared = {each.name: each.status.declared_features for each in harness.all(NODE)}
    assert declared.pop("bare") == ()
    assert {len(each) for each in declared.values()} == {10}
    assert {each.spec.node_name for each in harness.all(POD)} == declared.keys()
    assert not any("NodeDeclaredFeatures" in note for note in harness.report.workloads[0].notes)


START = {"opcode": "startCollectingMetrics", "namespaces": ["a"]}
FAILURES: list[tuple[str, list[dict[str, Any]], str]] = [
    ("no room", [MEASURED], "op 0: after 0.2 s 0 of 3 pods are scheduled; namespace-0/pod-"),
    (
        "why",
        [NODES, {**MEASURED, "count": 21}],
        "0/2 nodes are available: 2 Insufficient cpu, 2 Too many pods.",
    ),
    (
        "another's pods",
        [NODES, {**MEASURED, "podTemplatePath": "foreign.yaml"}],
        "op 1: after 0.2 s 0 of 3 pods are scheduled; namespace-1/pod-",
    ),
    (
        "unknown namespace",
        [{"opcode": "barrier", "namespaces": ["x"]}, MEASURED],
        "op 0: unknown namespace x",
    ),
    ("two at once", [START, START], "op 1: metrics are being collected already"),
    ("none to stop", [{"opcode": "stopCollectingMetrics"}], "op 0: metrics are not being collected"),
    (
        "update of nothing",
        [{"opcode": "updateAny", "templatePath": "foreign.yaml", "namespace": "a"}, MEASURED],
        'op 0: pods "" not found',
    ),
    (
        "no pod in time",
        [{**MEASURED, "steadyState": True, "duration": "50ms"}],
        "op 0: no pod at all got scheduled in the time that the operation has",
    ),
]


@pytest.mark.parametrize(
    ("ops", "reason"), [each[1:] for each in FAILURES], ids=[each[0] for each in FAILURES]
)
def test_what_fails_is_reported(files: Files, ops: list[dict[str, Any]], reason: str) -> None:
    files.template("foreign.yaml", pod(schedulerName="nobody"))
    assert reason in files.failure(*ops)


def test_others_run_when_one_fails(files: Files) -> None:
    gates = {"DRAListTypeAttributes": True}
    size = [{"name": "tiny"}]
    report = run(
        read_workloads(
            files.cases(
                {"name": "A", "workloadTemplate": [MEASURED], "workloads": size},
                {"name": "B", "workloadTemplate": [MEASURED], "workloads": size, "featureGates": gates},
                {"name": "C", "workloadTemplate": [NODES, MEASURED], "workloads": size},
            )
        ),
        wait_seconds=0.5,
    )
    assert [each.name for each in report.failed] == ["A/tiny"]
    assert [each.name for each in report.refused] == ["B/tiny"]
    assert [each.name for each in report.workloads] == ["C/tiny"]


GROUP = {
    "apiVersion": "scheduling.k8s.io/v1beta1",
    "kind": "PodGroup",
    "metadata": {"name": "group-{{.Index}}"},
    "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
}


def test_groups_are_created_before_their_pods_and_scheduled_as_one(files: Files) -> None:
    files.template("group.yaml", GROUP)
    member: Any = {"schedulingGroup": {"podGroupName": "group-{{DivideInt .Index 3}}"}}
    files.template("member.yaml", pod(**member))
    groups = {"opcode": "createPodGroups", "namespace": "x", "templatePath": "group.yaml", "count": 2}
    pods = {**MEASURED, "namespace": "x", "podTemplatePath": "member.yaml", "count": 6}
    path = files.case(NODES, groups, pods, featureGates={"GenericWorkload": True})
    report = run(read_workloads(path))
    assert [each.reason for each in report.failed] == []
    (result,) = report.workloads
    assert result.pods == 6


OWN = [
    each
    for part in ("workloads", "large")
    for each in read_workloads(BENCH / part / "performance-config.yaml")
    if "integration-test" in each.labels
]


@pytest.mark.parametrize("workload", OWN, ids=[each.name for each in OWN])
def test_our_own_workloads_run(workload: PlannedWorkload) -> None:
    report = run([workload])
    assert not report.failed
    assert report.workloads[0].pods > 0


def test_a_scheduler_that_dies_ends_the_workload_at_once(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def dies(scheduler: Scheduler) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(Scheduler, "_loop", dies)
    report = run(read_workloads(files.case(MEASURED)))
    (failed,) = report.failed
    assert failed.reason.startswith("op 0: the scheduler failed: ")
    assert "broken" in failed.reason
