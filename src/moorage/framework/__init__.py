"""The scheduling framework: what plugins implement, and what runs them.

interface: what plugin authors read: extension points, what plugins are given, what they answer.
runtime: a profile at work: the plan for a pod, plugin calls, filtering, scoring, waiting, pre-binding.
loading: plugins by name: the registry, and how plugins are found in files and installed packages.
cache: equivalence classes of pods, and the plugin results that are kept for each of them.
extenders: web services that filter, score, preempt and bind besides the plugins.
"""
