"""What is wrong with workloads, in Kubernetes' words."""

from __future__ import annotations

import pytest

from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.kinds.cron_jobs import CronJobStrategy
from moorage_cluster.apiserver.kinds.daemon_sets import DaemonSetStrategy
from moorage_cluster.apiserver.kinds.jobs import JobStrategy
from moorage_cluster.apiserver.kinds.pod_disruption_budgets import PodDisruptionBudgetStrategy
from moorage_cluster.apiserver.kinds.pod_groups import PodGroupStrategy, WorkloadStrategy
from moorage_cluster.apiserver.kinds.stateful_sets import ControllerRevisionStrategy, StatefulSetStrategy
from moorage_cluster.apiserver.kinds.workloads import (
    DeploymentStrategy,
    ReplicaSetStrategy,
    ReplicationControllerStrategy,
)
from moorage_cluster.apiserver.strategy import Strategy
from tests.apiserver.kinds.object_builders import (
    LABELS,
    a_controller,
    a_job,
    a_template,
    an_object,
    creation_problems,
)

NO_MATCH = "`selector` does not match template `labels`"
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters "
    "or '-', and must start and "
    "end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex "
    "used for validation is '[0-9]+%')"
)
MODES = ["ReadWriteOnce"]


def a_claim(**spec: object) -> Manifest:
    return an_object({"accessModes": MODES, "resources": {"requests": {"storage": "1Gi"}}, **spec})


def a_cron_job(schedule: str = "* * * * *", **spec: object) -> Manifest:
    job = {"spec": {"template": a_template(restartPolicy="Never")}}
    return an_object({"schedule": schedule, "jobTemplate": job, **spec})


def a_job_with_failure_rule(**rule: object) -> Manifest:
    return a_job(podFailurePolicy={"rules": [rule]})


VALID: dict[str, tuple[Strategy, Manifest]] = {
    "deployment": (DeploymentStrategy(), a_controller()),
    "replica set": (ReplicaSetStrategy(), a_controller()),
    "replication controller": (ReplicationControllerStrategy(), an_object({"template": a_template()})),
    "stateful set with claims that its pods mount": (
        StatefulSetStrategy(),
        an_object(
            {
                "selector": {"matchLabels": LABELS},
                "template": a_template(
                    containers=[
                        {"name": "a", "image": "i", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}
                    ]
                ),
                "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": a_claim()["spec"]}],
            }
        ),
    ),
    "daemon set": (DaemonSetStrategy(), a_controller()),
    "job": (JobStrategy(), a_job()),
    "indexed job": (
        JobStrategy(),
        a_job(
            completionMode="Indexed",
            completions=5,
            successPolicy={"rules": [{"succeededIndexes": "0,2-3", "succeededCount": 2}]},
        ),
    ),
    "cron job": (CronJobStrategy(), a_cron_job("*/5 1-3,7 1 jan-mar sun", timeZone="Etc/UTC")),
    "cron job every hour": (CronJobStrategy(), a_cron_job("@every 1h30m")),
    "budget": (PodDisruptionBudgetStrategy(), an_object({"maxUnavailable": "50%", "selector": {}})),
    "pod group": (PodGroupStrategy(), an_object({"schedulingPolicy": {"basic": {}}})),
    "workload": (
        WorkloadStrategy(),
        an_object({"podGroupTemplates": [{"name": "a", "schedulingPolicy": {"gang": {"minCount": 1}}}]}),
    ),
}


@pytest.mark.parametrize(("strategy", "obj"), VALID.values(), ids=VALID)
def test_what_makes_sense_is_accepted(strategy: Strategy, obj: Manifest) -> None:
    assert creation_problems(strategy, obj) == []


WRONG: dict[str, tuple[Strategy, Manifest, list[str]]] = {
    "no selector": (
        DeploymentStrategy(),
        an_object({"template": a_template()}),
        [
            "spec.selector: Required value",
            f'spec.template.metadata.labels: Invalid value: {{"app":"web"}}: {NO_MATCH}',
        ],
    ),
    "an empty selector": (
        DeploymentStrategy(),
        a_controller(selector={}),
        ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"],
    ),
    "a selector of other pods": (
        DeploymentStrategy(),
        a_controller(selector={"matchLabels": {"app": "db"}}),
        [f'spec.template.metadata.labels: Invalid value: {{"app":"web"}}: {NO_MATCH}'],
    ),
    "a malformed selector": (
        DeploymentStrategy(),
        a_controller(selector={"matchExpressions": [{"key": "a", "operator": "In"}]}),
        [
            "spec.selector.matchExpressions[0].values: Required value: "
            "must be specified when `operator` is 'In' or 'NotIn'"
        ],
    ),
    "an unknown operator": (
        ReplicaSetStrategy(),
        a_controller(selector={"matchExpressions": [{"key": "a", "operator": "Is"}]}),
        ['spec.selector.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator'],
    ),
    "negative replicas": (
        DeploymentStrategy(),
        a_controller(replicas=-1),
        ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"],
    ),
    "a deployment of pods that end": (
        DeploymentStrategy(),
        a_controller(template=a_template(restartPolicy="Never")),
        ['spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"'],
    ),
    "a deployment of pods with a deadline": (
        DeploymentStrategy(),
        a_controller(template=a_template(activeDeadlineSeconds=5)),
        [
            "spec.template.spec.activeDeadlineSeconds: Forbidden: "
            "activeDeadlineSeconds in ReplicaSet is not Supported"
        ],
    ),
    "a rollout that cannot move": (
        DeploymentStrategy(),
        a_controller(strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}),
        [
            'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "0%": may not be 0 '
            "when `maxSurge` is 0"
        ],
    ),
    "a rollout of more than all": (
        DeploymentStrategy(),
        a_controller(strategy={"rollingUpdate": {"maxUnavailable": "101%"}}),
        ['spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%'],
    ),
    "a rollout of some": (
        DeploymentStrategy(),
        a_controller(strategy={"rollingUpdate": {"maxSurge": "some"}}),
        [f'spec.strategy.rollingUpdate.maxSurge: Invalid value: "some": {PERCENT}'],
    ),
    "a recreation that rolls": (
        DeploymentStrategy(),
        a_controller(strategy={"type": "Recreate", "rollingUpdate": {}}),
        ["spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"],
    ),
    "an unknown strategy": (
        DeploymentStrategy(),
        a_controller(strategy={"type": "Hope"}),
        ['spec.strategy: Unsupported value: {"type":"Hope"}: supported values: "Recreate", "RollingUpdate"'],
    ),
    "a deadline too soon": (
        DeploymentStrategy(),
        a_controller(progressDeadlineSeconds=5, minReadySeconds=5),
        ["spec.progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds"],
    ),
    "a replication controller of nothing": (
        ReplicationControllerStrategy(),
        an_object({}),
        ["spec.selector: Required value", "spec.template: Required value"],
    ),
    "a stateful set in disorder": (
        StatefulSetStrategy(),
        a_controller(podManagementPolicy="Chaos"),
        ["spec.podManagementPolicy: Invalid value: \"Chaos\": must be 'OrderedReady' or 'Parallel'"],
    ),
    "a stateful set that keeps half": (
        StatefulSetStrategy(),
        a_controller(persistentVolumeClaimRetentionPolicy={"whenScaled": "Half"}),
        [
            'spec.persistentVolumeClaimRetentionPolicy.whenScaled: Unsupported value: "Half": '
            'supported values: "Retain", "Delete"'
        ],
    ),
    "a stateful set that rolls on deletion": (
        StatefulSetStrategy(),
        a_controller(updateStrategy={"type": "OnDelete", "rollingUpdate": {"partition": 1}}),
        [
            'spec.updateStrategy.rollingUpdate: Invalid value: {"partition":1}: '
            "only allowed for updateStrategy 'RollingUpdate'"
        ],
    ),
    "a stateful set with a strange service": (
        StatefulSetStrategy(),
        a_controller(serviceName="A"),
        [f'spec.serviceName: Invalid value: "A": {LABEL}'],
    ),
    "a stateful set with a claim of nothing": (
        StatefulSetStrategy(),
        a_controller(volumeClaimTemplates=[{"metadata": {"name": "d"}, "spec": {"accessModes": MODES}}]),
        ["spec.volumeClaimTemplates[0].spec.resources[storage]: Required value"],
    ),
    "a daemon set without selector": (
        DaemonSetStrategy(),
        an_object({"template": a_template()}),
        [f'spec.template.metadata.labels: Invalid value: {{"app":"web"}}: {NO_MATCH}'],
    ),
    "a daemon set that surges and takes away": (
        DaemonSetStrategy(),
        a_controller(updateStrategy={"rollingUpdate": {"maxSurge": 1}}),
        [
            "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: "
            "may not be set when maxUnavailable is non-zero"
        ],
    ),
    "a daemon set that cannot move": (
        DaemonSetStrategy(),
        a_controller(updateStrategy={"rollingUpdate": {"maxUnavailable": 0}}),
        ["spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"],
    ),
    "a revision of nothing": (
        ControllerRevisionStrategy(),
        an_object(revision=-1),
        [
            "revision: Invalid value: -1: must be greater than or equal to 0",
            "data: Required value: data is mandatory",
        ],
    ),
    "a job of pods that never end": (
        JobStrategy(),
        an_object({"template": a_template({})}),
        ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
    ),
    "an indexed job without end": (
        JobStrategy(),
        a_job(completionMode="Indexed", parallelism=1),
        ["spec.completions: Required value: when completion mode is Indexed"],
    ),
    "limits an index without indexes": (
        JobStrategy(),
        a_job(backoffLimitPerIndex=1),
        ["spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"],
    ),
    "an indexed job whose pods have too long names": (
        JobStrategy(),
        an_object(
            {
                "template": a_template({}, restartPolicy="Never"),
                "completionMode": "Indexed",
                "completions": 11,
            },
            meta={"name": "x" * 61},
        ),
        [
            f'metadata.name: Invalid value: "{"x" * 61}": will not able to create pod with '
            f"invalid DNS label: "
            f"{'x' * 61}-10"
        ],
    ),
    "a job with a selector of its own": (
        JobStrategy(),
        a_job(selector={"matchLabels": {"mine": "yes"}}),
        [
            'spec.selector: Invalid value: {"matchLabels":{"mine":"yes","batch.kubernetes.io/controller-uid":'
            '"0b5e5d3c-4f0b-4a3e-9d0e-0f0f0f0f0f0f"}}: `selector` not auto-generated',
            "spec.template.metadata.labels: Invalid value: "
            '{"job-name":"web","batch.kubernetes.io/job-name":"web",'
            '"controller-uid":"0b5e5d3c-4f0b-4a3e-9d0e-0f0f0f0f0f0f",'
            '"batch.kubernetes.io/controller-uid":"0b5e5d3c-4f0b-4a3e-9d0e-0f0f0f0f0f0f"}: ' + NO_MATCH,
        ],
    ),
    "a failure rule without an action": (
        JobStrategy(),
        a_job_with_failure_rule(onPodConditions=[{"type": "DisruptionTarget"}]),
        [
            "spec.podFailurePolicy.rules[0].action: Required value: "
            'valid values: ["Count" "FailIndex" "FailJob" "Ignore"]'
        ],
    ),
    "a failure rule about nothing": (
        JobStrategy(),
        a_job_with_failure_rule(action="Ignore"),
        [
            "spec.podFailurePolicy.rules[0]: Invalid value: "
            "specifying one of OnExitCodes and OnPodConditions is required"
        ],
    ),
    "exit codes in disorder": (
        JobStrategy(),
        a_job_with_failure_rule(
            action="Count", onExitCodes={"operator": "In", "values": [3, 0, 3], "containerName": "x"}
        ),
        [
            'spec.podFailurePolicy.rules[0].onExitCodes.containerName: Invalid value: "x": '
            "must be one of the "
            "container or initContainer names in the pod template",
            "spec.podFailurePolicy.rules[0].onExitCodes.values[1]: Invalid value: 0: "
            "must not be 0 for the In operator",
            "spec.podFailurePolicy.rules[0].onExitCodes.values[2]: Duplicate value: 3",
            "spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: [3,0,3]: must be ordered",
        ],
    ),
    "success of too many": (
        JobStrategy(),
        a_job(
            completionMode="Indexed",
            completions=3,
            successPolicy={
                "rules": [{"succeededIndexes": "0-1", "succeededCount": 3}, {"succeededIndexes": "3"}]
            },
        ),
        [
            "spec.successPolicy.rules[0].succeededCount: Invalid value: 3: must be less than or equal to 2 "
            "(the number of indexes in the specified succeededIndexes field)",
            'spec.successPolicy.rules[1].succeededIndexes: Invalid value: "3": '
            'error parsing succeededIndexes: too large index: "3"',
        ],
    ),
    "a schedule of four fields": (
        CronJobStrategy(),
        a_cron_job("* * * *"),
        ['spec.schedule: Invalid value: "* * * *": expected exactly 5 fields, found 4: [* * * *]'],
    ),
    "a schedule in the 61st minute": (
        CronJobStrategy(),
        a_cron_job("61 * * * *"),
        ['spec.schedule: Invalid value: "61 * * * *": end of range (61) above maximum (59): 61'],
    ),
    "a schedule on no day": (
        CronJobStrategy(),
        a_cron_job("* * 0 * *"),
        ['spec.schedule: Invalid value: "* * 0 * *": beginning of range (0) below minimum (1): 0'],
    ),
    "a schedule of words": (
        CronJobStrategy(),
        a_cron_job("now * * * *"),
        [
            'spec.schedule: Invalid value: "now * * * *": failed to parse int from now: '
            'strconv.Atoi: parsing "now": invalid syntax'
        ],
    ),
    "no schedule": (CronJobStrategy(), a_cron_job(""), ["spec.schedule: Required value"]),
    "a schedule with a zone": (
        CronJobStrategy(),
        a_cron_job("TZ=UTC * * * * *"),
        [
            'spec.schedule: Invalid value: "TZ=UTC * * * * *": '
            "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        ],
    ),
    "no such zone": (
        CronJobStrategy(),
        a_cron_job(timeZone="Mars/Olympus"),
        ['spec.timeZone: Invalid value: "Mars/Olympus": unknown time zone Mars/Olympus'],
    ),
    "an unknown policy": (
        CronJobStrategy(),
        a_cron_job(concurrencyPolicy="Maybe"),
        [
            'spec.concurrencyPolicy: Unsupported value: "Maybe": supported values: "Allow", '
            '"Forbid", "Replace"'
        ],
    ),
    "a budget of two minds": (
        PodDisruptionBudgetStrategy(),
        an_object({"minAvailable": 1, "maxUnavailable": "200%"}),
        [
            'spec: Invalid value: {"minAvailable":1,"maxUnavailable":"200%"}: '
            "minAvailable and maxUnavailable cannot be both set",
            'spec.maxUnavailable: Invalid value: "200%": must not be greater than 100%',
        ],
    ),
    "a group without a policy": (
        PodGroupStrategy(),
        an_object({}),
        ['spec.schedulingPolicy: Invalid value: "": must specify one of: `basic`, `gang`'],
    ),
    "a group with two policies": (
        PodGroupStrategy(),
        an_object({"schedulingPolicy": {"basic": {}, "gang": {"minCount": -1}}}),
        [
            'spec.schedulingPolicy: Invalid value: "{basic, gang}": '
            "must specify exactly one of: `basic`, `gang`",
            "spec.schedulingPolicy.gang.minCount: Invalid value: -1: must be greater than or equal to 1",
        ],
    ),
    "a group whose class has a long name": (
        PodGroupStrategy(),
        an_object({"schedulingPolicy": {"basic": {}}, "priorityClassName": ".".join(["a" * 63] * 4)}),
        [
            f'spec.priorityClassName: Invalid value: "{".".join(["a" * 63] * 4)}": '
            "must be no more than 253 bytes"
        ],
    ),
    "a workload of nothing": (
        WorkloadStrategy(),
        an_object({}),
        ["spec.podGroupTemplates: Required value"],
    ),
    "a workload of one thing twice": (
        WorkloadStrategy(),
        an_object({"podGroupTemplates": [{"name": "a", "schedulingPolicy": {"basic": {}}}] * 2}),
        ['spec.podGroupTemplates[1]: Duplicate value: {"name":"a","schedulingPolicy":{"basic":{}}}'],
    ),
}


@pytest.mark.parametrize(("strategy", "obj", "messages"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_reported_in_kubernetes_words(
    strategy: Strategy, obj: Manifest, messages: list[str]
) -> None:
    assert creation_problems(strategy, obj) == messages
