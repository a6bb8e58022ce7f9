"""What people import from `moorage` is pinned here: taking a name away is a decision, not an accident."""

from __future__ import annotations

import moorage

NAMES = [
    "ALL",
    "PluginError",
    "SUCCESS",
    "RegistryError",
    "MIN_SCORE",
    "MAX_SCORE",
    "Effect",
    "PodInfo",
    "decode_object",
    "InputError",
    "SKIP",
    "Cache",
    "CycleState",
    "Decision",
    "Diagnosis",
    "Engine",
    "Handle",
    "NodeView",
    "Nodes",
    "Pod",
    "PostFilterResult",
    "Profiles",
    "Reason",
    "Registry",
    "Scores",
    "StateKey",
    "Status",
    "Verdict",
    "__version__",
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


def test_public_names() -> None:
    assert sorted(moorage.__all__) == sorted(NAMES)
    assert all(hasattr(moorage, name) for name in NAMES)
