"""Pods that come and go, of Jobs and of Deployments, and how many nodes are empty meanwhile.

$ python examples/packing/churn.py pods 1 > pods.json
$ moorage simulate ... --workload pods.json --placements placements.csv
$ python examples/packing/churn.py nodes placements.csv
"""

import csv
import json
import random
import sys

PODS = 800
MEAN_INTERVAL_SECONDS = 10
CORES = (0.25, 0.5, 1, 2, 4)
MEMORY_PER_CORE = (1, 2, 4, 6)
MOMENTS = 200

STAYS = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}


def pods(seed):
    """Two of three pods are of Jobs and run for minutes; others run longer, and some cannot be moved."""
    rng, arrival = random.Random(seed), 0.0
    for number in range(PODS):
        arrival += rng.expovariate(1 / MEAN_INTERVAL_SECONDS)
        kind = rng.choices(("Job", "ReplicaSet"), (2, 1))[0]
        duration = rng.lognormvariate(5.5, 1.0) if kind == "Job" else rng.lognormvariate(7.6, 0.8)
        cannot_move = kind == "ReplicaSet" and rng.random() < 0.2
        cores = rng.choice(CORES)
        requests = {
            "cpu": f"{cores * 1000:g}m",
            "memory": f"{cores * rng.choice(MEMORY_PER_CORE) * 1024:g}Mi",
        }
        times = {"moorage.io/arrival": f"{arrival:.1f}s", "moorage.io/duration": f"{duration:.1f}s"}
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{'stays' if cannot_move else kind.lower()}-{number}",
                "annotations": {**times, **(STAYS if cannot_move else {})},
                "ownerReferences": [
                    {
                        "apiVersion": "example.com/v1",
                        "kind": kind,
                        "name": "own",
                        "uid": "own",
                        "controller": True,
                    }
                ],
            },
            "spec": {"containers": [{"name": "main", "image": "app", "resources": {"requests": requests}}]},
        }


def occupied(placements):
    """The mean number of nodes with pods, and with some that cannot be moved, after the first tenth."""
    runs = [
        (row["node"], float(row["boundAt"]), float(row["endedAt"] or "inf"), row["name"].startswith("stays-"))
        for row in placements
        if row["node"]
    ]
    end = max(bound for _, bound, _, _ in runs)
    moments = [end * moment / MOMENTS for moment in range(MOMENTS // 10, MOMENTS + 1)]
    here = [[run for run in runs if run[1] <= moment < run[2]] for moment in moments]
    used = sum(len({run[0] for run in each}) for each in here)
    fixed = sum(len({run[0] for run in each if run[3]}) for each in here)
    return used / len(moments), fixed / len(moments)


if __name__ == "__main__":
    if sys.argv[1] == "pods":
        json.dump({"apiVersion": "v1", "kind": "List", "items": [*pods(int(sys.argv[2]))]}, sys.stdout)
    else:
        with open(sys.argv[2]) as file:
            print(
                "{:.1f} nodes have pods, {:.1f} have some that cannot be moved".format(
                    *occupied(csv.DictReader(file))
                )
            )
