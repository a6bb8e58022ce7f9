"""The kubelet's flags and its configuration file, as `moorage up` takes them for all its nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import typer

_PANEL: Final = "Kubelets"


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
