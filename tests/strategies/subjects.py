"""Subjects, which are what a case can be about, and the few names that its objects have."""

from __future__ import annotations

NODES = "nodes"
"""Node names, nodeSelector and node affinity."""
TAINTS = "taints"
PORTS = "ports"
RESOURCES = "resources"
SPREAD = "spread"
AFFINITY = "affinity"
IMAGES = "images"
FEATURES = "features"
OWNED = "owned"
"""Pods that services select or controllers own, and that ask for no spreading themselves."""
SUBJECTS = (NODES, TAINTS, PORTS, RESOURCES, SPREAD, AFFINITY, IMAGES, FEATURES)

NAMESPACES = ("red", "blue", "green")
"""Only red and blue can be known as objects; green never is."""

NODE_NAMES = tuple(f"n{i}" for i in range(8))

GPU = "example.com/gpu"
HUGE = "hugepages-2Mi"
BATCH = "kubernetes.io/batch"

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
CORDON = "node.kubernetes.io/unschedulable"
