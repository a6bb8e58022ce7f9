"""What people import from `moorage` is pinned here: taking a name away is a decision, not an accident."""

from __future__ import annotations

import re

import moorage

NAMES = [
    "ALL",
    "IN_PARALLEL",
    "MAX_SCORE",
    "MIN_SCORE",
    "NODE",
    "NODE_AND_PODS",
    "SKIP",
    "SKIP_IN_PARALLEL",
    "SUCCESS",
    "Action",
    "DependsOn",
    "Cache",
    "Client",
    "Cluster",
    "Code",
    "CycleState",
    "Decision",
    "Diagnosis",
    "Duration",
    "Effect",
    "Engine",
    "Handle",
    "InputError",
    "Interest",
    "Namespace",
    "Node",
    "NodeView",
    "Nodes",
    "NotHereError",
    "Object",
    "ObjectTable",
    "Objects",
    "Permission",
    "PluginError",
    "Pod",
    "PodInfo",
    "PostFilterResult",
    "PreFlight",
    "Profiles",
    "QueuedPod",
    "Reason",
    "Registry",
    "RegistryError",
    "Resource",
    "Scores",
    "SimulatedCluster",
    "StateKey",
    "Status",
    "Struct",
    "FilterResult",
    "Generator",
    "GroupDryRun",
    "Placement",
    "PlacementAssignments",
    "PlacementError",
    "PlacementProgress",
    "PodGroupInfo",
    "PodGroupPostFilterResult",
    "WaitingPod",
    "WaitingPods",
    "__version__",
    "decide",
    "decode_object",
    "default_config",
    "default_registry",
    "kinds",
    "load_config",
    "on",
    "parse_config",
    "pending",
    "refuse_where",
    "scheduler_command",
    "unresolvable",
    "unschedulable",
    "wait",
    "with_plugin",
]


def test_public_names() -> None:
    assert sorted(moorage.__all__) == sorted(NAMES)
    assert all(hasattr(moorage, name) for name in NAMES)


def test_each_public_name_is_explained_where_it_is_imported_from() -> None:
    explained = set(re.findall(r"\w+", moorage.__doc__ or ""))
    assert [name for name in NAMES if name not in explained and name != "__version__"] == []
