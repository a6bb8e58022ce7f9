"""An installation as values of the Helm chart (`deploy/chart/moorage`), which cannot compute rules itself."""

from __future__ import annotations

import yaml

from moorage.api.manifests import Manifest
from moorage.manifests.deployment import resources
from moorage.manifests.installation import CONFIG_FILE, Installation
from moorage.manifests.permissions import rules


def helm_values(installation: Installation) -> Manifest:
    """The values of a release in the installation's namespace."""
    return {
        "name": installation.name,
        "image": installation.image,
        "replicas": installation.replicas,
        "config": yaml.safe_load(installation.files[CONFIG_FILE]),
        "plugins": {name: installation.files[name] for name in installation.plugins},
        "shadow": installation.is_shadow,
        "rules": rules(installation.permissions),
        "extraArgs": list(installation.flags),
        "resources": resources(installation.memory_limit),
        "node": installation.node,
        "networkPolicy": {"enabled": installation.has_network_policy},
        "podMonitor": {"enabled": installation.is_monitored},
    }
