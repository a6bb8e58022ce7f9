"""What is printed, option by option, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.version import __version__
from tests.manifests.printing import Manifest, pod_of, printed, run, the
from tests.manifests.test_permissions import PLUGIN, configured, only

RBAC = "rbac.authorization.k8s.io/v1"


def identified(objects: list[Manifest]) -> list[tuple[str, str, str]]:
    return [
        (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]) for each in objects
    ]


def test_everything_is_printed_in_an_order_in_which_it_can_be_applied() -> None:
    assert identified(printed("--name", "my-scheduler", "--namespace", "harbour")) == [
        ("ServiceAccount", "harbour", "my-scheduler"),
        ("ClusterRole", "", "my-scheduler"),
        ("ClusterRoleBinding", "", "my-scheduler"),
        ("Role", "harbour", "my-scheduler-leader-election"),
        ("RoleBinding", "harbour", "my-scheduler-leader-election"),
        ("RoleBinding", "kube-system", "my-scheduler-authentication-reader"),
        ("NetworkPolicy", "harbour", "my-scheduler"),
        ("ConfigMap", "harbour", "my-scheduler"),
        ("Deployment", "harbour", "my-scheduler"),
        ("PodDisruptionBudget", "harbour", "my-scheduler"),
        ("ServiceAccount", "harbour", "my-scheduler-metrics"),
        ("Secret", "harbour", "my-scheduler-metrics"),
        ("ClusterRole", "", "my-scheduler-metrics"),
        ("ClusterRoleBinding", "", "my-scheduler-metrics"),
        ("PodMonitor", "harbour", "my-scheduler"),
    ]


def test_every_binding_binds_the_account_of_the_installation() -> None:
    for obj in printed("--name", "mine", "--namespace", "harbour"):
        for subject in obj.get("subjects", ()):
            name = "mine-metrics" if obj["metadata"]["name"] == "mine-metrics" else "mine"
            assert subject == {"kind": "ServiceAccount", "name": name, "namespace": "harbour"}


def test_without_a_pod_monitor_there_is_no_account_for_it() -> None:
    objects = printed("--no-pod-monitor")
    assert not [name for _, _, name in identified(objects) if name.endswith("-metrics")]
    assert objects[-1]["kind"] == "PodDisruptionBudget"


def configuration(objects: list[Manifest], name: str = "moorage") -> Any:
    return yaml.safe_load(the(objects, "ConfigMap", name)["data"]["config.yaml"])


def test_without_a_configuration_pods_ask_for_it_by_name() -> None:
    assert configuration(printed("--name", "mine", "--namespace", "harbour"), "mine") == {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "mine"}],
        "leaderElection": {"resourceName": "mine", "resourceNamespace": "harbour"},
    }


def test_a_configuration_goes_along_as_it_is_with_a_lease_of_its_own(tmp_path: Path) -> None:
    connection = {"kubeconfig": "/home/me/.kube/config", "qps": 100}
    option = configured(tmp_path, only("DefaultBinder"), podMaxBackoffSeconds=30, clientConnection=connection)
    printed_config = configuration(printed(option))
    given = yaml.safe_load(Path(option.removeprefix("--config=")).read_text())
    assert printed_config == {
        **given,
        "clientConnection": {"qps": 100},
        "leaderElection": {"resourceName": "moorage", "resourceNamespace": "kube-system"},
    }


def test_a_lease_that_the_configuration_names_is_the_one_that_may_be_held(tmp_path: Path) -> None:
    election = {"resourceName": "turn", "resourceNamespace": "harbour", "leaseDuration": "30s"}
    objects = printed(configured(tmp_path, only("DefaultBinder"), leaderElection=election))
    assert configuration(objects)["leaderElection"] == election
    role = the(objects, "Role", "moorage-leader-election")
    assert role["metadata"]["namespace"] == "harbour"
    assert [rule.get("resourceNames") for rule in role["rules"] if "get" in rule["verbs"]] == [["turn"]]


def test_a_scheduler_that_does_not_elect_needs_no_lease(tmp_path: Path) -> None:
    option = configured(tmp_path, only("DefaultBinder"), leaderElection={"leaderElect": False})
    objects = printed(option, "--replicas", 1)
    assert not [name for _, _, name in identified(objects) if name.endswith("-leader-election")]


def test_pods_are_as_restricted_as_can_be() -> None:
    pod = pod_of(printed())
    (container,) = pod["containers"]
    assert pod["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["image"] == f"moorage:{__version__}"
    for probe, path in (("livenessProbe", "/livez"), ("readinessProbe", "/readyz")):
        assert container[probe]["httpGet"] == {"path": path, "port": "https", "scheme": "HTTPS"}
    assert container["ports"] == [{"name": "https", "containerPort": 10259}]
    assert container["resources"] == {
        "requests": {"cpu": "250m", "memory": "640Mi"},
        "limits": {"memory": "1280Mi"},
    }
    assert pod["terminationGracePeriodSeconds"] == 30


def test_memory_is_limited_as_configured_and_half_of_it_is_requested() -> None:
    (container,) = pod_of(printed("--memory", "3Gi"))["containers"]
    assert container["resources"]["limits"] == {"memory": "3Gi"}
    assert container["resources"]["requests"]["memory"] == "1536Mi"


def test_only_the_schedulers_pods_are_given_its_token() -> None:
    objects = printed()
    assert pod_of(objects)["automountServiceAccountToken"] is True
    for name in ("moorage", "moorage-metrics"):
        assert the(objects, "ServiceAccount", name)["automountServiceAccountToken"] is False


@pytest.mark.parametrize(
    ("namespace", "priority"), [("kube-system", "system-cluster-critical"), ("harbour", None)]
)
def test_only_where_the_control_plane_is_it_is_critical(namespace: str, priority: str | None) -> None:
    assert pod_of(printed("--namespace", namespace)).get("priorityClassName") == priority


def test_options_say_how_many_of_which_image() -> None:
    objects = printed("--image", "registry.example/moorage:2", "--replicas", 3)
    assert the(objects, "Deployment")["spec"]["replicas"] == 3
    assert pod_of(objects)["containers"][0]["image"] == "registry.example/moorage:2"


def test_pods_find_a_place_by_the_default_scheduler_and_apart_from_each_other() -> None:
    pod = pod_of(printed())
    assert "schedulerName" not in pod
    assert "nodeName" not in pod
    (spread,) = pod["topologySpreadConstraints"]
    assert (spread["topologyKey"], spread["whenUnsatisfiable"]) == (
        "kubernetes.io/hostname",
        "ScheduleAnyway",
    )


def test_a_replacement_of_the_default_scheduler_has_a_node_name(tmp_path: Path) -> None:
    pod = pod_of(
        printed(configured(tmp_path, only("DefaultBinder", name="default-scheduler")), "--node", "n1")
    )
    assert pod["nodeName"] == "n1"
    assert "topologySpreadConstraints" not in pod


def test_plugins_are_mounted_and_named(tmp_path: Path) -> None:
    first, second = tmp_path / "berths.py", tmp_path / "tides.py"
    first.write_text(PLUGIN)
    second.write_text(PLUGIN.replace("Berths", "Tides"))
    objects = printed("--plugin", first, "--plugin", second)
    data = the(objects, "ConfigMap")["data"]
    assert data["berths.py"] == PLUGIN
    assert data.keys() == {"config.yaml", "berths.py", "tides.py"}
    (container,) = pod_of(objects)["containers"]
    assert container["command"] == ["moorage"]
    assert container["args"] == [
        "run",
        "--config=/etc/moorage/config.yaml",
        "--bind-address=0.0.0.0",
        "--plugin=/etc/moorage/berths.py",
        "--plugin=/etc/moorage/tides.py",
    ]
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod_of(objects)["volumes"]}
    assert volumes[mounts["/etc/moorage"]]["configMap"] == {"name": "moorage"}
    assert "emptyDir" in volumes[mounts["/tmp"]]


def test_another_configuration_makes_other_pods(tmp_path: Path) -> None:
    def annotations(*options: str) -> Any:
        return the(printed(*options), "Deployment")["spec"]["template"]["metadata"]["annotations"]

    before, option = annotations(), configured(tmp_path, only("DefaultBinder"))
    assert annotations() == before
    assert annotations(option) != before


def test_what_is_printed_reads_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "berths.py"
    file.write_text(PLUGIN)
    text = run("--plugin", file).stdout
    assert "  berths.py: |" in text
    assert "*id" not in text
    assert "&id" not in text


def large(folder: Path) -> tuple[str, ...]:
    file = folder / "large.py"
    file.write_text(PLUGIN + f'\nPADDING = "{"x" * 1024 * 1024}"\n')
    return ("--plugin", str(file))


def twice(folder: Path) -> tuple[str, ...]:
    options: tuple[str, ...] = ()
    for name in ("a", "b"):
        (folder / name).mkdir()
        file = folder / name / "berths.py"
        file.write_text(PLUGIN.replace("Berths", name))
        options += ("--plugin", str(file))
    return options


def oddly_named(folder: Path) -> tuple[str, ...]:
    file = folder / "my plugin.py"
    file.write_text(PLUGIN)
    return ("--plugin", str(file))


def broken(folder: Path) -> tuple[str, ...]:
    file = folder / "broken.py"
    file.write_text("import harbour_that_is_not_there\n")
    return ("--plugin", str(file))


REFUSED: dict[str, tuple[Any, str]] = {
    "a name that is none": (("--name", "My Scheduler"), "--name: 'My Scheduler': "),
    "a namespace that is none": (("--namespace", "a.b"), "--namespace: 'a.b': "),
    "a node that is none": (("--node", "Node 1"), "--node: 'Node 1': "),
    "memory that is no amount": (("--memory", "much"), "--memory: 'much' is not a quantity"),
    "memory that nothing runs in": (("--memory", "64Mi"), "--memory: 64Mi is less than"),
    "no image": (("--image", ""), "--image: '' is not the name of an image"),
    "a file that is not there": (("--config", "nowhere.yaml"), "nowhere.yaml: "),
    "no such plugin": (
        lambda folder: (configured(folder, only("DefaultBinder", "Nobody")),),
        "there is no plugin Nobody",
    ),
    "a wrong field": (lambda folder: (configured(folder, only("DefaultBinder"), qps=3),), "qps"),
    "racing replicas": (
        lambda folder: (configured(folder, only("DefaultBinder"), leaderElection={"leaderElect": False}),),
        "--replicas: 2 replicas without leader election would race; say --replicas 1",
    ),
    "a scheduler that waits for itself": (
        lambda folder: (configured(folder, only("DefaultBinder", name="default-scheduler")),),
        "--config: the profile default-scheduler would have to schedule its own pods",
    ),
    "an extender's files": (
        lambda folder: (
            configured(
                folder,
                only("DefaultBinder"),
                extenders=[{"urlPrefix": "https://a", "filterVerb": "f", "tlsConfig": {"caFile": "ca.crt"}}],
            ),
        ),
        "--config: extenders[0].tlsConfig names files",
    ),
    "files of the same name": (twice, "--plugin: there are two files berths.py"),
    "a file whose name cannot be a key": (oddly_named, "--plugin: my plugin.py: "),
    "a file that is too large": (large, "--plugin: configuration and plugins are larger than a ConfigMap"),
    "a file that cannot be loaded": (broken, "broken.py cannot be loaded: "),
}


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_what_cannot_work_is_refused_in_one_line(case: str, tmp_path: Path) -> None:
    options, says = REFUSED[case]
    result = run(*(options(tmp_path) if callable(options) else options))
    assert result.exit_code == 1
    assert result.stdout == ""
    assert says in result.stderr
    assert result.stderr.startswith("moorage manifests: ")
    assert result.stderr.count("\n") == 1
