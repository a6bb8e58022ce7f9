"""Checks that every plugin should pass, for use in the plugin's own tests.

    from moorage.testing import assert_plugin_ok

    def test_the_rules_for_plugins():
        assert_plugin_ok(MyPlugin, args={"label": "berth"})

A plugin is called for many pods in small generated clusters: is it deterministic, does it leave its inputs
unchanged, are its results well-formed and within bounds, do its two forms agree, is its `depends_on` right?
`CHECKS` has every rule with its name and a sentence. `check_plugin` returns the report instead of raising;
`moorage plugin check` prints it. `node`, `pod` and `decide_alone` help to test a plugin's own behaviour.
"""

from moorage.testing.checking import CHECKS, assert_plugin_ok, check_plugin
from moorage.testing.clusters import Cluster, Extras, standard_clusters
from moorage.testing.isolated_decision import decide_alone
from moorage.testing.objects import node, pod
from moorage.testing.plugin_report import Finding, Outcome, PluginReport, Result
from moorage.testing.trial import Check

__all__ = [
    "CHECKS",
    "Check",
    "Cluster",
    "Extras",
    "Finding",
    "Outcome",
    "PluginReport",
    "Result",
    "assert_plugin_ok",
    "check_plugin",
    "decide_alone",
    "node",
    "pod",
    "standard_clusters",
]
