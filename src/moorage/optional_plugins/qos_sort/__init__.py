"""QOSSort: of equal priority, Guaranteed pods come before Burstable ones, and these before BestEffort.

`plugin` has the whole plugin: one sort key.
"""
