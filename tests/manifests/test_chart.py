"""The Helm chart by itself: what it refuses, what it adds, and what it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.version import __version__
from tests.manifests.forms import CHART, CHART_LABELS, DIGEST, charted, helm, with_values
from tests.manifests.pod_security import violated
from tests.manifests.printing import Manifest, pod_of, the

CONFIG: Manifest = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": "mine"}],
}


def rendered(folder: Path, **values: Any) -> list[Manifest]:
    return charted("moorage", "kube-system", *with_values(folder, values))


def configuration(objects: list[Manifest]) -> Manifest:
    found: Manifest = yaml.safe_load(the(objects, "ConfigMap")["data"]["config.yaml"])
    return found


def test_it_has_the_version_of_the_scheduler() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


def test_helm_finds_no_fault_with_it() -> None:
    done = helm("lint", CHART, "--strict")
    assert done.returncode == 0, done.stdout
    assert "[WARNING]" not in done.stdout


def test_every_value_is_in_the_schema() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert schema["properties"].keys() - {"global"} == values.keys()


def test_every_object_has_the_labels_that_helm_recommends() -> None:
    for obj in charted("mine", "harbour", "--set", "podMonitor.enabled=true"):
        labels = obj["metadata"]["labels"]
        assert labels.keys() >= CHART_LABELS
        assert labels["app.kubernetes.io/managed-by"] == "Helm"
        assert labels["helm.sh/chart"] == f"moorage-{__version__}"


def test_a_configuration_is_given_as_text_or_as_an_object(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(CONFIG))
    as_text = charted("moorage", "kube-system", "--set-file", f"config={file}")
    as_object = rendered(tmp_path, config=CONFIG)
    assert as_text == as_object
    assert configuration(as_object)["profiles"] == [{"schedulerName": "mine"}]


def test_a_configuration_gets_a_lease_of_its_own_and_loses_its_kubeconfig(tmp_path: Path) -> None:
    connection = {"kubeconfig": "/home/me/.kube/config", "qps": 100}
    objects = rendered(tmp_path, config={**CONFIG, "clientConnection": connection})
    assert configuration(objects) == {
        **CONFIG,
        "clientConnection": {"qps": 100},
        "leaderElection": {"resourceName": "moorage", "resourceNamespace": "kube-system"},
    }


def test_a_lease_that_the_configuration_names_is_the_one_that_may_be_held(tmp_path: Path) -> None:
    election = {"resourceName": "turn", "resourceNamespace": "harbour", "leaseDuration": "30s"}
    objects = rendered(tmp_path, config={**CONFIG, "leaderElection": election})
    assert configuration(objects)["leaderElection"] == election
    role = the(objects, "Role", "moorage-leader-election")
    assert role["metadata"]["namespace"] == "harbour"
    assert [rule.get("resourceNames") for rule in role["rules"] if "get" in rule["verbs"]] == [["turn"]]


def test_a_scheduler_that_does_not_elect_needs_no_lease(tmp_path: Path) -> None:
    config = {**CONFIG, "leaderElection": {"leaderElect": False}}
    objects = rendered(tmp_path, config=config, replicas=1)
    assert not [each for each in objects if each["metadata"]["name"].endswith("-leader-election")]


@pytest.mark.parametrize(
    "values",
    [{"config": CONFIG}, {"plugins": {"mine.py": "pass\n"}}, {"plugins": {"mine.py": "...\n"}}],
    ids=["configuration", "a plugin", "another plugin"],
)
def test_other_files_make_other_pods(values: Manifest, tmp_path: Path) -> None:
    def digest(objects: list[Manifest]) -> str:
        text: str = the(objects, "Deployment")["spec"]["template"]["metadata"]["annotations"][DIGEST]
        return text

    before, after = digest(rendered(tmp_path)), digest(rendered(tmp_path, **values))
    assert len({before, after, digest(rendered(tmp_path, plugins={"other.py": "pass\n"}))}) == 3
    assert len(before) == len(after) == 16


def test_a_pod_is_as_restricted_as_the_printed_one() -> None:
    assert violated(pod_of(charted("moorage", "harbour"))) == []


def test_what_only_the_chart_offers_is_in_the_pods(tmp_path: Path) -> None:
    terms = [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    given: Manifest = {
        "imagePullSecrets": [{"name": "registry"}],
        "nodeSelector": {"disk": "ssd"},
        "affinity": {"nodeAffinity": required},
        "priorityClassName": "mine",
    }
    objects = rendered(tmp_path, **given, podAnnotations={"a": "1"}, extraArgs=["--v=2"])
    pod = pod_of(objects)
    assert {field: pod[field] for field in given} == given
    assert the(objects, "Deployment")["spec"]["template"]["metadata"]["annotations"]["a"] == "1"
    assert pod["containers"][0]["args"][-1] == "--v=2"


def test_a_pod_monitor_gets_the_labels_by_which_it_is_selected(tmp_path: Path) -> None:
    objects = rendered(tmp_path, podMonitor={"enabled": True, "labels": {"release": "monitoring"}})
    assert the(objects, "PodMonitor")["metadata"]["labels"]["release"] == "monitoring"
    assert "release" not in the(objects, "Deployment")["metadata"]["labels"]


def test_rules_of_egress_can_be_added(tmp_path: Path) -> None:
    rule = {"ports": [{"protocol": "TCP", "port": 8080}]}
    policy = the(rendered(tmp_path, networkPolicy={"extraEgress": [rule]}), "NetworkPolicy")
    assert policy["spec"]["egress"][2:] == [rule]


REFUSED: dict[str, tuple[Manifest, str]] = {
    "a value that there is not": ({"replica": 3}, "Additional property replica is not allowed"),
    "a name that is none": ({"name": "My Scheduler"}, "name: "),
    "no replicas": ({"replicas": 0}, "replicas: Must be greater than or equal to 1"),
    "an amount that is none": ({"resources": {"limits": {"memory": "much"}}}, "resources.limits.memory: "),
    "a plugin that is no Python": ({"plugins": {"berth.txt": "x"}}, "plugins: "),
    "a rule without verbs": ({"extraRules": [{"resources": ["pods"]}]}, "extraRules.0: verbs is required"),
    "a configuration that is no YAML": ({"config": "a: ["}, "config is not valid YAML"),
    "racing replicas": (
        {"config": {**CONFIG, "leaderElection": {"leaderElect": False}}},
        "replicas: 2 replicas without leader election would race",
    ),
    "racing shadows": ({"shadow": True}, "replicas: 2 replicas without leader election would race"),
    "a scheduler that waits for itself": (
        {"config": {**CONFIG, "profiles": [{"schedulerName": "default-scheduler"}]}},
        "config: the profile default-scheduler would have to schedule its own pods",
    ),
    "a profile without a name": (
        {"config": {**CONFIG, "profiles": []}},
        "config: the profile default-scheduler would have to schedule its own pods",
    ),
}


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_what_cannot_work_is_refused(case: str, tmp_path: Path) -> None:
    values, says = REFUSED[case]
    done = helm("template", "moorage", CHART, *with_values(tmp_path, values))
    assert done.returncode == 1
    assert done.stdout == ""
    assert says in done.stderr
