"""Shadow mode: decide what another scheduler decides, bind nothing, and report where the two agree.

`bindings` waits until it is known what the other scheduler did in one attempt; `scheduler` decides the pod or
the group, then; `weights` finds the plugin that explains a difference; `report` counts.
"""
