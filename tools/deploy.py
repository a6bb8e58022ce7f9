"""Write what `deploy/` has from the source: `python -m tools.deploy`.

The Kustomize base and its component are what the command prints; the Helm chart has the rules of its roles,
for all default plugins and for shadow mode. Templates and overlays are written by hand, and tests compare
what they render with what the command prints.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, Final

import yaml

from moorage.cli.main import app
from moorage.manifests.bundle import as_yaml
from tools.dashboard import dashboard

ROOT: Final = Path(__file__).parent.parent
_HEADER: Final = "# Written by `make deploy` from what `moorage manifests` prints.\n"
_BASE: Final = "deploy/kustomize/base"
_POD_MONITOR: Final = "deploy/kustomize/components/pod-monitor"
_RULES: Final = "deploy/chart/moorage/files/rules.yaml"
_DASHBOARD: Final = "deploy/grafana/moorage.json"

CONFIG_MAP_SUFFIX: Final = "-config"
"""What the name of the generated ConfigMap has in addition, before the digest."""

Manifest = dict[str, Any]


def main() -> int:
    """Write the files."""
    for path, text in generated().items():
        (ROOT / path).write_text(text)
    return 0


def generated() -> Mapping[str, str]:
    """The contents of the files by path."""
    monitored, shadow = _printed("--pod-monitor"), _printed("--no-pod-monitor", "--shadow", "--replicas", "1")
    plain = _printed("--no-pod-monitor")
    policy = _the(monitored, "NetworkPolicy")
    added = [each for each in monitored if _identity(each) not in map(_identity, plain)]
    return {
        _DASHBOARD: dashboard(),
        f"{_BASE}/config.yaml": _HEADER + _the(plain, "ConfigMap")["data"]["config.yaml"],
        f"{_BASE}/scheduler.yaml": _HEADER + as_yaml(_with_generated_config(plain)),
        f"{_POD_MONITOR}/monitoring.yaml": _HEADER + as_yaml(added),
        f"{_POD_MONITOR}/network-policy.yaml": _HEADER + as_yaml([_ingress_of(policy)]),
        _RULES: _HEADER
        + as_yaml([{"scheduler": _the(plain, "ClusterRole")["rules"],
                    "shadow": _the(shadow, "ClusterRole")["rules"]}]),
    }  # fmt: skip


def _printed(*options: str) -> list[Manifest]:
    with redirect_stdout(StringIO()) as output:
        app(["manifests", *options], standalone_mode=False)
    return list(yaml.safe_load_all(output.getvalue()))


def _identity(obj: Manifest) -> tuple[str, str]:
    return obj["kind"], obj["metadata"]["name"]


def _the(objects: list[Manifest], kind: str) -> Manifest:
    (found,) = (each for each in objects if each["kind"] == kind)
    return found


def _with_generated_config(objects: list[Manifest]) -> list[Manifest]:
    """All but the ConfigMap: Kustomize generates it, with a digest in its name in place of the annotation.

    It has a name of its own, because Kustomize takes resourceNames of a Role, here the lease, for ConfigMaps.
    """
    template = _the(objects, "Deployment")["spec"]["template"]
    del template["metadata"]["annotations"]
    (volume,) = (each for each in template["spec"]["volumes"] if "configMap" in each)
    volume["configMap"]["name"] += CONFIG_MAP_SUFFIX
    return [each for each in objects if each["kind"] != "ConfigMap"]


def _ingress_of(policy: Manifest) -> Manifest:
    """A patch that allows scrapes."""
    name = {"name": policy["metadata"]["name"], "namespace": policy["metadata"]["namespace"]}
    identity = {"apiVersion": policy["apiVersion"], "kind": policy["kind"], "metadata": name}
    return {**identity, "spec": {"ingress": policy["spec"]["ingress"]}}


if __name__ == "__main__":
    raise SystemExit(main())
