"""Consolidation: pods go to nodes that are going to stay, so that others become empty and can be removed.

`plugin` has the whole plugin: which pods keep a node, and the score of the one that keeps it longest.
"""
