"""Conversion of plugins that v1.36 no longer has, and of arguments that changed.

Each rule removes the old plugin from a draft, adds its successor, and notes it. `convert` applies all of them
to every old profile; `convert_policy` uses the parts that the Policy format shares.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from moorage.api.base import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Struct
from moorage.api.pod import NodeAffinity, PreferredSchedulingTerm
from moorage.api.selectors import Operator
from moorage.config.args import (
    ARGS_BY_PLUGIN,
    LEAST_ALLOCATED,
    LIST_DEFAULTING,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    SYSTEM_DEFAULTING,
    NodeAffinityArgs,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from moorage.config.defaults import ALL_PLUGINS
from moorage.config.draft import Draft
from moorage.config.manifest import encode
from moorage.config.types import API_VERSION, GROUP, PluginRef
from moorage.config.validation import REMOVED_PLUGINS

_STRATEGIES = {
    "NodeResourcesLeastAllocated": LEAST_ALLOCATED,
    "NodeResourcesMostAllocated": MOST_ALLOCATED,
    "RequestedToCapacityRatio": REQUESTED_TO_CAPACITY_RATIO,
}
_SPREAD = ("SelectorSpread", "DefaultPodTopologySpread")

REMOVED = {
    "NodePreferAvoidPods": "keep pods off nodes with taints, which TaintToleration reads",
    "NodeResourceLimits": "NodeResourcesFit scores by requests",
    "ServiceAffinity": "ask for it in the pods, with inter-pod affinity or topology spread constraints",
}
"""Plugins without a successor, and what to use instead."""


class _StrategyArgs(Struct):
    resources: tuple[ResourceSpec, ...] = ()
    shape: tuple[UtilizationShapePoint, ...] = ()


class _NodeLabelArgs(Struct):
    present_labels: tuple[str, ...] = ()
    absent_labels: tuple[str, ...] = ()
    present_labels_preference: tuple[str, ...] = ()
    absent_labels_preference: tuple[str, ...] = ()


def convert_plugins(draft: Draft) -> None:
    """Apply every rule to a profile."""
    _volume_limits(draft)
    _strategies(draft)
    _node_label(draft)
    _selector_spread(draft)
    _removed_plugin(draft)
    _changed_args(draft)


def _volume_limits(draft: Draft) -> None:
    for name, successor in REMOVED_PLUGINS.items():
        mentions = draft.take(name)
        had_args = draft.args.pop(name, None) is not None
        for point, (index, _) in mentions.enabled.items():
            if not draft.runs(successor, point):
                draft.enable(point, PluginRef(name=successor), index)
        if mentions.enabled or had_args:
            draft.note(f"{name} no longer exists: {successor} counts its volumes, as CSI volumes")
        elif mentions:
            draft.note(f"{name} no longer exists: no need to disable it; {successor} stays as it was")


def _strategies(draft: Draft) -> None:
    """Three plugins became strategies of NodeResourcesFit, which has one at a time."""
    mentions = {name: draft.take(name) for name in _STRATEGIES}
    args = {name: draft.args.pop(name) for name in _STRATEGIES if name in draft.args}
    wanted = [name for name, each in mentions.items() if each.enabled]
    standard = "NodeResourcesLeastAllocated"
    chosen = None
    if wanted:
        chosen = max(
            wanted, key=lambda name: max(ref.weight or 0 for _, ref in mentions[name].enabled.values())
        )
        for point, (index, ref) in mentions[chosen].enabled.items():
            if not draft.enable(point, PluginRef(name="NodeResourcesFit", weight=ref.weight), index):
                draft.note(f"the weight of {chosen} is dropped: NodeResourcesFit has one of its own")
        set_strategy(draft, chosen, args.pop(chosen, None))
    elif mentions[standard].disabled:
        # If all plugins are disabled, NodeResourcesFit is disabled with them.
        if not any(ref.name == ALL_PLUGINS for ref in draft.disabled.get("score", ())):
            draft.disable("score", "NodeResourcesFit")
        draft.note(f"{standard} is now the scoring of NodeResourcesFit, which is disabled instead")
    elif standard in args:
        set_strategy(draft, standard, args.pop(standard))
    for name in _STRATEGIES:
        if name in args or (name in wanted and name != chosen):
            draft.note(f"{name} is dropped: NodeResourcesFit has only one scoring strategy at a time")


def set_strategy(draft: Draft, plugin: str, args: Any) -> None:
    """Give NodeResourcesFit the strategy that a former plugin implemented."""
    kind = _STRATEGIES[plugin]
    old = draft.decode_args(plugin, args, _StrategyArgs)
    resources = old.resources
    ratio = None
    if kind == REQUESTED_TO_CAPACITY_RATIO:
        ratio = RequestedToCapacityRatioParam(shape=old.shape)
    elif any(each.weight == 0 for each in resources):
        resources = tuple(each for each in resources if each.weight)
        draft.note(f"{plugin}: resources of weight 0 did not count and are dropped; now zero would mean one")
    strategy = ScoringStrategy(type=kind, resources=resources, requested_to_capacity_ratio=ratio)
    draft.arguments("NodeResourcesFit")["scoringStrategy"] = encode(strategy)
    draft.note(f"{plugin} is now the scoringStrategy {kind} of NodeResourcesFit")


def _node_label(draft: Draft) -> None:
    mentions = draft.take("NodeLabel")
    args = draft.args.pop("NodeLabel", None)
    if not mentions.enabled:
        if mentions or args is not None:
            draft.note("NodeLabel no longer exists and was not enabled; its mention is dropped")
        return
    old = draft.decode_args("NodeLabel", args, _NodeLabelArgs)
    points = mentions.enabled.keys()
    if points & {"filter", "multi_point"}:
        require_labels(draft, old.present_labels, old.absent_labels)
    if points & {"score", "multi_point"}:
        prefer_labels(draft, old.present_labels_preference, old.absent_labels_preference)
    for point, (index, ref) in mentions.enabled.items():
        if not draft.runs("NodeAffinity", point):
            draft.enable(point, PluginRef(name="NodeAffinity", weight=ref.weight), index)
    draft.note("NodeLabel is now the addedAffinity of NodeAffinity, which has a weight of its own")


def require_labels(draft: Draft, present: tuple[str, ...], absent: tuple[str, ...]) -> None:
    """Make NodeAffinity require labels and their absence, in addition to its existing requirements."""
    expressions = _expressions(present, absent)
    affinity = _added_affinity(draft)
    if not expressions or affinity is None:
        return
    selector = affinity.required_during_scheduling_ignored_during_execution or NodeSelector()
    terms = selector.node_selector_terms or (NodeSelectorTerm(),)
    terms = tuple(replace(term, match_expressions=term.match_expressions + expressions) for term in terms)
    selector = NodeSelector(node_selector_terms=terms)
    _add_affinity(draft, replace(affinity, required_during_scheduling_ignored_during_execution=selector))


def prefer_labels(draft: Draft, present: tuple[str, ...], absent: tuple[str, ...]) -> None:
    """Make NodeAffinity prefer nodes with and without labels, with equal weights."""
    expressions = _expressions(present, absent)
    affinity = _added_affinity(draft)
    if not expressions or affinity is None:
        return
    terms = affinity.preferred_during_scheduling_ignored_during_execution + tuple(
        PreferredSchedulingTerm(weight=1, preference=NodeSelectorTerm(match_expressions=(each,)))
        for each in expressions
    )
    _add_affinity(draft, replace(affinity, preferred_during_scheduling_ignored_during_execution=terms))


def _expressions(present: tuple[str, ...], absent: tuple[str, ...]) -> tuple[NodeSelectorRequirement, ...]:
    wanted = [(key, Operator.EXISTS) for key in present] + [(key, Operator.DOES_NOT_EXIST) for key in absent]
    return tuple(NodeSelectorRequirement(key=key, operator=operator.value) for key, operator in wanted)


def _added_affinity(draft: Draft) -> NodeAffinity | None:
    args = draft.decode_args("NodeAffinity", draft.args.get("NodeAffinity"), NodeAffinityArgs)
    return None if draft.problems else args.added_affinity or NodeAffinity()


def _add_affinity(draft: Draft, affinity: NodeAffinity) -> None:
    draft.arguments("NodeAffinity")["addedAffinity"] = encode(affinity)


def _selector_spread(draft: Draft) -> None:
    for name in _SPREAD:
        mentions = draft.take(name)
        draft.args.pop(name, None)
        if mentions.enabled:
            for point, (index, ref) in mentions.enabled.items():
                draft.enable(point, PluginRef(name="PodTopologySpread", weight=ref.weight), index)
            spread = draft.arguments("PodTopologySpread")
            if not spread.get("defaultConstraints"):
                spread["defaultingType"] = SYSTEM_DEFAULTING
            draft.note(f"{name} is now the system default of PodTopologySpread")
        elif mentions.disabled:
            draft.arguments("PodTopologySpread")["defaultingType"] = LIST_DEFAULTING
            draft.note(
                f"{name} is now the system default of PodTopologySpread, which is switched off instead"
            )


def _removed_plugin(draft: Draft) -> None:
    for name, advice in REMOVED.items():
        had_args = draft.args.pop(name, None) is not None
        if draft.take(name) or had_args:
            draft.note(f"{name} no longer exists and is dropped: {advice}")


def _changed_args(draft: Draft) -> None:
    for name in ARGS_BY_PLUGIN:
        if draft.args.get(name) is None:
            continue
        args = draft.arguments(name)
        version = args.get("apiVersion")
        if isinstance(version, str) and version.startswith(GROUP) and version != API_VERSION:
            args["apiVersion"] = API_VERSION
            draft.note(f"the args of {name} are now of {API_VERSION}")
        if name == "PodTopologySpread" and args.get("defaultConstraints") and not args.get("defaultingType"):
            args["defaultingType"] = LIST_DEFAULTING
            draft.note(
                "PodTopologySpread: constraints of one's own now need the defaultingType List, which is added"
            )
        if name == "VolumeBinding" and args.pop("shape", None) is not None:
            draft.note("VolumeBinding: shape is dropped; it needs the feature gate StorageCapacityScoring")
