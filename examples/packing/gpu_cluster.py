"""A GPU cluster and pods that fill it, with the shapes of Alibaba's GPU trace of 2023 (rounded).

Of the trace's pods, those that share a GPU are left out, and pods with several GPUs are as frequent as in its
variant `multigpu50`. Pods arrive one a second, and run until the end.

$ python examples/packing/gpu_cluster.py --seed 7 nodes.json pods.jsonl
"""

import argparse
import json
import random

NODES = [
    # number, cores, GiB, GPUs
    (27, 96, 384, 8),
    (19, 104, 512, 2),
    (7, 16, 120, 2),
    (2, 128, 768, 8),
    (1, 96, 768, 8),
    (2, 32, 128, 4),
    (6, 32, 256, 0),
    (6, 96, 448, 0),
    (2, 64, 512, 0),
]
"""The nodes of a twentieth of the cluster."""

PODS = [
    # of a thousand, cores, GiB, GPUs
    (68, 12, 56, 0),
    (52, 32, 48, 0),
    (30, 8, 30, 0),
    (32, 16, 50, 0),
    (240, 11.5, 48, 1),
    (93, 3, 6, 1),
    (43, 18.5, 64, 1),
    (33, 10, 42, 1),
    (60, 12, 20, 1),
    (68, 16, 58, 1),
    (35, 8, 24, 1),
    (38, 4, 24, 1),
    (16, 24, 92, 1),
    (28, 12, 76, 1),
    (25, 16, 66, 2),
    (12, 30, 160, 2),
    (22, 32, 130, 4),
    (12, 60, 320, 4),
    (48, 64, 260, 8),
    (45, 88, 320, 8),
]
"""The shapes of pods, and how frequent they are."""


def nodes(scale):
    """The nodes, as a list that `kubectl get -o json` could have printed."""
    items = []
    for number, cores, memory, gpus in NODES:
        for _ in range(number * scale):
            room = {"cpu": str(cores), "memory": f"{memory}Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
            status = {"allocatable": room, "capacity": room}
            metadata = {"name": f"node-{len(items)}"}
            items.append({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status})
    return {"apiVersion": "v1", "kind": "List", "items": items}


def pods(scale, demand, seed):
    """Pods in the order of arrival, until they request a share of all GPUs."""
    rng, requested, arrival = random.Random(seed), 0, 0
    wanted = demand * scale * sum(number * gpus for number, _, _, gpus in NODES)
    while requested < wanted:
        _, cores, memory, gpus = rng.choices(PODS, [each[0] for each in PODS])[0]
        pod = {"arrival": arrival, "cpu": f"{int(cores * 1000)}m", "memory": f"{memory}Gi"}
        yield {**pod, "nvidia.com/gpu": gpus} if gpus else pod
        requested, arrival = requested + gpus, arrival + 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the nodes and pods of a GPU cluster.")
    parser.add_argument("--scale", type=int, default=1, help="how many twentieths of the trace's cluster")
    parser.add_argument("--demand", type=float, default=1.0, help="GPUs that pods request, of all GPUs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("nodes", help="the file for the nodes, .json")
    parser.add_argument("pods", help="the file for the pods, .jsonl")
    args = parser.parse_args()
    with open(args.nodes, "w") as file:
        json.dump(nodes(args.scale), file)
    with open(args.pods, "w") as file:
        file.writelines(f"{json.dumps(pod)}\n" for pod in pods(args.scale, args.demand, args.seed))
