"""Plugins that can look at all nodes at once and at one alone say the same of a node both times."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from moorage.cluster.cache import Cache
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.framework.interface.hypothetical_pods import HypotheticalPods
from moorage.framework.interface.nodes import Nodes, NodeView
from moorage.plugins import DEFAULT_PLUGINS
from tests import strategies as s
from tests.builders import make_framework
from tests.strategies import Case, cases, examples

pytestmark = pytest.mark.slow

BOTH_WAYS = [
    plugin.name
    for plugin in DEFAULT_PLUGINS
    if (hasattr(plugin, "filter") and hasattr(plugin, "filter_node"))
    or (hasattr(plugin, "score") and hasattr(plugin, "score_node"))
]


def test_there_are_such_plugins() -> None:
    assert set(BOTH_WAYS) >= {"NodeResourcesFit", "NodeResourcesBalancedAllocation"}


@pytest.mark.hypothesis
@pytest.mark.parametrize("plugin", BOTH_WAYS)
def test_one_node_is_evaluated_as_all_are(plugin: str) -> None:
    @examples(100)
    @given(cases((s.RESOURCES, s.TAINTS, s.NODES, s.PORTS), new=2))
    def check(case: Case) -> None:
        framework = make_framework(plugin, args=case.args)
        cache = Cache(case.objects)
        pod, other = case.new_pods
        # The second pod is nominated to every node: it counts there as if it had come.
        for name in list(cache.snapshot().row_of):
            cache.nominations.put(other, name)
        nominated = cache.snapshot().nominated.on(name)
        snapshot = cache.snapshot()
        for coming in ((), nominated):
            everywhere = Nodes(snapshot)
            if coming:
                added = [(row, info) for row in range(len(snapshot)) for info in coming]
                everywhere = Nodes(
                    snapshot, np.arange(len(snapshot)), HypotheticalPods(snapshot, len(snapshot), added=added)
                )
            cycle = CycleState()
            framework.pre_filter(cycle, pod, Nodes(snapshot), Diagnosis(len(snapshot)))
            for step in framework.at("filter"):
                if step.one_node is None or not framework.plan(cycle).runs("filter", plugin):
                    continue
                verdict = step.filter(cycle, pod, everywhere)
                codes = [0] * len(snapshot) if verdict.codes is None else verdict.codes.tolist()
                for row, code in enumerate(codes):
                    expected = verdict.reasons[code - 1] if code else None
                    assert step.filter_node(cycle, pod, NodeView(snapshot, row, coming)) == expected
            for step in framework.at("score"):
                framework.pre_score(cycle, pod, everywhere)
                if step.one_node is None or not framework.plan(cycle).runs("score", plugin):
                    continue
                scores = step.score(cycle, pod, everywhere).tolist()
                assert scores == [
                    step.score_node(cycle, pod, NodeView(snapshot, row, coming))
                    for row in range(len(snapshot))
                ]

    check()
