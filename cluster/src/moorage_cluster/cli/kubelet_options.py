"""The kubelet's flags and its configuration file, as `moorage up` takes them for all its nodes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from moorage.api.decode import InputError
from moorage.config.load import read_document
from moorage_cluster.nodes.kubelet_config import API_VERSION, KIND, Kubelets, configured
from moorage_cluster.nodes.settings import NodeTemplate

_PANEL: Final = "Kubelets"
_SIGN: Final = {"evictionHard": "<", "evictionSoft": "<"}
_MAPS: Final = (
    "evictionHard",
    "evictionSoft",
    "evictionSoftGracePeriod",
    "evictionMinimumReclaim",
    "kubeReserved",
    "systemReserved",
)


def _option(help: str, **further: Any) -> Any:
    return typer.Option(help=help, rich_help_panel=_PANEL, **further)


KubeletConfigFile = Annotated[
    Path | None, _option("A KubeletConfiguration; flags win over it.", metavar="FILE")
]
EvictionHard = Annotated[
    str | None,
    _option("Thresholds at which pods are evicted (memory.available<200Mi,nodefs.available<10%)."),
]
EvictionSoft = Annotated[
    str | None, _option("Thresholds at which pods are evicted after a grace period (memory.available<1Gi).")
]
EvictionSoftGracePeriod = Annotated[
    str | None, _option("The grace periods of soft thresholds (memory.available=1m30s).")
]
EvictionMinimumReclaim = Annotated[
    str | None, _option("What is reclaimed at least, once a threshold is met (memory.available=500Mi).")
]
EvictionPressureTransitionPeriod = Annotated[
    str | None, _option("How long a node's pressure lasts after it was last seen (5m).")
]
EvictionMaxPodGracePeriod = Annotated[
    int | None, _option("Seconds that pods may take to end when a soft threshold is met (0).")
]
KubeReserved = Annotated[
    str | None, _option("What Kubernetes keeps of each node (cpu=200m,memory=500Mi,ephemeral-storage=1Gi).")
]
SystemReserved = Annotated[str | None, _option("What the system keeps of each node (cpu=100m,memory=256Mi).")]
MaxPods = Annotated[int | None, _option("How many pods a node takes (110).")]


def read_kubelets(
    file: Path | None, flags: Mapping[str, str | int | None], template: NodeTemplate
) -> Kubelets:
    """Kubelets as a file and flags want them; flags by the names of their fields, None where not given."""
    document: Any = {"apiVersion": API_VERSION, "kind": KIND} if file is None else read_document(file)
    given = {field: value for field, value in flags.items() if value is not None}

    def where(field: str) -> str:
        if field in given:
            return _flag(field)
        return f"{file}: {field}" if field else str(file)

    if isinstance(document, dict):
        document = document | {field: _value(field, value) for field, value in given.items()}
    return configured(document, template, where)


def _value(field: str, value: str | int) -> object:
    """What a flag says, as its field says it."""
    if field not in _MAPS:
        return value
    sign, pairs = _SIGN.get(field, "="), {}
    for part in filter(None, str(value).split(",")):
        name, found, text = part.partition(sign)
        if not found:
            raise InputError(_flag(field), f"malformed pair {part!r}, expect string{sign}string")
        pairs[name.strip()] = text.strip()
    return pairs


def _flag(field: str) -> str:
    words = "".join(f"-{each.lower()}" if each.isupper() else each for each in field)
    return f"--{words}"
