"""The structured-parameters allocator: which devices of which pools satisfy the requests of claims.

Independent of pods, plugins and writes: `allocator` is the entry point.
"""
