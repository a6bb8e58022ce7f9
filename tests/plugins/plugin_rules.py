"""What one plugin says of a few nodes: for tables of its rules.

Every rule is checked in all its forms: computed for one pod, then for its equivalence class, then cached.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.cluster.cache import Cache
from moorage.engine.decision import Decision
from moorage.engine.engine import Engine
from tests.builders import make_framework

Args = dict[str, Any] | None


def refusals(plugin: str, pod: Pod, *objects: Object, args: Args = None) -> dict[str, str]:
    """By node why a plugin refuses it; empty if it does not."""
    (found, *others) = (_refusals(each) for each in _decisions(plugin, pod, objects, args))
    assert all(other == found for other in others)
    return found


def scores(plugin: str, pod: Pod, *objects: Object, args: Args = None) -> dict[str, int]:
    """By node the normalized score that a plugin gives; none if it skips the pod."""
    (found, *others) = (_scores(plugin, each) for each in _decisions(plugin, pod, objects, args))
    assert all(other == found for other in others)
    return found


def _decisions(plugin: str, pod: Pod, objects: tuple[Object, ...], args: Args) -> Iterator[Decision]:
    framework = make_framework(plugin, args=None if args is None else {plugin: args})
    cache = Cache(objects)
    caching = Engine(seed=0)
    for engine in (Engine(seed=0, remembers=False), caching, caching):
        yield engine.decide(framework, pod, cache.snapshot())


def _refusals(decision: Decision) -> dict[str, str]:
    assert decision.error is None
    snapshot, diagnosis = decision.feasible.snapshot, decision.diagnosis
    everywhere = diagnosis.pre_filter or diagnosis.left_out
    reasons = {}
    for row, name in enumerate(snapshot.names):
        refusal = diagnosis.of(row)
        if refusal is not None:
            reasons[name] = ", ".join(refusal.reason.texts)
        else:
            reasons[name] = (
                "" if everywhere is None or name in decision.feasible.names else everywhere.message
            )
    return reasons


def _scores(plugin: str, decision: Decision) -> dict[str, int]:
    assert decision.scores is not None
    by_node = decision.scores.by_plugin.get(plugin)
    return {} if by_node is None else dict(zip(decision.feasible.names, by_node.tolist(), strict=True))
