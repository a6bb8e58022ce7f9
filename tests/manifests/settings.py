"""Settings of an installation, as options of `moorage manifests`, values of the chart, and an overlay."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from moorage.version import __version__
from tests.manifests.forms import (
    BASE,
    OVERLAYS,
    POD_MONITOR,
    charted,
    kustomized,
    with_plain_config_name,
    with_values,
)
from tests.manifests.printing import Manifest, printed, run

IMAGE = f"registry.example/moorage:{__version__}"
FILES = "FILES/"
"""In options: the folder in which the files of the settings are."""


@dataclass(frozen=True)
class Settings:
    """The same wishes in three languages."""

    options: Sequence[str] = ()
    values: Manifest | None = field(default_factory=dict)
    """None: the chart's own rules do not fit, and only printed values do."""
    overlay: str | Manifest | None = None
    """The name of an overlay in `deploy/`, or what a kustomization on the base has.

    None: the base has nothing in common with it.
    """
    name: str = "moorage"
    namespace: str = "kube-system"
    is_monitored: bool = False
    files: dict[str, str] = field(default_factory=dict)

    def _options(self, folder: Path) -> list[str]:
        for name, text in self.files.items():
            (folder / name).write_text(text)
        where = ("--name", self.name, "--namespace", self.namespace)
        monitor = "--pod-monitor" if self.is_monitored else "--no-pod-monitor"
        return [*where, monitor, *(each.replace(FILES, f"{folder}/") for each in self.options)]

    def printed(self, folder: Path) -> list[Manifest]:
        """What `moorage manifests` prints."""
        return printed(*self._options(folder))

    def charted(self, folder: Path) -> list[Manifest]:
        """What the chart renders."""
        assert self.values is not None
        given = {**self.values, **({"podMonitor": {"enabled": True}} if self.is_monitored else {})}
        return charted(self.name, self.namespace, *with_values(folder, given))

    def charted_as_printed(self, folder: Path) -> list[Manifest]:
        """What the chart renders with the values that are printed for it, in a release of another name."""
        result = run(*self._options(folder), "--helm-values")
        assert result.exit_code == 0, result.output
        path = folder / "printed.yaml"
        path.write_text(result.stdout)
        return charted("release", self.namespace, "--values", path)

    def kustomized(self, folder: Path) -> list[Manifest]:
        """What Kustomize builds."""
        assert self.overlay is not None
        if isinstance(self.overlay, str):
            return with_plain_config_name(kustomized(OVERLAYS / self.overlay), self.name)
        for name, text in self.files.items():
            (folder / name).write_text(text)
        document = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            # Kustomize takes relative paths only.
            "resources": [os.path.relpath(BASE, folder)],
            **({"components": [os.path.relpath(POD_MONITOR, folder)]} if self.is_monitored else {}),
            **self.overlay,
        }
        (folder / "kustomization.yaml").write_text(yaml.safe_dump(document))
        return with_plain_config_name(kustomized(folder), self.name)


def shipped(overlay: str, *names: str) -> dict[str, str]:
    """Files of an overlay in `deploy/`."""
    return {name: (OVERLAYS / overlay / name).read_text() for name in names}


def patched(kind: str, *operations: tuple[str, str, Any]) -> Manifest:
    """A patch of the one object of a kind, as operations of JSON Patch."""
    steps = [{"op": op, "path": path, "value": value} for op, path, value in operations]
    return {"target": {"kind": kind, "name": "moorage"}, "patch": yaml.safe_dump(steps)}


def replaced(*files: str) -> list[Manifest]:
    """A ConfigMap with other files."""
    return [
        {"name": "moorage-config", "namespace": "kube-system", "behavior": "replace", "files": list(files)}
    ]


LEASE = {"leaderElection": {"resourceName": "moorage", "resourceNamespace": "kube-system"}}
GROUP = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
CONTAINER = "/spec/template/spec/containers/0"
TWO_PROFILES: Manifest = {
    **GROUP,
    **LEASE,
    "profiles": [
        {"schedulerName": "spread"},
        {"schedulerName": "packed", "plugins": {"multiPoint": {"disabled": [{"name": "ImageLocality"}]}}},
    ],
}
BERTHS = """
from moorage import Action, on


class Berths:
    name = "Berths"

    def events(self):
        return (on("berths.v1.harbour.example.com", Action.ADD),)

    def filter_node(self, cycle, pod, node):
        return None
"""
BERTHS_RULE = {"apiGroups": ["harbour.example.com"], "resources": ["berths"], "verbs": ["list", "watch"]}
QUOTAS: Manifest = {
    **GROUP,
    **LEASE,
    "profiles": [
        {
            "schedulerName": "moorage",
            "plugins": {
                "multiPoint": {"enabled": [{"name": "Capacity"}], "disabled": [{"name": "DefaultPreemption"}]}
            },
        }
    ],
}
QUOTA_RULES = [
    {"apiGroups": ["scheduling.x-k8s.io"], "resources": ["elasticquotas"], "verbs": ["list", "watch"]},
    {"apiGroups": ["scheduling.x-k8s.io"], "resources": ["elasticquotas/status"], "verbs": ["patch"]},
]
LARGE = {"requests": {"cpu": "250m", "memory": "1Gi"}, "limits": {"memory": "2Gi"}}
OWN = shipped("own-name", "config.yaml")
PLUGIN = shipped("plugin", "config.yaml", "berth.py")
INSTEAD = shipped("replace-kube-scheduler", "config.yaml")

SETTINGS: dict[str, Settings] = {
    "defaults": Settings(overlay={}),
    "metrics": Settings(overlay={}, is_monitored=True),
    "a name, a namespace and an image": Settings(
        ("--image", IMAGE),
        {"image": IMAGE},
        "own-name",
        name="my-moorage",
        namespace="harbour",
        is_monitored=True,
    ),
    "a plugin file and a configuration": Settings(
        ("--config", f"{FILES}config.yaml", "--plugin", f"{FILES}berth.py"),
        {"config": PLUGIN["config.yaml"], "plugins": {"berth.py": PLUGIN["berth.py"]}},
        "plugin",
        files=PLUGIN,
    ),
    "in place of kube-scheduler": Settings(
        ("--config", f"{FILES}config.yaml", "--node", "node-0"),
        {"config": INSTEAD["config.yaml"], "node": "node-0"},
        "replace-kube-scheduler",
        files=INSTEAD,
    ),
    "two profiles": Settings(
        ("--config", f"{FILES}config.yaml"),
        {"config": TWO_PROFILES},
        {"configMapGenerator": replaced("config.yaml")},
        files={"config.yaml": yaml.safe_dump(TWO_PROFILES)},
    ),
    "replicas and memory": Settings(
        ("--replicas", "3", "--memory", "2Gi"),
        {"replicas": 3, "resources": LARGE},
        {
            "replicas": [{"name": "moorage", "count": 3}],
            "patches": [patched("Deployment", ("replace", f"{CONTAINER}/resources", LARGE))],
        },
    ),
    "an optional plugin with permissions of its own": Settings(
        ("--config", f"{FILES}config.yaml"),
        {"config": QUOTAS, "extraRules": QUOTA_RULES},
        {
            "configMapGenerator": replaced("config.yaml"),
            "patches": [patched("ClusterRole", *(("add", "/rules/-", rule) for rule in QUOTA_RULES))],
        },
        files={"config.yaml": yaml.safe_dump(QUOTAS)},
    ),
    "a plugin that follows a kind of its own": Settings(
        ("--plugin", f"{FILES}berths.py"),
        {"plugins": {"berths.py": BERTHS}, "extraRules": [BERTHS_RULE]},
        {
            "configMapGenerator": [{**replaced("berths.py")[0], "behavior": "merge"}],
            "patches": [
                patched("ClusterRole", ("add", "/rules/-", BERTHS_RULE)),
                patched("Deployment", ("add", f"{CONTAINER}/args/-", "--plugin=/etc/moorage/berths.py")),
            ],
        },
        files={"berths.py": BERTHS},
    ),
    "a network without policy": Settings(
        ("--no-network-policy",),
        {"networkPolicy": {"enabled": False}},
        {
            "patches": [
                {
                    "target": {"kind": "NetworkPolicy"},
                    "patch": "{$patch: delete, kind: NetworkPolicy, metadata: {name: moorage}}",
                }
            ]
        },
    ),
    "a feature gate": Settings(("--feature-gates", "GenericWorkload=true"), values=None),
    "shadow mode": Settings(("--shadow", "--replicas", "1"), {"shadow": True, "replicas": 1}),
}
