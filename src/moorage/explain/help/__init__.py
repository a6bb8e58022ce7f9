"""What would help: the smallest changes that make a pod schedulable.

    change        one change of the pod or of the cluster, and what both are like after some of them
    problem       which filters reject which nodes, as one bit a filter; the question that kinds answer
    trials        the pod evaluated in the changed cluster, by the engine's own filters
    search        offers of all kinds combined, verified and ranked

Each kind of change is a module: a `Change` and a function `offers(problem)` that proposes such changes, each
with the filters that it satisfies and the nodes where it does. To add a kind, write its module and add it to
`KINDS` in `search`.
"""
