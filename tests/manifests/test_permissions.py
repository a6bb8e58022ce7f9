"""Which permissions follow from which plugins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.client.kinds import POD
from moorage.client.permissions import Permission
from moorage.emulation.kubernetes_version import V1_37, KubernetesVersion
from moorage.framework.interface.handle import Handle
from moorage.framework.runtime.framework import Framework
from moorage.manifests.permissions import cluster_permissions
from moorage.plugins import default_registry
from moorage_cluster.apiserver.auth.bootstrap_roles import cluster_roles
from moorage_cluster.apiserver.server_version import DEFAULT_SERVED
from tests.builders import make_profile
from tests.manifests.grants import grants
from tests.manifests.printing import Manifest, printed, the

READING = {"list", "watch"}
ALWAYS = {
    "nodes": READING,
    "pods": READING | {"get"},
    "pods/status": {"patch"},
    "events": {"create", "patch"},
    "podgroups": {"get"},
    "tokenreviews": {"create"},
    "subjectaccessreviews": {"create"},
}
BINDING = {"pods/binding": {"create"}}
DEVICES = {"resourceslices": READING, "deviceclasses": READING}
CLAIMS = {"persistentvolumes": READING, "persistentvolumeclaims": READING, "storageclasses": READING}

OF_NEWER_VERSIONS = {"devicetaintrules"}
"""What default plugins read that v1.36 does not serve."""

CASES: dict[str, tuple[tuple[str, ...], dict[str, set[str]]]] = {
    "nothing but a queue and a binder": ((), {}),
    "what is on the nodes themselves": (("NodeAffinity", "TaintToleration", "NodePorts", "NodeName"), {}),
    "affinity": (("InterPodAffinity",), {"namespaces": READING}),
    "spreading": (
        ("PodTopologySpread",),
        dict.fromkeys(("services", "replicationcontrollers", "replicasets", "statefulsets"), READING),
    ),
    "preemption": (
        ("DefaultPreemption",),
        {"poddisruptionbudgets": READING, "pods": ALWAYS["pods"] | {"delete"}},
    ),
    "volumes": (
        ("VolumeBinding",),
        {
            "persistentvolumes": READING | {"patch"},
            "persistentvolumeclaims": READING | {"patch"},
            **dict.fromkeys(("storageclasses", "csinodes", "csidrivers", "csistoragecapacities"), READING),
        },
    ),
    "volumes that are only looked at": (("VolumeZone",), CLAIMS),
    "devices": (
        ("DynamicResources",),
        {
            **DEVICES,
            "devicetaintrules": READING,
            "resourceclaims": READING | {"get", "create", "patch", "delete"},
            "resourceclaims/status": {"patch"},
            "resourceclaims/binding": {"patch"},
        },
    ),
    "devices that are only looked at": (("NodeResourcesFit",), {**DEVICES, "resourceclaims": READING}),
}


def configured(folder: Path, *profiles: Manifest, **fields: Any) -> str:
    """The option that names a configuration with these profiles."""
    path = folder / "scheduler.yaml"
    group = "kubescheduler.config.k8s.io/v1"
    document = {"apiVersion": group, "kind": "KubeSchedulerConfiguration", "profiles": list(profiles)}
    path.write_text(yaml.safe_dump(document | fields))
    return f"--config={path}"


def only(*plugins: str, name: str = "mine") -> Manifest:
    """A profile with few plugins."""
    enabled = [{"name": plugin} for plugin in ("PrioritySort", *plugins)]
    return {
        "schedulerName": name,
        "plugins": {"multiPoint": {"enabled": enabled, "disabled": [{"name": "*"}]}},
    }


def granted(objects: list[Manifest]) -> dict[str, set[str]]:
    """What the scheduler may do in the whole cluster: verbs by resource."""
    found: dict[str, set[str]] = {}
    for grant in grants([the(objects, "ClusterRole")]):
        found.setdefault(grant.what, set()).add(grant.verb)
    return found


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_role_has_what_the_plugins_need(case: str, tmp_path: Path) -> None:
    plugins, more = CASES[case]
    objects = printed(configured(tmp_path, only("DefaultBinder", *plugins)))
    assert granted(objects) == {**ALWAYS, **BINDING, **more}


def test_several_profiles_have_what_each_needs(tmp_path: Path) -> None:
    profiles = (
        only("DefaultBinder", "InterPodAffinity", name="a"),
        only("DefaultBinder", "VolumeZone", name="b"),
    )
    assert granted(printed(configured(tmp_path, *profiles))) == {
        **ALWAYS,
        **BINDING,
        **CLAIMS,
        "namespaces": READING,
    }


def test_a_scheduler_that_does_not_preempt_deletes_nothing(tmp_path: Path) -> None:
    off = {"postFilter": {"disabled": [{"name": "DefaultPreemption"}]}}
    objects = printed(configured(tmp_path, {"schedulerName": "mine", "plugins": off}))
    assert "delete" not in granted(objects)["pods"]
    assert granted(objects).items() >= {"resourceclaims/binding": {"patch"}}.items()


@pytest.mark.parametrize(
    ("version", "deletes"),
    [
        pytest.param(V1_37, False, id="no groups"),
        pytest.param(V1_37.with_gates({"GenericWorkload": True}), True, id="groups"),
    ],
)
def test_preemption_by_groups_deletes_pods(version: KubernetesVersion, deletes: bool) -> None:
    profile = make_profile("DefaultPreemption", off={"post_filter": ["DefaultPreemption"]})
    framework = Framework(profile, default_registry(), Handle(version=version))
    permissions = cluster_permissions([framework])
    assert (Permission.on(POD, "delete")[0] in permissions) is deletes


def test_a_scheduler_of_groups_follows_them_and_writes_their_conditions() -> None:
    objects = printed("--feature-gates", "GenericWorkload=true")
    assert granted(objects)["podgroups"] == READING
    assert granted(objects)["podgroups/status"] == {"patch"}
    assert "compositepodgroups" not in granted(objects)
    container = the(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    assert "--feature-gates=GenericWorkload=true" in container["args"]


PLUGIN = """
from moorage import Action, on


class Berths:
    name = "Berths"

    def events(self):
        return (on("berths.v1.harbour.example.com", Action.ADD),)

    def filter_node(self, cycle, pod, node):
        return None
"""


def test_a_plugin_from_outside_may_look_at_everything_and_at_what_it_names(tmp_path: Path) -> None:
    file = tmp_path / "berths.py"
    file.write_text(PLUGIN)
    config = configured(tmp_path, only("DefaultBinder"))
    found = grants([the(printed(config, "--plugin", file), "ClusterRole")])
    before = grants([the(printed(), "ClusterRole")])
    assert {(grant.group, grant.verb) for grant in found if grant.what == "berths"} == {
        ("harbour.example.com", "list"),
        ("harbour.example.com", "watch"),
    }
    assert {(grant.what, grant.verb) for grant in found if grant.what != "berths"} == {
        (grant.what, grant.verb)
        for grant in before
        if grant.verb in READING or grant.what in {**ALWAYS, **BINDING}
        if (grant.what, grant.verb) != ("pods", "delete") and grant.what not in OF_NEWER_VERSIONS
    }


@pytest.mark.parametrize(
    ("method", "what", "verb"),
    [("post_filter(self, cycle, pod, nodes, diagnosis)", "pods", "delete"),
     ("bind(self, cycle, pod, node_name)", "pods/binding", "create")],
)  # fmt: skip
def test_a_plugin_from_outside_may_do_what_its_extension_points_are_for(
    method: str, what: str, verb: str, tmp_path: Path
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(f'class Mine:\n    name = "Mine"\n\n    def {method}:\n        return None\n')
    config = configured(tmp_path, only("DefaultBinder") if verb == "delete" else only())
    assert verb in granted(printed(config, "--plugin", file))[what]


def test_a_plugin_may_write_what_it_declares_where_it_is_enabled(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from moorage import Permission, kinds\n\n\n"
        'class Mine:\n    name = "Mine"\n'
        '    write_permissions = {"pre_bind": Permission.on(kinds.CONFIG_MAP, "patch")}\n\n'
        "    async def pre_bind(self, cycle, pod, node_name):\n        return None\n\n"
        "    def post_filter(self, cycle, pod, nodes, diagnosis):\n        return None\n"
    )
    enabled = only("DefaultBinder")
    found = granted(printed(configured(tmp_path, enabled), "--plugin", file))
    assert found["configmaps"] == {"patch"}
    assert "delete" not in found["pods"]
    enabled["plugins"]["preBind"] = {"disabled": [{"name": "Mine"}]}
    assert "configmaps" not in granted(printed(configured(tmp_path, enabled), "--plugin", file))


def test_kube_scheduler_may_do_all_that_is_asked_for() -> None:
    roles = {role["metadata"]["name"]: role for role in cluster_roles(DEFAULT_SERVED)}
    theirs = {
        (grant.group, grant.what, grant.verb)
        for role in ("system:kube-scheduler", "system:volume-scheduler")
        for grant in grants([roles[role]])
    }
    ours = {(grant.group, grant.what, grant.verb) for grant in grants([the(printed(), "ClusterRole")])}
    # Only to say on a group that it is ignored, which needs no permission to be done without.
    ours.remove(("scheduling.k8s.io", "podgroups", "get"))
    assert ours <= theirs
    assert len(ours) < len(theirs)
