"""The structured-parameters allocator: which devices of which pools satisfy the requests of claims.

Knows nothing of pods, plugins or what is written: `allocator` is the way in.
"""
