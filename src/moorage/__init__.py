"""moorage: a Kubernetes scheduler in Python.

What a plugin author needs is importable from here: the answers (`ALL`, `SKIP`, `unschedulable`, ...), what
plugins see (`Nodes`, `CycleState`, ...), and what makes a decision without a cluster (`Cache`, `Engine`).
The contract of every extension point is in `moorage.framework.points`.
"""

from moorage.api.decode import InputError, decode_object
from moorage.api.pod import Pod
from moorage.cluster.cache import Cache
from moorage.cluster.pods import PodInfo
from moorage.config.load import default_config, load_config, parse_config
from moorage.engine.decision import Decision
from moorage.engine.engine import Engine
from moorage.framework.cycle import CycleState, StateKey
from moorage.framework.diagnosis import Diagnosis
from moorage.framework.effects import Effect
from moorage.framework.handle import Handle
from moorage.framework.nodes import Nodes, NodeView
from moorage.framework.points import MAX_SCORE, MIN_SCORE, PostFilterResult, Scores
from moorage.framework.profiles import Profiles
from moorage.framework.registry import Registry, RegistryError
from moorage.framework.status import (
    SKIP,
    SUCCESS,
    PluginError,
    Status,
    pending,
    unresolvable,
    unschedulable,
    wait,
)
from moorage.framework.verdict import ALL, Reason, Verdict, refuse_where
from moorage.plugins import default_registry
from moorage.version import __version__

__all__ = [
    "ALL",
    "MAX_SCORE",
    "MIN_SCORE",
    "SKIP",
    "SUCCESS",
    "Cache",
    "CycleState",
    "Decision",
    "Diagnosis",
    "Effect",
    "Engine",
    "Handle",
    "InputError",
    "NodeView",
    "Nodes",
    "PluginError",
    "Pod",
    "PodInfo",
    "PostFilterResult",
    "Profiles",
    "Reason",
    "Registry",
    "RegistryError",
    "Scores",
    "StateKey",
    "Status",
    "Verdict",
    "__version__",
    "decode_object",
    "default_config",
    "default_registry",
    "load_config",
    "parse_config",
    "pending",
    "refuse_where",
    "unresolvable",
    "unschedulable",
    "wait",
]
