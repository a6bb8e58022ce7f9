"""Plugins that kube-scheduler does not have: in the box, and off until a configuration names them.

Each is a folder of its own, and an example of how plugins are written: beside the standard library and
NumPy it imports names from `moorage` and nothing else. `moorage.plugins.LOADED_BY_NAME` names their classes;
a plugin is loaded when a configuration first names it.

docs/optional-plugins has a page about each, examples its configuration with a workload.
"""
