"""A second opinion: every scheduling rule once more, one node at a time, in plain Python.

The oracles read API objects in lists and dicts and answer for one node after another. They know nothing of
columns, snapshots or caches and share no code with the plugins; they are slow, and meant to be right at a
glance. The property tests hold the engine to them. `pipeline.decide` is a whole scheduling cycle.
"""

from tests.oracle.cluster import BrokenPodError, Cluster, OraclePlugin, Refusal
from tests.oracle.pipeline import ORACLE_PLUGINS, Outcome, decide, oracle_plugin_of

__all__ = [
    "ORACLE_PLUGINS",
    "BrokenPodError",
    "Cluster",
    "OraclePlugin",
    "Outcome",
    "Refusal",
    "decide",
    "oracle_plugin_of",
]
