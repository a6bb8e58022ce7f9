"""All objects of an installation, in the order in which to apply them, and as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

from moorage.api.manifests import Manifest
from moorage.manifests.access import access
from moorage.manifests.deployment import workload
from moorage.manifests.installation import Installation
from moorage.manifests.monitoring import monitoring
from moorage.manifests.network import network_policy


def bundle(installation: Installation) -> list[Manifest]:
    """All objects, dependencies first; the PodMonitor, a kind that not every cluster has, last."""
    guarded = [network_policy(installation)] if installation.has_network_policy else []
    monitored = monitoring(installation) if installation.is_monitored else ()
    return [*access(installation), *guarded, *workload(installation), *monitored]


class _Dumper(yaml.SafeDumper):
    """Readable YAML: no aliases, and files as literal blocks."""

    def ignore_aliases(self, data: Any) -> bool:
        """Never write an alias."""
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(tuple, lambda dumper, items: dumper.represent_list(items))


def as_yaml(objects: Iterable[Manifest]) -> str:
    """Objects as one stream of documents, for `kubectl apply -f -`."""
    return yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
