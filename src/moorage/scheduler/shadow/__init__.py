"""Shadow mode: decide what another scheduler decides, bind nothing, and report where the two agree.

`scheduler` decides each pod when the other scheduler binds it; `weights` finds the plugin that explains a
difference; `report` counts.
"""
