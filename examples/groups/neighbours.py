"""Members of a gang run side by side: on two nodes that are neighbours in a row, and in pairs."""

from itertools import pairwise

import numpy as np

from moorage import Placement, wait

POSITION = "example.com/position"


class Neighbours:
    """A placement is two neighbouring nodes; the front of the row is preferred."""

    name = "Neighbours"

    def placement_generate(self, cycle, group, nodes):
        positions = nodes.label(POSITION).as_int(default=-1)
        row = [index for index in np.argsort(positions) if positions[index] >= 0]
        return [
            Placement(f"{nodes.name(left)}+{nodes.name(right)}", nodes.at(np.array([left, right])))
            for left, right in pairwise(row)
        ]

    def placement_feasible(self, cycle, group, progress):
        if progress.scheduled % 2:
            return wait(0, f"pods come in pairs: {progress.scheduled} scheduled")
        return None

    def placement_score(self, cycle, group, placements):
        return np.array([100 - each.placement.nodes.label(POSITION).as_int().min() for each in placements])
